"""The custom integration of `integrations/home_assistant`, in Home Assistant's own process."""

import asyncio
import json
import os

from answers import UNKNOWN, reading, text
from house import CONFIG, free_port, spoken
from model import NAME, Model
from report import say, table
from rooms import rooms
from rules import FOLDER, RULES
from sottovoce import Endpoint, Store

FACT = {"kitchen": "My cat is called Minka.", "office": "My cat is called Felix."}
QUESTION = "What is my cat called?"


async def _add(house, model, folder, **more):
    """Fills in both forms; the entry and its agent."""
    places = {"url": model.url, "folder": f"/srv/config/{folder}/store", "key_file": f"/srv/config/{folder}/key"}
    entry = await house.add("sottovoce", places, {"model": f"{NAME}:latest", "scope": "area", **more})
    return entry, await house.entity(entry, "conversation")


async def _search(house, entry, scope, words):
    body = {"config_entry_id": entry, "scope": scope, "words": words}
    found = await house.call("POST", "/api/services/sottovoce/search?return_response", body)
    return found["service_response"]["messages"]


async def each_area_has_a_memory_that_outlives_sessions_and_nothing_lies_in_the_open(house):
    async with rooms(house) as satellites:
        with Model(reading) as model:
            entry, agent = await _add(house, model, "areas")
            place = {room: {"device_id": satellite.device} for room, satellite in satellites.items()}
            for room in FACT:
                await house.say(agent, FACT[room], **place[room])
            rows = []
            for room, other in (("kitchen", "office"), ("office", "kitchen")):
                reply = await house.say(agent, QUESTION, **place[room])
                asked = text(model.asked[-1])
                assert FACT[room] in asked and FACT[other] not in asked, asked
                assert FACT[room] in reply.speech, reply
                rows.append((f"{QUESTION} ({room}, a new session)", reply.speech))
            by_satellite = await house.say(agent, QUESTION, satellite_id=satellites["office"].entity)
            assert FACT["office"] in by_satellite.speech, by_satellite
            nowhere = await house.say(agent, QUESTION)
            assert nowhere.speech == UNKNOWN, nowhere
            table(("asked", "answer"), [*rows, (f"{QUESTION} (no area)", nowhere.speech)])
            await house.remove(entry)
            stored = [file for file in (CONFIG / "areas").rglob("*") if file.is_file()]
            assert len(stored) > 8 and not any(b"Minka" in file.read_bytes() for file in stored), stored
            assert os.stat(CONFIG / "areas/key").st_mode & 0o077 == 0
            log = house.log.read_text() + (CONFIG / "console.log").read_text()
            assert "Minka" not in log, "words are in Home Assistant's log"


async def answers_stream_and_functions_of_the_house_are_called(house):
    with Model(reading, pause=0.05) as model:
        entry, agent = await _add(house, model, "functions")
        pipeline = await house.pipeline("Custom", agent)
        await house.say(agent, FACT["kitchen"])
        events = await house.run(pipeline, QUESTION)
        pieces = [(at, data["chat_log_delta"]["content"]) for at, kind, data in events
                  if kind == "intent-progress" and data.get("chat_log_delta", {}).get("content")]
        assert len(pieces) > 4 and FACT["kitchen"] in "".join(piece for _, piece in pieces), events
        say(f"{len(pieces)} pieces, the first after {pieces[0][0] * 1000:.0f} ms, the last after {pieces[-1][0] * 1000:.0f} ms")
        reply = await house.say(agent, "Turn on the kitchen lamp.")
        assert reply.speech == "Done." and await house.state("light.kitchen_lamp") == "on", reply
        found = await _search(house, entry, "default", "lamp from:me")
        assert [message["text"] for message in found] == ["Turn on the kitchen lamp."], found
        await house.say(agent, "Turn off the kitchen lamp.")
        assert await house.state("light.kitchen_lamp") == "off"
        assert "tool_calls" in json.dumps(model.asked[-1]["messages"]), "earlier calls are gone"
        assert "Current time is" not in text(model.asked[-1])
        await house.remove(entry)


async def who_breaks_an_answer_off_leaves_what_had_come(house):
    with Model(["It is ", *["raining "] * 50], pause=0.05) as model:
        entry, agent = await _add(house, model, "broken", scope="one")
        pipeline = await house.pipeline("Broken", agent)
        await house.run(pipeline, "How is the weather?", seconds=0.5)
        for _ in range(50):
            if found := await _search(house, entry, "default", "raining from:assistant"):
                break
            await asyncio.sleep(0.1)
        say(f"stored of an answer of 402 characters: {len(found[0]['text'])}")
        assert found[0]["text"].startswith("It is raining") and len(found[0]["text"]) < 300, found
        await house.remove(entry)


async def what_is_forgotten_does_not_come_back(house):
    with Model(reading) as model:
        entry, agent = await _add(house, model, "forgetting", scope="one")
        await house.say(agent, FACT["kitchen"])
        found = await _search(house, entry, "default", "Minka")
        assert [message["number"] for message in found] == [1], found
        body = {"config_entry_id": entry, "scope": "default", "numbers": [1]}
        gone = await house.call("POST", "/api/services/sottovoce/forget?return_response", body)
        assert gone["service_response"]["numbers"] == [1], gone
        reply = await house.say(agent, QUESTION)
        assert reply.speech == UNKNOWN and "Minka" not in text(model.asked[-1]), reply
        await house.remove(entry)


async def each_user_has_a_memory(house):
    with Model(reading) as model:
        entry, agent = await _add(house, model, "users", scope="user")
        await house.say(agent, FACT["kitchen"])
        user = (await house.command("auth/current_user"))["id"]
        assert [found["text"] for found in await _search(house, entry, f"dm/{user}", "Minka")] == [FACT["kitchen"]]
        assert await _search(house, entry, "default", "Minka") == []
        await house.remove(entry)


async def a_model_that_is_away_costs_nothing_that_was_said(house):
    with Model(reading) as model:
        entry, agent = await _add(house, model, "away", scope="one", llm_hass_api=[])
        pipeline = await house.pipeline("Away", agent)
        await house.say(agent, "Good morning.")
    said = spoken(await house.run(pipeline, FACT["kitchen"]))
    assert "Current time is" not in text(model.asked[0]) and "voice assistant" in text(model.asked[0])
    assert said.startswith("I cannot think right now."), said
    said = (await house.say(agent, "Und jetzt?", language="de-DE")).speech
    assert said.startswith("Gerade fällt mir nichts ein."), said
    assert [found["text"] for found in await _search(house, entry, "default", "Minka")] == [FACT["kitchen"]]
    await house.remove(entry)


async def a_memory_that_is_away_is_not_taken_for_a_model_that_is(house):
    with Model(reading) as model:
        entry, agent = await _add(house, model, "unreachable", scope="one")
        await house.say(agent, "Good morning.")
        store = CONFIG / "unreachable/store"
        store.rename(CONFIG / "unreachable/moved")
        store.write_text("This is no folder.")
        rows = []
        for language, excuse in (("en", "I cannot store"), ("it", "In questo momento non posso conservare")):
            reply = await house.say(agent, FACT["kitchen"], language=language)
            rows.append((language, reply.speech))
            assert reply.speech.startswith(excuse) and len(model.asked) == 1, reply
        table(("language", "the store is gone"), rows)
        store.unlink()
        (CONFIG / "unreachable/moved").rename(store)
        assert (await house.say(agent, FACT["kitchen"])).speech == "All right."
        await house.remove(entry)


async def what_was_said_survives_the_killing_of_home_assistant(house):
    with Model(reading) as model:
        entry, agent = await _add(house, model, "killed", scope="one")
        pipeline = await house.pipeline("Killed here", agent)
        await house.say(agent, "Good morning.")
        model.stall_after = 0
        turn = asyncio.create_task(house.run(pipeline, FACT["kitchen"]))
        assert await asyncio.to_thread(model.stalled.wait, 20), "the model was not asked"
        await house.restart_after_kill()
        await asyncio.gather(turn, return_exceptions=True)
        model.stall_after = None
        model.go_on.set()
        reply = await house.say(await house.entity(entry, "conversation"), QUESTION)
        assert FACT["kitchen"] in reply.speech, reply
        await house.remove(entry)


async def the_form_names_what_is_wrong(house):
    with Model() as model, Store(**model.environment()) as store:
        with Endpoint(store, SOTTOVOCE__SERVE__TOKEN="only-for-this-test") as locked:
            (CONFIG / "wrong").mkdir()
            (CONFIG / "wrong/a-file").write_text("This is no folder.")
            right = {"url": model.url, "folder": "/srv/config/wrong/store", "key_file": "/srv/config/wrong/key"}
            rows = []
            for name, wrong, error in (
                ("url", model.url.removeprefix("http://"), {"url": "invalid_url"}),
                ("url", "http://", {"url": "invalid_url"}),
                ("url", f"http://127.0.0.1:{free_port()}", {"url": "cannot_connect"}),
                ("url", locked.url, {"url": "model_failed"}),
                ("url", f"{model.url}/elsewhere", {"url": "not_ollama"}),
                ("folder", "/srv/config/wrong/a-file/store", {"base": "cannot_open"}),
                ("key_file", "/srv/config/wrong/a-file/key", {"base": "cannot_open"}),
            ):
                errors = await house.refused("sottovoce", {**right, name: wrong})
                rows.append((f"{name}: {wrong}", errors))
                assert errors == error, rows[-1]
            table(("form", "error"), rows)
            assert not (CONFIG / "wrong/key").exists(), "a form that was refused has made a key"


async def texts_and_forms_agree_as_home_assistants_own_checks_want(house):
    for rule in RULES:
        rule()
    shown = (await house.command("get_services"))["sottovoce"]
    told = json.loads((FOLDER / "strings.json").read_text())["services"]
    assert {name: set(action["fields"]) for name, action in shown.items()} == {
        name: set(action["fields"]) for name, action in told.items()}
    brands = (await house.command("brands/access_token"))["token"]
    async with house.session.get(f"{house.url}/api/brands/integration/sottovoce/icon.png?token={brands}") as answer:
        assert await answer.read() == (FOLDER / "brand/icon.png").read_bytes(), answer.status

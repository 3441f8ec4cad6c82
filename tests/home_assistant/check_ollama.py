"""Home Assistant's own integration of Ollama with `sottovoce serve` in front of the model."""

import asyncio
import time

from answers import UNKNOWN, reading, text
from house import spoken
from model import NAME, Model
from report import table, urlopen_json
from sottovoce import Endpoint, Store

MODEL = f"{NAME}:latest"
FACT = {"kitchen": "My cat is called Minka.", "office": "My cat is called Felix."}
QUESTION = "What is my cat called?"
ROOMS = ("kitchen", "office")


async def a_new_session_in_a_room_knows_what_was_said_there_and_nowhere_else(house):
    with Model(reading) as model, Store(**model.environment()) as store, Endpoint(store) as endpoint:
        rows, entries = [], []
        entry, plain = await house.add_ollama(model.url, "Without memory", MODEL)
        entries.append(entry)
        agents = {}
        for room in ROOMS:
            entry, agents[room] = await house.add_ollama(f"{endpoint.url}/s/{room}", f"Remembers the {room}", MODEL)
            entries.append(entry)
        first = {room: await house.say(agents[room], FACT[room]) for room in ROOMS}
        await house.say(plain, FACT["kitchen"])
        assert all(reply.kind == "action_done" for reply in first.values()), first
        for room, other in (ROOMS, ROOMS[::-1]):
            reply = await house.say(agents[room], QUESTION)
            asked = text(model.asked[-1])
            assert reply.conversation != first[room].conversation
            assert FACT[room] in asked and FACT[other] not in asked, asked
            assert FACT[room] in reply.speech, reply
            rows.append((f"{QUESTION} ({room}, a new session)", (await house.say(plain, QUESTION)).speech, reply.speech))
            receipt = await asyncio.to_thread(urlopen_json, f"{endpoint.url}/s/{room}/receipt")
            added = [entry["text"] for entry in receipt["history"]]
            assert added == [FACT[room], "All right."] and receipt["tokens"] > 0, receipt
        assert all(row[1] == UNKNOWN for row in rows), rows
        table(("asked", "without memory", "with memory"), rows)
        for entry in entries:
            await house.remove(entry)
        assert "Minka" not in endpoint.errors, endpoint.errors
        store.is_sound()


async def functions_of_the_house_are_called_and_recorded(house):
    with Model(reading) as model, Store(**model.environment()) as store, Endpoint(store) as endpoint:
        entry, agent = await house.add_ollama(f"{endpoint.url}/s/kitchen", "Lamp", MODEL)
        assert await house.state("light.kitchen_lamp") == "off"
        reply = await house.say(agent, "Turn on the kitchen lamp, please.")
        held = store.messages("kitchen")
        assert reply.speech == "Done." and await house.state("light.kitchen_lamp") == "on", (reply, held)
        assert [who for who, _ in held] == ["user", "assistant", "tool", "assistant"], held
        assert held[0][1] == "Turn on the kitchen lamp, please." and held[3][1] == "Done.", held
        reply = await house.say(agent, "Turn off the kitchen lamp.", conversation_id=reply.conversation)
        assert await house.state("light.kitchen_lamp") == "off", reply
        assert [who for who, _ in store.messages("kitchen")].count("user") == 2, store.messages("kitchen")
        await house.remove(entry)
        store.is_sound()


async def a_key_of_a_room_opens_that_room_alone(house):
    with Model(reading) as model, Store(**model.environment()) as store:
        keys = store.folder / "keys"
        keys.write_text("named/kitchen kitchen-key\n")
        with Endpoint(store, SOTTOVOCE__SERVE__KEYSFILE=str(keys)) as endpoint:
            entry, agent = await house.add_ollama(f"{endpoint.url}/s/kitchen", "With a key", MODEL, api_key="kitchen-key")
            await house.say(agent, FACT["kitchen"])
            assert store.messages("kitchen") == [("user", FACT["kitchen"]), ("assistant", "All right.")]
            errors = await house.refused("ollama", {"url": f"{endpoint.url}/s/office", "api_key": "kitchen-key"})
            assert errors == {"base": "invalid_auth"}, errors
            await house.remove(entry)


async def what_home_assistant_answers_itself_is_in_the_session_and_is_not_stored(house):
    with Model(reading) as model, Store(**model.environment()) as store, Endpoint(store) as endpoint:
        entry, agent = await house.add_ollama(f"{endpoint.url}/s/kitchen", "Local", MODEL)
        pipeline = await house.pipeline("Commands first here", agent, prefer_local_intents=True)
        said = ("turn on the kitchen lamp", FACT["kitchen"], "turn off the kitchen lamp", QUESTION)
        conversation, answers = {}, []
        for words in said:
            events = await house.run(pipeline, words, **conversation)
            conversation = {"conversation_id": next(data["conversation_id"] for _, kind, data in events if kind == "intent-start")}
            answers.append(spoken(events))
        assert FACT["kitchen"] in answers[3] and len(model.asked) == 2, (answers, len(model.asked))
        users = [message["content"] for message in model.asked[1]["messages"] if message["role"] == "user"]
        table(("said", "answer", "in the last request", "stored"), [
            (words, answer, words in users, words in dict(map(reversed, store.messages("kitchen")))) for words, answer in zip(said, answers)])
        assert users == list(said), users
        assert store.messages("kitchen") == [("user", said[1]), ("assistant", "All right."), ("user", said[3]), ("assistant", answers[3])]
        await house.run(pipeline, "And what is my cat called now?")
        later = text(model.asked[-1])
        assert FACT["kitchen"] in later and "lamp" not in later.lower().split("my cat is called", 1)[1], later
        await house.remove(entry)
        store.is_sound()


async def a_model_server_that_is_away_is_named_by_the_form(house):
    with Store() as store, Endpoint(store) as endpoint:
        begun = time.monotonic()
        errors = await house.refused("ollama", {"url": f"{endpoint.url}/s/kitchen"})
        table(("the memory runs, the model server does not", "error", "after"), [
            (endpoint.url, errors, f"{time.monotonic() - begun:.1f} s")])
        assert errors == {"base": "cannot_connect"}, errors

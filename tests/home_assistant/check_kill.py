"""A server that is killed in the middle of a turn: Home Assistant says something, and nothing that was acknowledged is lost."""

import asyncio

from answers import reading, text
from house import spoken
from model import NAME, Model
from report import table
from sottovoce import Agent, Endpoint, Store

FACT, CUT, QUESTION = "My cat is called Minka.", "The key of the shed is under the blue pot.", "Where is the key of the shed?"


async def _killed(house, scope, start, add, shown):
    """Two turns, of which the second one is cut, and one after a restart."""
    with Model(reading) as model, Store(**model.environment()) as store:
        server = start(store, 0)
        entry, agent = await add(house, server)
        pipeline = await house.pipeline(f"Killed {scope}", agent)
        assert (await house.say(agent, FACT)).speech == "All right."
        model.stall_after = 1
        turn = asyncio.create_task(house.run(pipeline, CUT))
        assert await asyncio.to_thread(model.stalled.wait, 20), "the model was not asked"
        server.kill()
        said = spoken(await asyncio.wait_for(turn, 20))
        model.stall_after = None
        model.go_on.set()
        away = spoken(await house.run(pipeline, "Is anybody there?"))
        assert said and away, (said, away)
        held = store.scope(scope)
        assert held[:2] == [("user", FACT), ("assistant", "All right.")] and held[2] == ("user", CUT), held
        with start(store, server.port) as server:
            reply = await house.say(agent, QUESTION)
            assert CUT in reply.speech and CUT in text(model.asked[-1]), (reply, model.asked[-1])
            store.is_sound()
        shown += [(scope, "killed during the answer", said), (scope, "asked while it was away", away),
                  (scope, "after the restart", reply.speech)]
        await house.remove(entry)


async def _ollama(house, server):
    return await house.add_ollama(f"{server.url}/s/kitchen", "Cut", f"{NAME}:latest")


async def _wyoming(house, server):
    entry = await house.add_wyoming(server.port)
    return entry, await house.entity(entry, "conversation")


SERVERS = [("named/kitchen", lambda store, port: Endpoint(store, port), _ollama),
           ("default", lambda store, port: Agent(store, port=port), _wyoming)]


async def what_was_said_survives_the_killing_of_each_server(house):
    shown = []
    for scope, start, add in SERVERS:
        await _killed(house, scope, start, add, shown)
    table(("conversation", "", "Home Assistant says"), shown)


async def who_breaks_an_answer_off_stops_the_model_and_leaves_what_had_come(house):
    rows = []
    for scope, start, add in SERVERS:
        with Model(["It is ", *["raining "] * 100], pause=0.05) as model, Store(**model.environment()) as store:
            with start(store, 0) as server:
                entry, agent = await add(house, server)
                pipeline = await house.pipeline(f"Broken off {scope}", agent)
                await house.run(pipeline, "Rain?", seconds=1)
                for _ in range(100):
                    held = await asyncio.to_thread(store.scope, scope)
                    if len(held) == 2:
                        break
                await house.remove(entry)
            assert len(held) == 2 and held[1][1].startswith("It is raining") and len(held[1][1]) < 600, held
            rows.append((scope, len("It is ") + 100 * len("raining "), len(held[1][1])))
            store.is_sound()
    table(("conversation", "characters of the answer", "stored after a second"), rows)

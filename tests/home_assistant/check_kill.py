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
        entry, agent = await add(server)
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


async def what_was_said_survives_the_killing_of_each_server(house):
    shown = []

    async def ollama(server):
        return await house.add_ollama(f"{server.url}/s/kitchen", "Killed", f"{NAME}:latest")

    async def wyoming(server):
        entry = await house.add_wyoming(server.port)
        return entry, await house.entity(entry, "conversation")

    await _killed(house, "named/kitchen", lambda store, port: Endpoint(store, port), ollama, shown)
    await _killed(house, "default", lambda store, port: Agent(store, port=port), wyoming, shown)
    table(("conversation", "", "Home Assistant says"), shown)

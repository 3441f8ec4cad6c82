"""Home Assistant's own integration of Wyoming with `sottovoce wyoming`, and satellites in two rooms."""

import asyncio
import time

from answers import UNKNOWN, reading, text
from house import spoken
from model import Model
from report import say, table
from rooms import rooms
from sottovoce import Agent, Store
from wyoming.client import AsyncTcpClient
from wyoming.info import Describe, Info

FACT = {"kitchen": "My cat is called Minka.", "office": "My cat is called Felix."}
QUESTION = "What is my cat called?"


async def satellites_and_devices_have_conversations_of_their_own(house):
    async with rooms(house) as satellites:
        kitchen, office = satellites["kitchen"], satellites["office"]
        named_rooms = ["--map", f"{kitchen.entity}=named/kitchen", "--map", f"{office.device}=named/office"]
        named = {"kitchen": {"satellite_id": kitchen.entity, "device_id": kitchen.device}, "office": {"device_id": office.device}}
        with Model(reading) as model, Store(**model.environment()) as store, Agent(store, *named_rooms) as server:
            entry = await house.add_wyoming(server.port)
            agent = await house.entity(entry, "conversation")
            first = {room: await house.say(agent, FACT[room], **named[room]) for room in FACT}
            rows = []
            for room, other in (("kitchen", "office"), ("office", "kitchen")):
                reply = await house.say(agent, QUESTION, **named[room])
                assert reply.conversation != first[room].conversation
                assert FACT[room] in text(model.asked[-1]) and FACT[other] not in text(model.asked[-1]), model.asked[-1]
                assert FACT[room] in reply.speech, reply
                rows.append((f"{QUESTION} ({room}, a new session)", reply.speech))
            reply = await house.say(agent, QUESTION)
            assert reply.speech == UNKNOWN, reply
            table(("asked", "answer"), [*rows, (f"{QUESTION} (no room)", reply.speech)])
            await house.remove(entry)
            store.is_sound()


async def it_describes_itself_during_a_turn(house):
    with Model(stall_after=1) as model, Store(**model.environment()) as store, Agent(store) as server:
        entry = await house.add_wyoming(server.port)
        agent = await house.entity(entry, "conversation")
        turn = asyncio.create_task(house.say(agent, "How is the weather?"))
        await asyncio.to_thread(model.stalled.wait, 20)
        begun = time.monotonic()
        async with AsyncTcpClient("127.0.0.1", server.port) as client:
            await client.write_event(Describe().event())
            assert Info.from_event(await asyncio.wait_for(client.read_event(), 5)).handle[0].installed
        say(f"described during a turn after {(time.monotonic() - begun) * 1000:.1f} ms")
        assert not turn.done()
        model.go_on.set()
        assert (await turn).speech == "It is fine."
        await house.remove(entry)


async def home_assistant_understands_commands_before_it_is_asked(house):
    with Model() as model, Store(**model.environment()) as store, Agent(store) as server:
        entry = await house.add_wyoming(server.port)
        agent = await house.entity(entry, "conversation")
        pipeline = await house.pipeline("Commands first", agent, prefer_local_intents=True)
        await house.run(pipeline, "turn on the kitchen lamp")
        assert await house.state("light.kitchen_lamp") == "on" and not model.asked
        assert spoken(await house.run(pipeline, "How is the weather?")) == "It is fine."
        await house.run(pipeline, "turn off the kitchen lamp")
        assert await house.state("light.kitchen_lamp") == "off" and len(model.asked) == 1
        await house.remove(entry)

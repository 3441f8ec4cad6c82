"""The package `wyoming`, with which Home Assistant speaks, as a client of `sottovoce wyoming`."""

from contextlib import asynccontextmanager

import anyio
from wyoming.asr import Transcript
from wyoming.client import AsyncTcpClient
from wyoming.error import Error
from wyoming.handle import Handled, HandledChunk, HandledStart, HandledStop, NotHandled
from wyoming.info import Describe, Info
from wyoming.ping import Ping, Pong

from model import Model
from sottovoce import Agent, Store

MAP = ("--map", "assist_satellite.kitchen=named/kitchen", "--map", "office-device=named/office")


@asynccontextmanager
async def _agent(store, *arguments):
    """The port of an agent of its own, which is told to end afterwards."""
    agent = await anyio.to_thread.run_sync(Agent, store, *arguments)
    try:
        yield agent.port
    finally:
        assert agent.stop() == 130


def _transcript(words, **context):
    return Transcript(text=words, language="en", context=context or None).event()


async def _turn(port, words, **context):
    """The kinds of events of one turn, and what is spoken."""
    kinds, spoken = [], None
    async with AsyncTcpClient("127.0.0.1", port) as client:
        await client.write_event(_transcript(words, **context))
        while event := await client.read_event():
            assert not Error.is_type(event.type), event
            kinds.append(event.type)
            if Handled.is_type(event.type):
                handled = Handled.from_event(event)
                spoken = handled.text
                assert (handled.context or {}) == context, handled
            if NotHandled.is_type(event.type):
                return kinds, NotHandled.from_event(event).text
            if HandledStop.is_type(event.type):
                return kinds, spoken
    raise AssertionError((kinds, "the connection ended"))


async def it_describes_itself_as_home_assistant_wants_it():
    with Store() as store:
        async with _agent(store) as port, AsyncTcpClient("127.0.0.1", port) as client:
            await client.write_event(Describe().event())
            [program] = Info.from_event(await client.read_event()).handle
            assert program.installed and program.supports_handled_streaming and not program.supports_home_control
            assert program.models[0].installed and program.models[0].languages == []
            await client.write_event(Ping(text="x").event())
            assert Pong.from_event(await client.read_event()).text == "x"


async def each_room_gets_its_answers_in_pieces_and_keeps_its_own_words():
    with Model(["It is ", "fine."]) as model, Store(**model.environment()) as store:
        async with _agent(store, *MAP) as port:
            rooms = [("kitchen", {"satellite_id": "assist_satellite.kitchen", "device_id": "office-device"}),
                     ("office", {"conversation_id": "01M8", "device_id": "office-device"})]
            for room, context in rooms:
                kinds, spoken = await _turn(port, f" My cat lives in the {room}.", **context)
                start, *chunks, handled, stop = kinds
                assert HandledStart.is_type(start) and Handled.is_type(handled) and HandledStop.is_type(stop), kinds
                assert all(map(HandledChunk.is_type, chunks)) and spoken == "It is fine.", (kinds, spoken)
            for room, _ in rooms:
                assert store.messages(room) == [("user", f"My cat lives in the {room}."), ("assistant", "It is fine.")]
            for room, context in rooms:
                await _turn(port, "Where is my cat?", **context)
                prompt = str(model.asked[-1])
                assert [f"lives in the {other}" in prompt for other, _ in rooms] == [room == other for other, _ in rooms]
        store.is_sound()


async def who_hangs_up_interrupts_and_what_was_sent_is_kept():
    with Model(["It is ", "fine."], stall_after=1) as model, Store(**model.environment()) as store:
        async with _agent(store, *MAP) as port:
            async with AsyncTcpClient("127.0.0.1", port) as client:
                await client.write_event(_transcript("Rain?", satellite_id="assist_satellite.kitchen"))
                assert HandledStart.is_type((await client.read_event()).type)
                assert HandledChunk.from_event(await client.read_event()).text == "It is "
            await store.keeps("kitchen", ("user", "Rain?"), ("assistant", "It is "))


async def a_model_that_cannot_be_reached_is_excused_in_the_language_of_the_turn():
    with Store() as store:
        async with _agent(store, "--phrase", "pl=Nie teraz.") as port:
            for language, words in [("de", "Mir fällt gerade"), ("en", "I cannot think"), ("pl", "Nie teraz.")]:
                async with AsyncTcpClient("127.0.0.1", port) as client:
                    await client.write_event(Transcript(text="Hallo?", language=language).event())
                    spoken = NotHandled.from_event(await client.read_event()).text
                    assert spoken.startswith(words), spoken

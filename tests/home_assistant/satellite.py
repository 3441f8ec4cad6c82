"""A Wyoming satellite without a microphone: it stands in a room, speaks recorded words to Home Assistant and takes the answer."""

import asyncio
import time

from wyoming.audio import AudioChunk, AudioChunkConverter
from wyoming.event import Event, async_read_event, async_write_event
from wyoming.info import Attribution, Info
from wyoming.info import Satellite as Described
from wyoming.pipeline import PipelineStage, RunPipeline
from wyoming.ping import Ping, Pong


class Satellite:
    """`device` and `entity` are what Home Assistant calls it, once it was added."""

    def __init__(self, room):
        self.room, self.device, self.entity, self.entry = room, None, None, None
        self._events, self._writer, self._runs = asyncio.Queue(), None, asyncio.Event()

    async def join(self, house):
        """Listens, and is added to Home Assistant."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.entry = await house.add_wyoming(self._server.sockets[0].getsockname()[1])
        found = await house.entities(self.entry, "assist_satellite")
        self.entity, self.device = found[0]["entity_id"], found[0]["device_id"]
        await asyncio.wait_for(self._runs.wait(), 30)
        return self

    async def leave(self, house):
        await house.remove(self.entry)
        self._server.close()

    async def _serve(self, reader, writer):
        try:
            while (event := await async_read_event(reader)) is not None:
                if event.type == "describe":
                    who = Attribution(name="Sottovoce", url="https://example.invalid")
                    described = Described(name=self.room.title(), area=self.room.title(), attribution=who, installed=True,
                                          description="Without a microphone", version="1")
                    await async_write_event(Info(satellite=described).event(), writer)
                elif Ping.is_type(event.type):
                    await async_write_event(Pong(text=Ping.from_event(event).text).event(), writer)
                elif event.type == "run-satellite":
                    self._writer = writer
                    self._runs.set()
                else:
                    self._events.put_nowait(event)
        finally:
            writer.close()

    async def speak(self, sound):
        """Speaks a sound as fast as it is spoken, until it was understood. Events with the seconds since the sound ended, and
        the sound of the answer."""
        while not self._events.empty():
            self._events.get_nowait()
        run = RunPipeline(start_stage=PipelineStage.ASR, end_stage=PipelineStage.TTS, restart_on_end=False)
        await async_write_event(run.event(), self._writer)
        ended = asyncio.get_running_loop().create_future()
        speaking = asyncio.create_task(self._send(sound, ended))
        events, answer, shape = [], b"", None
        while True:
            event = await asyncio.wait_for(self._events.get(), 60)
            since = time.monotonic() - (ended.result() if ended.done() else time.monotonic())
            if event.type == "audio-chunk":
                answer, shape = answer + event.payload, event.data
                continue
            events.append((since, event.type, event.data or {}))
            if event.type == "transcript":
                speaking.cancel()
            if event.type in ("audio-stop", "error"):
                await async_write_event(Event("played"), self._writer)
                return events, (shape["rate"], shape["width"], shape["channels"], answer) if shape else None

    async def _send(self, sound, ended):
        rate, width, channels, bytes_ = sound
        to_home_assistant = AudioChunkConverter(rate=16000, width=2, channels=1)
        step = rate // 20 * width * channels
        silence = bytes(step)
        pieces = [bytes_[at:at + step] for at in range(0, len(bytes_), step)]
        for number, piece in enumerate([*pieces, *[silence] * 100]):
            if number == len(pieces):
                ended.set_result(time.monotonic())
            chunk = AudioChunk(rate=rate, width=width, channels=channels, audio=piece)
            await async_write_event(to_home_assistant.convert(chunk).event(), self._writer)
            await asyncio.sleep(0.05)

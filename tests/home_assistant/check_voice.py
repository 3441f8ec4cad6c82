"""From a spoken question to a spoken answer: piper speaks, faster-whisper hears, a satellite stands in the kitchen, and Home Assistant
is between them and an agent that was told something the day before."""

import contextlib
import json
import time
from datetime import datetime, timedelta, timezone

from answers import reading, text
from house import CONFIG
from model import NAME, Model
from report import say
from satellite import Satellite
from sottovoce import Agent, Endpoint, Store
from voices import heard, spoken, voices

FACT = "The key of the garden shed is under the blue flower pot."
QUESTION = "Where did I say yesterday that the key of the garden shed is?"
# So much was said after it on that day that the newest messages do not reach back to it.
SINCE = [words for number in range(30) for words in (
    ("user", f"Train number {number} to town was late again."), ("assistant", "I am sorry to hear that."))]
KEPT = ("blue", "flower", "pot")
SEEN = ("voice-started", "voice-stopped", "transcript", "synthesize", "audio-start", "audio-stop", "error")


def _yesterday(store, scope):
    """Puts into a conversation what was said a day ago."""
    at = datetime.now(timezone.utc) - timedelta(days=1)
    lines = [json.dumps({"role": role, "content": words, "timestamp": (at + timedelta(seconds=number)).isoformat()})
             for number, (role, words) in enumerate([("user", FACT), ("assistant", "All right."), *SINCE])]
    file = store.folder / "yesterday.jsonl"
    file.write_text("\n".join(lines))
    store.run("--scope", scope, "import", "jsonl", str(file))


class _Kitchen:
    """A satellite with a voice and an ear."""

    def __init__(self, house, satellite, piper, whisper):
        self.house, self.satellite, self.piper, self.whisper, self.entries = house, satellite, piper, whisper, []

    async def ask(self, agent, model):
        """Asks an agent, and is told what was said the day before."""
        begun = time.monotonic()
        question = await spoken(self.piper, QUESTION)
        said = time.monotonic() - begun
        tts, stt = [await self.house.entity(entry, domain) for entry, domain in zip(self.entries, ("tts", "stt"))]
        pipeline = await self.house.pipeline(f"Spoken to {agent}", agent, stt_engine=stt, stt_language="en", tts_engine=tts,
                                             tts_language="en_US", tts_voice="en_US-joe-medium")
        await self.house.command("assist_pipeline/pipeline/set_preferred", pipeline_id=pipeline)
        events, answer = await self.satellite.speak(question)
        assert answer, events
        begun = time.monotonic()
        words = await heard(self.whisper, answer)
        listened = time.monotonic() - begun
        prompt = text(model.asked[-1])
        seconds = lambda sound: len(sound[3]) / (sound[0] * sound[1] * sound[2])
        say(f"piper speaks       {QUESTION!r}: {seconds(question):.1f} s of sound in {said:.2f} s")
        for at, kind, data in events:
            if kind in SEEN:
                say(f"{at:6.2f} s  {kind:13}", (data.get("text") or "").strip())
        say("the model's prompt ", next((line for line in prompt.split("\\n") if FACT in line), "knows nothing of it"))
        say(f"whisper hears      {words!r}: {seconds(answer):.1f} s of sound in {listened:.2f} s")
        # Home Assistant itself finds where the words end, within the five seconds of silence that the satellite sends after them.
        at = {kind: since for since, kind, _ in events}
        assert "voice-started" in at and 0 < at["voice-stopped"] < 5, events
        assert FACT in prompt, prompt
        assert all(word in words.lower() for word in KEPT), words


@contextlib.asynccontextmanager
async def _kitchen(house):
    async with voices() as ports:
        kitchen = _Kitchen(house, await Satellite("kitchen").join(house), *ports)
        try:
            kitchen.entries = [await house.add_wyoming(port) for port in ports]
            yield kitchen
        finally:
            for entry in kitchen.entries:
                await house.remove(entry)
            await kitchen.satellite.leave(house)


def _holds_the_turn(store, scope):
    held = store.scope(scope)
    assert [who for who, _ in held] == ["user", "assistant"] * 32, held
    store.is_sound()


async def what_was_said_yesterday_is_heard_through_wyoming(house):
    async with _kitchen(house) as kitchen:
        with Model(reading) as model, Store(**model.environment()) as store:
            _yesterday(store, "named/kitchen")
            with Agent(store, "--map", f"{kitchen.satellite.entity}=named/kitchen") as server:
                entry = await house.add_wyoming(server.port)
                await kitchen.ask(await house.entity(entry, "conversation"), model)
                await house.remove(entry)
            _holds_the_turn(store, "named/kitchen")


async def what_was_said_yesterday_is_heard_through_ollamas_integration(house):
    async with _kitchen(house) as kitchen:
        with Model(reading) as model, Store(**model.environment()) as store:
            _yesterday(store, "named/kitchen")
            with Endpoint(store) as endpoint:
                entry, agent = await house.add_ollama(f"{endpoint.url}/s/kitchen", "By voice", f"{NAME}:latest")
                await kitchen.ask(agent, model)
                await house.remove(entry)
            _holds_the_turn(store, "named/kitchen")


async def what_was_said_yesterday_is_heard_through_the_custom_integration(house):
    async with _kitchen(house) as kitchen:
        inside = {f"SOTTOVOCE__CONTEXT__{name}": str(CONFIG / "spoken" / file) for name, file in (
            ("STORAGEROOT", "store"), ("KEYFILE", "key"))}
        with Model(reading) as model, Store(**model.environment(), **inside) as store:
            _yesterday(store, "named/kitchen")
            places = {"url": model.url, "folder": "/srv/config/spoken/store", "key_file": "/srv/config/spoken/key"}
            entry = await house.add("sottovoce", places, {"model": f"{NAME}:latest", "scope": "area"})
            await kitchen.ask(await house.entity(entry, "conversation"), model)
            await house.remove(entry)
            _holds_the_turn(store, "named/kitchen")

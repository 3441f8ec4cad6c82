"""From a spoken question to a spoken answer: piper speaks, faster-whisper hears, Home Assistant is between them and
`sottovoce wyoming`, and a satellite stands in the kitchen."""

import json
import time
from datetime import datetime, timedelta, timezone

from answers import reading, text
from model import Model
from report import say
from satellite import Satellite
from sottovoce import Agent, Store
from voices import heard, spoken, voices

FACT = "The key of the garden shed is under the blue flower pot."
QUESTION = "Where did I say yesterday that the key of the garden shed is?"
# So much was said after it on that day that the newest messages do not reach back to it.
SINCE = [words for number in range(30) for words in (
    ("user", f"Train number {number} to town was late again."), ("assistant", "I am sorry to hear that."))]
KEPT = ("blue", "flower", "pot")
SEEN = ("voice-started", "voice-stopped", "transcript", "synthesize", "audio-start", "audio-stop", "error")


def _yesterday(store, scope, *said):
    """Puts into a conversation what was said a day ago."""
    at = datetime.now(timezone.utc) - timedelta(days=1)
    lines = [json.dumps({"role": role, "content": words, "timestamp": (at + timedelta(seconds=number)).isoformat()})
             for number, (role, words) in enumerate(said)]
    file = store.folder / "yesterday.jsonl"
    file.write_text("\n".join(lines))
    store.run("--scope", scope, "import", "jsonl", str(file))


async def what_was_said_yesterday_is_heard_in_the_answer(house):
    async with voices() as (piper, whisper):
        satellite = await Satellite("kitchen").join(house)
        begun = time.monotonic()
        question = await spoken(piper, QUESTION)
        said = time.monotonic() - begun
        rooms = ["--map", f"{satellite.entity}=named/kitchen"]
        with Model(reading) as model, Store(**model.environment()) as store, Agent(store, *rooms) as server:
            _yesterday(store, "named/kitchen", ("user", FACT), ("assistant", "All right."), *SINCE)
            entries = [await house.add_wyoming(port) for port in (piper, whisper, server.port)]
            tts, stt, agent = [await house.entity(entry, domain) for entry, domain in zip(entries, ("tts", "stt", "conversation"))]
            pipeline = await house.pipeline("Spoken", agent, stt_engine=stt, stt_language="en", tts_engine=tts,
                                            tts_language="en_US", tts_voice="en_US-joe-medium")
            await house.command("assist_pipeline/pipeline/set_preferred", pipeline_id=pipeline)
            events, answer = await satellite.speak(question)
            assert answer, events
            begun = time.monotonic()
            words = await heard(whisper, answer)
            listened = time.monotonic() - begun
            prompt, held = text(model.asked[-1]), store.messages("kitchen")
            for entry in entries:
                await house.remove(entry)
            await satellite.leave(house)
            store.is_sound()
    seconds = lambda sound: len(sound[3]) / (sound[0] * sound[1] * sound[2])
    say(f"piper speaks       {QUESTION!r}: {seconds(question):.1f} s of sound in {said:.2f} s")
    for at, kind, data in events:
        if kind in SEEN:
            say(f"{at:6.2f} s  {kind:13}", (data.get("text") or "").strip())
    say("the model's prompt ", next(line for line in prompt.split("\\n") if FACT in line))
    say(f"whisper hears      {words!r}: {seconds(answer):.1f} s of sound in {listened:.2f} s")
    # Home Assistant itself finds where the words end, in the middle of the silence that the satellite sends after them.
    at = {kind: since for since, kind, _ in events}
    assert "voice-started" in at and 0 < at["voice-stopped"] < at["transcript"] < 5, events
    assert FACT in prompt, prompt
    assert all(word in words.lower() for word in KEPT), words
    assert [who for who, _ in held] == ["user", "assistant"] * 32, held

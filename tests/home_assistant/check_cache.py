"""How much of Home Assistant's prompts a model need not read again, with and without `sottovoce serve`."""

import asyncio
import re
import subprocess
import tempfile
from pathlib import Path

from model import NAME, Model
from report import table

ROOT = Path(__file__).parent.parent.parent
TURNS = 20
SAID = ("What did I say about the garden?", "Thank you.", "And what did I say about the train to town?", "Good.")


async def _recorded(house, tools):
    """The requests of one session of Home Assistant, as they came."""
    with Model(["Fine."]) as model:
        entry, agent = await house.add_ollama(model.url, "Recorded", f"{NAME}:latest", tools=tools)
        conversation = {}
        for turn in range(TURNS):
            if not tools:
                await asyncio.sleep(1)  # The time in the prompt has seconds.
            reply = await house.say(agent, f"{SAID[turn % len(SAID)]} That was number {turn}.", **conversation)
            conversation = {"conversation_id": reply.conversation}
        await house.remove(entry)
        return [body.decode() for body in model.bodies]


def _replayed(requests):
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
        file.write("\n".join(requests))
        file.flush()
        command = ["cargo", "bench", "-q", "--locked", "--profile", "dev", "-p", "sottovoce-serve", "--bench", "first_word", "--"]
        done = subprocess.run([*command, "--session", file.name], cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return [float(share) for share in re.findall(r"([\d.]+) %", done.stdout)]


async def the_beginning_of_a_prompt_stays_as_it_was(house):
    rows = []
    for tools in (True, False):
        requests = await _recorded(house, tools)
        assert len(requests) == TURNS
        directly, through = await asyncio.to_thread(_replayed, requests)
        rows.append(("with the house's functions" if tools else "without functions, with a time", f"{directly} %", f"{through} %"))
        assert through > 90 and through > directly - 5, rows
    table((f"{TURNS} turns, unchanged characters", "directly", "through serve"), rows)

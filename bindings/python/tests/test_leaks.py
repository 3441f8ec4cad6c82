"""Memory over many turns. `SOTTOVOCE_QUICK=1` makes it a tenth as many."""

import asyncio
import gc
import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor

import sottovoce

TURNS = 1_000 if os.environ.get("SOTTOVOCE_QUICK") else 10_000

# The allocator's own slack, and what the store keeps of the folder. One message leaked in each turn would be more.
SLACK = 8 << 20
WORDS = "x" * 2_000


def resident():
    gc.collect()
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def break_off(conversation):
    answer = await conversation.ask_async("In asyncio?")
    async for _ in answer:
        break
    conversation.tail_async().cancel()


def turn(conversation, n):
    conversation.hear(f"{n} {WORDS}", metadata={"item": WORDS})
    conversation.keep(f"{n} {WORDS}", spoken_up_to=len(WORDS) // 2)
    conversation.tail(4)
    if n % 10 == 0:
        conversation.ask(f"{n} How is it?").read()
        next(conversation.ask(f"{n} And now?"))
        asyncio.run(break_off(conversation))
        try:
            conversation.append("nobody", WORDS)
        except sottovoce.InvalidError:
            pass


def measure(options):
    """The memory after each fifth of the turns."""
    after = []
    with sottovoce.Store(**options, recall_tokens=0, max_messages=200, compact_at="") as store:
        conversation = store.conversation()
        for n in range(TURNS):
            turn(conversation, n)
            if (n + 1) % (TURNS // 5) == 0:
                after.append(resident())
    return after


def test_memory_stays_the_same_over_many_turns(options, model):
    options["base_url"] = model.url
    # In a process of its own, whose memory no other test has used.
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        after = pool.submit(measure, options).result()
    print(f"{TURNS} turns:", *(f"{size >> 10} KiB" for size in after))
    assert after[-1] - after[0] < SLACK

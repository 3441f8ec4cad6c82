import threading
import time
from concurrent.futures import ThreadPoolExecutor

import sottovoce


def test_threads_share_one_conversation_and_lose_nothing(conversation):
    def write(thread):
        return [conversation.append("user", f"{thread}.{n}").seq for n in range(25)]

    with ThreadPoolExecutor(8) as pool:
        numbers = [seq for seqs in pool.map(write, range(8)) for seq in seqs]
    assert sorted(numbers) == list(range(1, 201))
    assert {m.content for m in conversation.tail(500)} == {f"{t}.{n}" for t in range(8) for n in range(25)}


def test_turns_of_several_threads_wait_for_each_other(store, model):
    def ask(n):
        return store.conversation("dm/ann").ask(f"I am {n}.").read()

    with ThreadPoolExecutor(6) as pool:
        assert set(pool.map(ask, range(12))) == {"It is fine."}
    roles = [m.role for m in store.conversation("dm/ann").tail(50)]
    assert roles == ["user", "assistant"] * 12


def test_a_call_that_waits_holds_up_no_other_thread(slow, slow_model):
    answer = slow.ask("Count.")
    assert next(answer) == "One. "
    waiting = threading.Thread(target=lambda: next(answer, None))
    waiting.start()
    assert slow_model.stalled.wait(10)
    began, ticks = time.monotonic(), 0
    while time.monotonic() - began < 0.5:
        ticks += 1
        time.sleep(0.001)
    assert waiting.is_alive() and ticks > 100
    answer.close()
    waiting.join(10)
    assert not waiting.is_alive()


def test_two_stores_of_one_folder_see_each_other(options, model):
    with sottovoce.Store(**options) as one, sottovoce.Store(**options) as other:
        one.conversation().append("user", "Tea at four.")
        assert other.conversation().append("user", "At five.").seq == 2
        assert [m.content for m in one.conversation().tail()] == ["Tea at four.", "At five."]


def test_closing_in_one_thread_ends_what_others_wait_for(options, slow_model):
    store = sottovoce.Store(**options, base_url=slow_model.url)
    answer, taken = store.conversation().ask("Count."), []
    listening = threading.Thread(target=lambda: taken.extend(answer))
    listening.start()
    while not answer.text:
        time.sleep(0.01)
    store.close()
    store.close()
    listening.join(10)
    assert not listening.is_alive() and taken == ["One. "]

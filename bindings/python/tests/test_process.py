"""Signals, forks, and the end of the process: each in a process of its own."""

import signal
import subprocess
import sys
import time

import pytest

import sottovoce


def last(options):
    with sottovoce.Store(**options) as store:
        message = store.conversation("dm/ann").tail()[-1]
        return message.role, message.content, message.cut_off


def finish(process):
    out, err = process.communicate(timeout=30)
    assert "panicked" not in err and "Fatal" not in err, err
    return process.returncode, out, err


def test_ctrl_c_ends_a_waiting_call_and_what_was_taken_is_stored(script, slow_model, options):
    process = script(
        "answer = conversation.ask('Count.')\n"
        "try:\n"
        "    for text in answer: print(text, flush=True)\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted', answer.interrupted)\n"
        "store.close()\n",
        slow_model.url,
    )
    assert process.stdout.readline() == "One. \n"
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    assert finish(process)[:2] == (0, "interrupted True\n")
    assert last(options) == ("assistant", "One. ", "interrupted")


def test_what_was_taken_is_there_when_ctrl_c_returns(script, slow_model):
    process = script(
        "answer = conversation.ask('Count.')\n"
        "try:\n"
        "    for text in answer: print(text, flush=True)\n"
        "except KeyboardInterrupt:\n"
        "    said = conversation.tail()[-1]\n"
        "    print(said.content, said.cut_off)\n",
        slow_model.url,
    )
    assert process.stdout.readline() == "One. \n"
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    assert finish(process)[:2] == (0, "One.  interrupted\n")


def test_ctrl_c_without_a_handler_stores_what_was_taken(script, slow_model, options):
    process = script("for text in conversation.ask('Count.'): print(text, flush=True)\n", slow_model.url)
    assert process.stdout.readline() == "One. \n"
    process.send_signal(signal.SIGINT)
    code, _, err = finish(process)
    assert code != 0 and "KeyboardInterrupt" in err
    assert last(options) == ("assistant", "One. ", "interrupted")


def test_a_program_that_ends_in_the_middle_of_an_answer_stores_what_was_taken(script, slow_model, options):
    process = script("answer = conversation.ask('Count.')\nnext(answer)\n", slow_model.url)
    assert finish(process)[0] == 0
    assert last(options) == ("assistant", "One. ", "interrupted")


def test_a_signal_handler_that_does_not_raise_lets_the_call_go_on(script, slow_model):
    process = script(
        "signal.signal(signal.SIGUSR1, lambda *_: print('heard', flush=True))\n"
        "print(conversation.ask('Count.').read())\n",
        slow_model.url,
    )
    assert slow_model.stalled.wait(20)
    process.send_signal(signal.SIGUSR1)
    assert process.stdout.readline() == "heard\n"
    slow_model.go_on.set()
    assert finish(process)[:2] == (0, "One. Two. Three.\n")


CHILD = """
def refused(call):
    try:
        call()
    except sottovoce.ForkedError as error:
        return 'fork' in error.message and 'spawn' in error.help
    return False

answer = conversation.ask('Count.')
next(answer)
child = os.fork()
if child == 0:
    calls = [
        lambda: conversation.tail(), lambda: conversation.append('user', 'x'), lambda: conversation.ask('x'),
        lambda: store.scopes(), lambda: store.close(), lambda: store.conversation(), lambda: next(answer),
        lambda: answer.close(), lambda: answer.text, lambda: sottovoce.Store(storage_root='other'),
    ]
    print([refused(call) for call in calls].count(True), flush=True)
    del store, conversation, answer
    sys.exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
print(conversation.append('system', 'still here').role)
answer.close()
store.close()
"""


def test_a_forked_process_is_refused_and_disturbs_nothing(script, slow_model, options):
    assert finish(script(CHILD, slow_model.url))[:2] == (0, "10\n0\nsystem\n")
    with sottovoce.Store(**options) as store:
        said = [(m.content, m.cut_off) for m in store.conversation("dm/ann").tail()]
    assert ("One. ", "interrupted") in said and ("still here", None) in said


def test_a_process_that_is_forked_before_the_first_use_works(tmp_path):
    program = (
        "import os, sottovoce\n"
        "if os.fork() == 0:\n"
        f"    with sottovoce.Store(storage_root={str(tmp_path / 's')!r}, key_file={str(tmp_path / 'k')!r}) as store:\n"
        "        print(store.conversation().append('user', 'x').seq, flush=True)\n"
        "else:\n"
        "    os.wait()\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stdout) == (0, "1\n")


def test_threads_that_wait_at_the_end_of_the_program_do_no_harm(script, slow_model, options):
    process = script(
        "answer = conversation.ask('Count.')\n"
        "threading.Thread(target=lambda: list(answer), daemon=True).start()\n"
        "time.sleep(1)\n",
        slow_model.url,
    )
    assert finish(process)[0] == 0
    assert last(options) == ("assistant", "One. ", "interrupted")


@pytest.mark.parametrize("end", ["pass", "raise SystemExit(3)", "sys.exit('x')"])
def test_asyncio_programs_that_end_early_do_no_harm(script, slow_model, end):
    process = script(
        "async def main():\n"
        "    answer = await conversation.ask_async('Count.')\n"
        "    task = asyncio.ensure_future(answer.read_async())\n"
        "    await asyncio.sleep(0.5)\n"
        f"    {end}\n"
        "asyncio.run(main())\n",
        slow_model.url,
    )
    finish(process)


def test_a_program_that_ends_right_after_its_last_result_ends_well(tmp_path):
    program = (
        "import asyncio, sottovoce\n"
        "async def talk():\n"
        f"    async with sottovoce.Store(storage_root={str(tmp_path / 'store')!r}, key_file={str(tmp_path / 'key')!r}) as store:\n"
        "        await asyncio.gather(*(store.scopes_async() for _ in range(20)))\n"
        "asyncio.run(talk())\n"
    )
    # A crash in the interpreter's end was seen in one run of twelve.
    for _ in range(15):
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30)
        assert done.returncode == 0, done.stderr

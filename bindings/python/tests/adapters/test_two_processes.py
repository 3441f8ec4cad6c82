"""A conversation by way of each framework, in two processes: the second remembers what was said in the first."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import Model

TALKERS = Path(__file__).with_name("talkers.py")
FRAMEWORKS = {"pipecat_llm": "pipecat", "pipecat_memory": "pipecat", "livekit": "livekit.agents", "agents": "agents"}


def _answer(body):
    """Knows the sister's name if it was told."""
    said = [str(message.get("content")) for message in body["messages"]]
    return ["She is ", "called Ada."] if any("sister is called Ada" in words for words in said) else ["I do not ", "know."]


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_the_second_process_remembers_what_the_first_was_told(framework, tmp_path):
    pytest.importorskip(FRAMEWORKS[framework], reason=f"{FRAMEWORKS[framework]} is not installed")
    with Model(pieces=_answer) as model:
        environment = {**os.environ, "STORE": str(tmp_path / "store"), "KEY": str(tmp_path / "key"), "MODEL": model.url}

        def say(words):
            run = subprocess.run([sys.executable, str(TALKERS), framework, words], env=environment, text=True,
                                 capture_output=True, timeout=60)
            assert run.returncode == 0, run.stderr
            return run.stdout.strip().splitlines()[-1]

        assert say("What is my sister called?") == "I do not know."
        assert say("My sister is called Ada.") == "She is called Ada."
        assert say("What is my sister called?") == "She is called Ada."
        assert len(model.asked) == 3
    import sottovoce

    with sottovoce.Store(storage_root=tmp_path / "store", key_file=tmp_path / "key", base_url="http://127.0.0.1:9") as store:
        messages = store.conversation("dm/ann").tail()
    assert [message.role for message in messages] == ["user", "assistant"] * 3
    assert messages[2].content == "My sister is called Ada."
    assert messages[5].content == "She is called Ada." and messages[5].cut_off is None
    for file in (tmp_path / "store").rglob("*"):
        # A short word stands in random bytes sometimes.
        assert not file.is_file() or b"is called Ada" not in file.read_bytes()

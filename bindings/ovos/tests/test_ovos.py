"""A persona in two processes, and its sessions."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests/clients"))

from model import Model  # noqa: E402

sys.path.remove(str(ROOT / "tests/clients"))

import sottovoce  # noqa: E402
from ovos_plugin_manager.agents import load_chat_plugin, load_memory_plugin  # noqa: E402
from ovos_plugin_manager.templates.agents import AgentMessage, MessageRole  # noqa: E402

USER, ASSISTANT = MessageRole.USER, MessageRole.ASSISTANT


def _answer(body):
    said = [str(message.get("content")) for message in body["messages"]]
    return ["She is ", "called Ada."] if any("sister is called Ada" in words for words in said) else ["I do not ", "know."]


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    for name in [name for name in os.environ if name.upper().startswith(("SOTTOVOCE__", "XDG_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def options(tmp_path):
    return {"storage_root": str(tmp_path / "store"), "key_file": str(tmp_path / "key")}


def _tail(options, scope="default"):
    with sottovoce.Store(**options) as store:
        return [(message.role, message.content) for message in store.conversation(scope).tail()]


@pytest.mark.parametrize("mode", ["memory", "chat"])
def test_the_second_process_remembers_what_the_first_was_told_and_another_session_does_not(mode, options):
    with Model(pieces=_answer) as model:
        environment = {**os.environ, "STORE": options["storage_root"], "KEY": options["key_file"], "MODEL": model.url}

        def say(words, session="default"):
            talk = [sys.executable, str(Path(__file__).with_name("talk.py")), mode, words]
            run = subprocess.run(talk, env={**environment, "SESSION": session}, text=True, capture_output=True, timeout=90)
            assert run.returncode == 0, run.stderr
            return " ".join(json.loads(run.stdout.strip().splitlines()[-1]).split())

        assert say("My sister is called Ada.") == "She is called Ada."
        assert say("What is my sister called?") == "She is called Ada."
        assert say("What is my sister called?", "satellite-7") == "I do not know."
    assert [role for role, _ in _tail(options)] == ["user", "assistant"] * 2
    assert _tail(options)[2] == ("user", "What is my sister called?")
    assert len(_tail(options, "named/satellite-7")) == 2


def test_an_exchange_that_ovos_tells_afterwards_is_stored_once(options):
    memory = load_memory_plugin("ovos-sottovoce-memory-plugin")({**options, "scopes": {"kitchen-1": "named/kitchen"}})
    context = memory.build_conversation_context(" Good morning. ", "kitchen-1")
    assert context[-1].role == USER and "Good morning." in context[-1].content
    memory.update_history([AgentMessage(USER, "Good morning."), AgentMessage(ASSISTANT, "Hello.")], "kitchen-1")
    # What a skill said, of which the memory has not heard.
    memory.update_history([AgentMessage(USER, "Timer!"), AgentMessage(ASSISTANT, "Set."), AgentMessage(ASSISTANT, "Bye.")],
                          "kitchen-1")
    history = [(message.role, message.content) for message in memory.get_history("kitchen-1")]
    assert history == [(USER, "Good morning."), (ASSISTANT, "Hello."), (USER, "Timer!"), (ASSISTANT, "Set."), (ASSISTANT, "Bye.")]
    assert len(_tail(options, "named/kitchen")) == 5


def test_a_caller_that_stops_listening_interrupts_the_answer(options):
    with Model(pieces=["One. ", "Two. ", "Three."], stall_after=2) as model:
        chat = load_chat_plugin("ovos-sottovoce-chat-plugin")({**options, "base_url": model.url})
        sentences = chat.stream_sentences([AgentMessage(USER, "Count.")], lang="en-us")
        assert next(sentences).strip() == "One."
        sentences.close()
        model.go_on.set()
        chat.continue_chat([])
    with sottovoce.Store(**options) as store:
        conversation = store.conversation()
        conversation.close()
        assert conversation.tail()[0].metadata["lang"] == "en-us"


def test_without_an_utterance_nobody_is_asked(options):
    chat = load_chat_plugin("ovos-sottovoce-chat-plugin")({**options, "base_url": "http://127.0.0.1:9"})
    assert chat.continue_chat([AgentMessage(ASSISTANT, "Hello.")]).content == ""

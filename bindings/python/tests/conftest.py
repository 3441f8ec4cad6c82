"""What the tests share: a home folder of their own, a scripted model server, and an open store."""

import importlib.util
import os
import sys
from pathlib import Path

import pytest

import sottovoce

ROOT = Path(__file__).resolve().parents[3]


def load(path):
    """A module by its path. Beside it lies one that is called as the package is."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


Model = load(ROOT / "tests/clients/model.py").Model


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """Nothing is read from the tester's settings, and nothing is written into them."""
    for name in [name for name in os.environ if name.upper().startswith(("SOTTOVOCE__", "XDG_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "home"


@pytest.fixture
def model():
    with Model() as model:
        yield model


@pytest.fixture
def slow_model():
    """A model that says one piece and waits."""
    with Model(pieces=["One. ", "Two. ", "Three."], stall_after=1) as model:
        yield model


@pytest.fixture
def options(tmp_path):
    return {"storage_root": tmp_path / "store", "key_file": tmp_path / "key"}


@pytest.fixture
def store(options, model):
    with sottovoce.Store(**options, base_url=model.url) as store:
        yield store


@pytest.fixture
def conversation(store):
    return store.conversation("dm/ann")


@pytest.fixture
def slow(options, slow_model):
    """A conversation with that model."""
    with sottovoce.Store(**options, base_url=slow_model.url) as store:
        yield store.conversation("dm/ann")


@pytest.fixture
def script(tmp_path, options):
    """Starts a program in a process of its own, with an open store `store` and a conversation `conversation`."""
    import subprocess

    def start(body, url="http://127.0.0.1:9"):
        text = (
            "import asyncio, os, signal, sys, threading, time\nimport sottovoce\n"
            # What starts in a background ignores Ctrl-C.
            "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
            f"store = sottovoce.Store(storage_root={str(options['storage_root'])!r}, "
            f"key_file={str(options['key_file'])!r}, base_url={url!r})\n"
            "conversation = store.conversation('dm/ann')\n" + body
        )
        path = tmp_path / "program.py"
        path.write_text(text)
        return subprocess.Popen(
            [sys.executable, "-W", "ignore::DeprecationWarning", str(path)], text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )

    return start

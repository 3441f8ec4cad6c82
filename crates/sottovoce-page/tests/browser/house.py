"""Stores in temporary folders, and the page of one of them."""

import json
import os
import re
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

CLIENTS = Path(__file__).resolve().parents[4] / "tests" / "clients"
sys.path.insert(0, str(CLIENTS))
from model import Model  # noqa: E402, F401: the model server that the other checks use too.

PROGRAM = os.environ.get("SOTTOVOCE", "sottovoce")


class Store:
    """A store that nobody else uses. It is gone with the `with` block."""

    def __init__(self, **settings):
        self._folder = tempfile.TemporaryDirectory(prefix="sottovoce-page-")
        self.folder = Path(self._folder.name)
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "TZ": "Europe/Berlin",
            "SOTTOVOCE__CONTEXT__STORAGEROOT": str(self.folder / "store"),
            "SOTTOVOCE__CONTEXT__KEYFILE": str(self.folder / "config" / "key"),
            # Nothing listens there, unless a check has a model.
            "SOTTOVOCE__LANGUAGEMODEL__BASEURL": "http://127.0.0.1:9",
            **settings,
        }

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._folder.cleanup()

    def run(self, *arguments, code=0, input=None):
        """Runs the program; its standard output, once it has ended with that code."""
        done = subprocess.run([PROGRAM, *arguments], env=self.environment, cwd=self.folder, input=input,
                              capture_output=True, text=True, timeout=60)
        assert done.returncode == code, (arguments, done.returncode, done.stdout, done.stderr)
        return done.stdout

    def say(self, scope, *messages):
        """Stores messages: a role, the words, and what else a message has."""
        lines = [json.dumps({"role": role, "content": words, **(more[0] if more else {})}) for role, words, *more in messages]
        return self.run("--scope", scope, "append", input="\n".join(lines) + "\n")

    def said(self, scope):
        lines = self.run("--scope", scope, "tail", "-n", "1000", "--json").splitlines()
        return [json.loads(line) for line in lines]

    def numbers(self, scope):
        """The numbers of the messages of a conversation."""
        return [message["seq"] for message in self.said(scope)]

    @contextmanager
    def page(self, *arguments, model=None, **settings):
        """The page of this store: its link, and what it prints."""
        environment = {**self.environment, **(model.environment() if model else {}), **settings}
        program = subprocess.Popen([PROGRAM, "page", "--addr", "127.0.0.1:0", *arguments], env=environment, cwd=self.folder,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            link = program.stdout.readline().strip()
            assert link.startswith("http"), (link, program.stderr.read())
            yield Served(link, program)
        finally:
            program.terminate()
            try:
                program.wait(15)
            finally:
                program.kill()

    def refusal(self):
        """Why the page of this store does not start."""
        done = subprocess.run([PROGRAM, "page", "--addr", "127.0.0.1:0"], env=self.environment, cwd=self.folder, timeout=60,
                              capture_output=True, text=True)
        assert done.returncode != 0 and not done.stdout, done
        return done.stderr


class Served:
    def __init__(self, link, program):
        self.link, self.program = link, program
        self.origin = re.match(r"https?://[^/]+", link)[0]

    def next_link(self):
        """The link that is printed once the page is locked."""
        while line := self.program.stderr.readline():
            if found := re.search(r"https?://\S+/enter\S+", line):
                return found[0]
        raise AssertionError("no new link was printed")

"""Stores in temporary folders, the program run on them, and servers of them."""

import json
import os
import re
import subprocess
import tempfile
import threading
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import anyio
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

PROGRAM = os.environ.get("SOTTOVOCE", "sottovoce")
TOKEN = "a-long-secret-for-checks"
# What the SDK calls the eras: `legacy` begins with a handshake, `auto` finds that the server speaks the newest revision.
ERAS = {"legacy": "2025-11-25", "auto": "2026-07-28"}
WAYS = [(era, transport) for era in ERAS for transport in ("stdio", "http")]


class Store:
    """A store that nobody else uses. It is gone with the `with` block."""

    def __init__(self, **settings):
        self._folder = tempfile.TemporaryDirectory(prefix="sottovoce-clients-")
        self.folder = Path(self._folder.name)
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "SOTTOVOCE__CONTEXT__STORAGEROOT": str(self.folder / "store"),
            "SOTTOVOCE__CONTEXT__KEYFILE": str(self.folder / "key"),
            # Nothing listens there, unless a check has a model.
            "SOTTOVOCE__LANGUAGEMODEL__BASEURL": "http://127.0.0.1:9",
            **settings,
        }
        self.run("init")

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

    def messages(self, context):
        """What a context holds, as the program itself tells it: pairs of who speaks and the words."""
        return self.scope(f"named/{context}")

    def scope(self, scope):
        """The same of any conversation."""
        lines = self.run("--scope", scope, "tail", "-n", "1000", "--json").splitlines()
        return [(line["role"].lower(), line["content"]) for line in map(json.loads, lines)]

    async def keeps(self, context, *wanted):
        """Waits until a context holds these messages, since what was broken off is kept a little later."""
        for _ in range(50):
            held = await anyio.to_thread.run_sync(self.messages, context)
            if held == list(wanted):
                return
            await anyio.sleep(0.1)
        raise AssertionError((held, wanted))

    def is_sound(self):
        self.run("verify", "--all")

    def parameters(self, *arguments):
        return StdioServerParameters(command=PROGRAM, args=["mcp", *arguments], env=self.environment, cwd=self.folder)


class Listening:
    """A server of the program; `errors` is what it said on standard error so far, and `at` where it says that it listens."""

    # What is read of it.
    OUTPUT = {"stderr": subprocess.PIPE}

    def __init__(self, store, *arguments, says, **settings):
        self.process = subprocess.Popen([PROGRAM, *arguments], env={**store.environment, **settings}, cwd=store.folder,
                                        text=True, **self.OUTPUT)
        self._lines = self.process.stderr or self.process.stdout
        self.errors, self.at = "", None
        for line in self._lines:
            self.errors += line
            if found := re.search(says, line):
                self.at = found[1]
                break
        assert self.at, self.errors
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self._lines:
            self.errors += line

    @property
    def port(self):
        return int(re.search(r":(\d+)", self.at.removeprefix("http:"))[1])

    def kill(self):
        """As a power cut would: with no time to finish anything."""
        self.process.kill()
        self.process.wait()

    def stop(self):
        """The code with which it ends when it is asked to."""
        self.process.terminate()
        try:
            return self.process.wait(15)
        finally:
            self.process.kill()
            self._reader.join(5)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


class Http(Listening):
    """A server of MCP."""

    def __init__(self, store, *arguments, token=TOKEN):
        settings = {"SOTTOVOCE__MCP__TOKEN": token} if token else {}
        super().__init__(store, "mcp", "--http", "127.0.0.1:0", *arguments, says=r"(http://\S+/mcp)", **settings)
        self.token, self.url = token, self.at


class Endpoint(Listening):
    """A `sottovoce serve`."""

    def __init__(self, store, port=0, scope="default", **settings):
        super().__init__(store, "--verbose", "--scope", scope, "serve", "--addr", f"127.0.0.1:{port}", says=r"serving at (http://\S+)", **settings)
        self.url = self.at


class Agent(Listening):
    """A `sottovoce wyoming`."""

    def __init__(self, store, *arguments, port=0):
        super().__init__(store, "wyoming", "--addr", f"127.0.0.1:{port}", *arguments, says=r"answering at (127\.0\.0\.1:\d+)")


@contextmanager
def http_server(store, *arguments, token=TOKEN):
    server = Http(store, *arguments, token=token)
    try:
        yield server
    finally:
        server.stop()


@asynccontextmanager
async def http_client(url, era, token=TOKEN, **options):
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with create_mcp_http_client(headers=headers) as connection:
        async with Client(streamable_http_client(url, http_client=connection), mode=era, cache=None, **options) as client:
            yield client


@asynccontextmanager
async def client(store, era, transport, **options):
    """A client of a server of its own."""
    options = {"read_timeout_seconds": 30, **options}
    if transport == "stdio":
        async with Client(store.parameters(), mode=era, cache=None, **options) as connected:
            assert connected.protocol_version == ERAS[era], connected.protocol_version
            yield connected
        return
    with http_server(store) as server:
        async with http_client(server.url, era, **options) as connected:
            assert connected.protocol_version == ERAS[era], connected.protocol_version
            yield connected


async def done(client, tool, **arguments):
    """What a tool answers; the SDK has it fit the tool's schema."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, (tool, arguments, result.content[0].text)
    assert json.loads(result.content[0].text) == result.structured_content
    return result.structured_content


async def refused(client, tool, **arguments):
    """Why a tool does not do it."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error, (tool, arguments, result.structured_content)
    assert result.structured_content is None
    return result.content[0].text


async def make_context(client, name="Mira", **more):
    given = {"systemPrompt": "You are Mira.", "personality": "Warm and brief", "temperature": 0.25, "maxTokens": 77, **more}
    return (await done(client, "context-manage", action="create", name=name, **given))["contextId"]

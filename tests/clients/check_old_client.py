"""A client made before the newest revision, of an SDK with its own code for everything."""

import os
import subprocess
from pathlib import Path

import anyio

from model import Model
from sottovoce import PROGRAM, TOKEN, Store, http_server

PYTHON = os.environ.get("OLD_PYTHON", "python3")
SCRIPT = Path(__file__).parent / "old_client.py"


async def an_older_client_can_do_everything_that_it_knows():
    with Model(pieces=["word "] * 5, pause=0.1) as model, Store(**model.environment()) as store:
        await _run(store, "stdio", PROGRAM, "mcp")
    with Model(pieces=["word "] * 5, pause=0.1) as model, Store(**model.environment()) as store:
        with http_server(store) as server:
            await _run(store, "http", server.url, TOKEN)


async def _run(store, *arguments):
    def run():
        return subprocess.run([PYTHON, SCRIPT, *arguments], env=store.environment, capture_output=True, text=True, timeout=60)

    done = await anyio.to_thread.run_sync(run)
    assert done.returncode == 0, (done.stdout, done.stderr)

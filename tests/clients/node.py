"""Programs that run on Node."""

import json
import os
import subprocess
from pathlib import Path

BIN = Path(os.environ.get("NODE_BIN", "node_modules/.bin"))


def run(program, *arguments, cwd, environment=None, timeout=120):
    """The code with which it ends, its standard output and its standard error."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(cwd), "MCP_INSPECTOR_SECRET_STORE": "memory", **(environment or {})}
    done = subprocess.run([str(BIN / program), *map(str, arguments)], env=environment, cwd=cwd, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=timeout)
    return done.returncode, done.stdout, done.stderr


def inspect(store, *arguments):
    """What the inspector prints of a server."""
    code, output, errors = run("mcp-inspector", "--cli", *arguments, "--format", "json", cwd=store.folder)
    assert code == 0, (arguments, code, output, errors)
    return json.loads(output.splitlines()[-1])

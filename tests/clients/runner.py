"""Runs the checks of the files named check_*.py, or of those given: `python runner.py [scopes http ...]`.

What is said on standard error names each check by what it shows. Environment: SOTTOVOCE and CONFORMANCE_SERVER are the
programs, NODE_BIN the folder of Node's commands, OLD_PYTHON an interpreter with an older SDK.
"""

import importlib
import inspect
import logging
import sys
import time
import traceback
import warnings
from pathlib import Path

import anyio
from mcp import MCPDeprecationWarning

LIMIT = 120


def checks(names):
    for name in names:
        module = importlib.import_module(f"check_{name}")
        for function in list(vars(module).values()):
            is_own = inspect.iscoroutinefunction(function) and function.__module__ == module.__name__
            if is_own and not function.__name__.startswith("_"):
                yield name, function


async def bounded(function):
    with anyio.fail_after(LIMIT):
        await function()


def main():
    # Older revisions of the protocol are what is tried too.
    warnings.simplefilter("ignore", MCPDeprecationWarning)
    logging.getLogger("mcp").setLevel(logging.ERROR)
    here = Path(__file__).parent
    names = sys.argv[1:] or sorted(path.stem.removeprefix("check_") for path in here.glob("check_*.py"))
    failed, begun = [], time.monotonic()
    for name, function in checks(names):
        words = f"{name}: {function.__name__.replace('_', ' ')}"
        at = time.monotonic()
        try:
            anyio.run(bounded, function)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            failed.append(words)
            print(f"FAILED  {words}", file=sys.stderr)
            traceback.print_exc()
        else:
            print(f"ok      {words} ({time.monotonic() - at:.1f}s)", file=sys.stderr)
    print(f"{len(failed)} failed ({time.monotonic() - begun:.0f}s)", file=sys.stderr)
    for words in failed:
        print(f"FAILED  {words}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

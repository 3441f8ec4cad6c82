"""Runs the checks of the files named check_*.py, or of those given: `python runner.py [scopes http ...]`.

What is said on standard error names each check by what it shows. Environment: SOTTOVOCE and CONFORMANCE_SERVER are the
programs, NODE_BIN the folder of Node's commands, OLD_PYTHON an interpreter with an older SDK.
"""

import logging
import sys
import time
import traceback
import warnings
from pathlib import Path

import anyio
from checks import checks
from mcp import MCPDeprecationWarning

LIMIT = 120


async def bounded(function):
    with anyio.fail_after(LIMIT):
        await function()


def main():
    # Older revisions of the protocol are what is tried too.
    warnings.simplefilter("ignore", MCPDeprecationWarning)
    logging.getLogger("mcp").setLevel(logging.ERROR)
    failed, begun = [], time.monotonic()
    for name, function in checks(Path(__file__).parent, sys.argv[1:]):
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

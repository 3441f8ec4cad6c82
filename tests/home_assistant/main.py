"""Runs the checks of the files named check_*.py, or of those given, against one Home Assistant: `python main.py [NAME…]`.

Environment: SOTTOVOCE is the program, HA_SYSTEM the folder in which Home Assistant is installed.
"""

import asyncio
import importlib
import inspect
import sys
import time
import traceback
from pathlib import Path

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent / "clients"))
LIMIT = 300


def checks(names):
    for name in names:
        module = importlib.import_module(f"check_{name}")
        for function in list(vars(module).values()):
            is_own = inspect.iscoroutinefunction(function) and function.__module__ == module.__name__
            if is_own and not function.__name__.startswith("_"):
                yield name, function


async def main():
    from house import House

    names = sys.argv[1:] or sorted(path.stem.removeprefix("check_") for path in HERE.glob("check_*.py"))
    found, failed, begun = list(checks(names)), 0, time.monotonic()
    async with House() as house:
        version = (await house.call("GET", "/api/config"))["version"]
        print(f"Home Assistant {version} answers after {time.monotonic() - begun:.0f}s", file=sys.stderr)
        for name, function in found:
            words, at = f"{name}: {function.__name__.replace('_', ' ')}", time.monotonic()
            try:
                await asyncio.wait_for(function(house), LIMIT)
            except Exception:
                failed += 1
                print(f"FAILED  {words}", file=sys.stderr)
                traceback.print_exc()
            else:
                print(f"ok      {words} ({time.monotonic() - at:.1f}s)", file=sys.stderr)
        if failed:
            print(f"Home Assistant's log is {house.log}", file=sys.stderr)
    print(f"{len(found) - failed} passed, {failed} failed ({time.monotonic() - begun:.0f}s)", file=sys.stderr)
    return failed > 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))

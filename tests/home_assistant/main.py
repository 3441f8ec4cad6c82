"""Runs the checks of the files named check_*.py, or of those given, against one Home Assistant: `python main.py [NAME…]`.

Environment: SOTTOVOCE is the program, HA_SYSTEM the folder in which Home Assistant is installed.
"""

import asyncio
import sys
import time
import traceback
from pathlib import Path

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent / "clients"))
LIMIT = 300


async def main():
    from checks import checks
    from house import House

    found, failed, begun = list(checks(HERE, sys.argv[1:])), 0, time.monotonic()
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

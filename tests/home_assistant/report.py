"""What is shown to who runs the checks, and small helpers."""

import json
import sys
from urllib.request import urlopen


def say(*words):
    print("       ", *words, file=sys.stderr, flush=True)


def table(head, rows):
    rows = [tuple(map(str, row)) for row in (head, *rows)]
    widths = [max(map(len, column)) for column in zip(*rows)]
    for row in rows:
        say("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())


def urlopen_json(url):
    with urlopen(url, timeout=20) as answer:
        return json.load(answer)

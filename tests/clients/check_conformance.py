"""The protocol's own suite against a server with the fixtures that it wants, served by the same transport."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import anyio

from node import run

SERVER = os.environ.get("CONFORMANCE_SERVER", "conformance")
EXPECTED = Path(__file__).parent / "expected-failures.yml"


async def the_suite_passes_at_the_last_revision_with_a_handshake():
    await anyio.to_thread.run_sync(_suite, "2025-11-25", 80)


async def the_suite_passes_at_the_revision_without_one():
    await anyio.to_thread.run_sync(_suite, "2026-07-28", 150)


def _suite(revision, at_least):
    # All scenarios, with those that are not scored; the extensions, which nobody has to have, are left out.
    scenarios = ("--suite", "all", "--spec-version", revision)
    server = subprocess.Popen([SERVER], stderr=subprocess.PIPE, text=True)
    try:
        url = server.stderr.readline().strip()
        with tempfile.TemporaryDirectory() as folder:
            code, output, errors = run("conformance", "server", "--url", url, *scenarios, "--expected-failures", EXPECTED,
                                       "-o", folder, cwd=Path(folder))
    finally:
        server.kill()
        server.wait()
    total = [line for line in output.splitlines() if line.startswith("Total:")]
    print(f"conformance {revision}: {total[0] if total else 'no summary'}", file=sys.stderr)
    failures = [line for line in output.splitlines() if "✗" in line or "FAIL" in line]
    assert code == 0 and total, (code, failures, output[-3000:], errors[-3000:])
    # A suite that finds nothing to do passes too.
    assert int(total[0].split()[1]) >= at_least, total

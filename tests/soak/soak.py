"""A home that is lived in for hours: `sottovoce up` with all its servers, a second device, and a member of a team.

    .ci/soak [MINUTES] [FOLDER]

People speak in bursts with pauses between them, through Wyoming, Ollama's interface, MCP, the page and the command line. In the first
part servers are restarted and killed, the disk fills up, clocks jump and the key changes; in the second part they are left alone, and
memory and descriptors must stay flat. In the end everything that was acknowledged must be there, in its own conversation and nowhere
else, on every device that shares it, and nothing that was forgotten. FOLDER gets the samples and a plot."""

import csv
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from contextlib import suppress
from http.cookiejar import CookieJar
from pathlib import Path
from statistics import median

import anyio

sys.path.insert(0, str(Path(__file__).parents[1] / "clients"))
from model import NAME, Model  # noqa: E402
from sottovoce import Listening, Store, done, http_client  # noqa: E402
from wyoming.asr import Transcript  # noqa: E402
from wyoming.client import AsyncTcpClient  # noqa: E402
from wyoming.handle import HandledStop, NotHandled  # noqa: E402

FAKETIME = next(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), None)
# The part of the time in which things happen to the servers.
ROUGH = 0.4
# How much more may be resident at the end than in the middle, and what a message may add to the indices besides. Threads that wait for
# disks are as many as were busy at once.
FLAT, INDEX_BYTES = 0.05, 4096
SHARED, ADDRESSES = "named/kitchen", {
    "serve": r"serving at (http://[^/\s]+)$", "wyoming": r"answering at \S+:(\d+)$", "mcp": r"serving at (\S+/mcp)$",
    "health": r"health at (\S+)$", "page": r"(http://\S+/enter\?key=\S+)"}
SETTINGS = {
    "SERVE__ADDRESS": "127.0.0.1:0", "WYOMING__ADDRESSES": "127.0.0.1:0", "MCP__ADDRESS": "127.0.0.1:0", "PAGE__ADDRESS": "127.0.0.1:0",
    "UP__HEALTHADDRESS": "127.0.0.1:0", "SYNC__INTERVALSECONDS": "5", "WYOMING__MAP": "assist_satellite.kitchen=named/kitchen"}


def say(words):
    print(f"{time.strftime('%H:%M:%S')}  {words}", flush=True)


class Ledger:
    """What was said in each conversation: tried, acknowledged, forgotten. Each text has a word of its own."""

    def __init__(self):
        self.tried, self.kept, self.forgotten, self.count = {}, {}, {}, 0

    def words(self, scope):
        self.count += 1
        word = f"{scope.split('/')[-1]}{self.count:06}"
        self.tried.setdefault(scope, set()).add(word)
        things = ("the lamp", "the kettle", "Ada's birthday", "the boiler", "the garden", "the neighbour's cat")
        return word, f"Please note {word}: {random.choice(things)} is {random.choice(('old', 'green', 'late', 'ready', 'upstairs'))}."

    def holds(self, scope, lines, whose):
        """Compares with what a device holds. Returns how many texts that are."""
        held = {word for line in lines if line["role"].lower() == "user" for word in re.findall(r"note (\w+\d{6})", line["content"])}
        kept, forgotten = self.kept.get(scope, set()), self.forgotten.get(scope, set())
        wrong = {"lost": kept - forgotten - held, "come back": forgotten & held,
                 "of elsewhere": held - self.tried.get(scope, set())}
        wrong = {what: sorted(words)[:5] for what, words in wrong.items() if words}
        assert not wrong, f"{whose}, {scope}: {wrong}"
        return len(held)


class Server(Listening):
    """One that says where it is on standard output too."""

    OUTPUT = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}

    def found(self, pattern):
        """What the newest line of this pattern names, once there is one."""
        end = time.monotonic() + 30
        while not (found := re.findall(pattern, self.errors, re.MULTILINE)):
            assert time.monotonic() < end, (pattern, self.errors)
            time.sleep(0.05)
        return found[-1]


class Home:
    def __init__(self, folder, model):
        self.ledger = Ledger()
        self.clock = folder / "clock"
        self.clock.write_text("+0\n")
        self.store = Store(**model.environment(), **{f"SOTTOVOCE__{name}": value for name, value in SETTINGS.items()})
        self.phone, self.ben = Store(), Store()
        self.team = Server(self.store, "team", "serve", "--addr", "127.0.0.1:0", "--data", str(folder / "team"), says=r"(http://\S+/#start:\S+)")
        self.up, self.samples, self.is_rough, self.begun = None, [], True, time.monotonic()
        self.faked = {"LD_PRELOAD": str(FAKETIME), "FAKETIME_TIMESTAMP_FILE": str(self.clock), "FAKETIME_NO_CACHE": "1",
                      "FAKETIME_DONT_FAKE_MONOTONIC": "1"} if FAKETIME else {}
        if not self.faked:
            print("SKIPPED: there is no libfaketime; clocks do not jump", flush=True)

    def prepare(self, folder):
        run = self.store.run
        run("--scope", SHARED, "append", "The kitchen is shared.")
        run("context", "create", "--name", "Mira", "--system-prompt", "You are Mira.")
        (folder / "remote").mkdir()
        run("sync", "init", str(folder / "remote"), "--name", "kitchen")
        run("device", "add", "--to", str(folder / "code"))
        self.phone.run("device", "join", str(folder / "code"), "--name", "phone")
        run("team", "create", self.team.at, "Home", "--as", "Ann")
        run("team", "share", "kitchen")
        run("team", "sync")
        run("team", "invite", "kitchen", "--to", str(folder / "link"))
        self.ben.run("team", "join", str(folder / "link"), "--as", "Ben")

    def start(self):
        self.up = Server(self.store, "up", says=ADDRESSES["mcp"], **self.faked)
        for name, pattern in ADDRESSES.items():
            setattr(self, name, self.up.found(pattern))
        self.browser = None

    def sample(self):
        pid = self.up.process.pid
        with suppress(OSError, TypeError):
            status = Path(f"/proc/{pid}/status").read_text()
            number = lambda name: int(re.search(rf"{name}:\s+(\d+)", status)[1])
            self.samples.append({"seconds": round(time.monotonic() - self.begun, 1), "pid": pid, "rss_kb": number("VmRSS"), "anon_kb": number("RssAnon"),
                                 "threads": number("Threads"), "descriptors": len(os.listdir(f"/proc/{pid}/fd")),
                                 "messages": self.ledger.count, "rough": int(self.is_rough)})

    # The ways to speak. Each raises if it was not acknowledged.

    async def wyoming_says(self, words):
        async with AsyncTcpClient("127.0.0.1", int(self.wyoming)) as client:
            await client.write_event(Transcript(text=words, language="en", context={"satellite_id": "assist_satellite.kitchen"}).event())
            while event := await client.read_event():
                if NotHandled.is_type(event.type):
                    break
                if HandledStop.is_type(event.type):
                    return
        raise ConnectionError("no answer")

    async def serve_says(self, words, path=""):
        body = json.dumps({"model": NAME, "messages": [{"role": "user", "content": words}]}).encode()

        def ask():
            with urllib.request.urlopen(urllib.request.Request(f"{self.serve}{path}/api/chat", body), timeout=30) as answer:
                lines = [json.loads(line) for line in answer.read().split(b"\n") if line]
            if not lines[-1].get("done") or "error" in lines[-1]:
                raise ConnectionError("no whole answer")

        await anyio.to_thread.run_sync(ask)

    async def mcp_says(self, words):
        async with http_client(self.mcp, "auto", token=None) as client:
            await done(client, "context-chat", contextId="Mira", message=words)

    async def command_says(self, words):
        await anyio.to_thread.run_sync(lambda: self.store.run("--user", "ann", "append", words))

    async def page_reads(self):
        def read():
            if self.browser is None:
                self.browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
                self.browser.open(self.up.found(ADDRESSES["page"]), timeout=20).read()
            base = self.page.split("/enter")[0]
            for path in ("/", "/search?q=lamp"):
                assert b"html" in self.browser.open(base + path, timeout=20).read()

        await anyio.to_thread.run_sync(read)


async def speaks(home, scope, way, mean):
    """Bursts of a few turns, with pauses between them."""
    while True:
        for _ in range(random.randint(1, 4)):
            word, words = home.ledger.words(scope)
            try:
                with anyio.fail_after(60):
                    await way(words)
                home.ledger.kept.setdefault(scope, set()).add(word)
            except Exception as error:  # noqa: BLE001
                # Unless something happens to the servers, everything is acknowledged.
                if not home.is_rough:
                    raise AssertionError(f"{scope} was not acknowledged: {error!r}") from error
            await anyio.sleep(random.uniform(0.2, 0.6) * mean)
        await anyio.sleep(random.expovariate(1 / (4 * mean)))


async def looks(home, mean):
    while True:
        try:
            with anyio.fail_after(60):
                await home.page_reads()
        except Exception as error:  # noqa: BLE001
            home.browser = None
            if not home.is_rough:
                raise AssertionError(f"the page: {error!r}") from error
        await anyio.sleep(mean)


async def forgets(home, mean):
    """Forgets something that was said in the shared room or in another one."""
    while True:
        await anyio.sleep(random.expovariate(1 / mean))
        scope = random.choice((SHARED, "default"))
        live = sorted(home.ledger.kept.get(scope, set()) - home.ledger.forgotten.get(scope, set()))
        if not live:
            continue
        word = random.choice(live)

        def forget():
            lines = map(json.loads, home.store.run("--scope", scope, "search", word, "--json").splitlines())
            numbers = [str(line["seq"]) for line in lines if word in line["content"]]
            home.store.run("--scope", scope, "forget", *numbers, "--yes")

        try:
            await anyio.to_thread.run_sync(forget)
            home.ledger.forgotten.setdefault(scope, set()).add(word)
        except AssertionError as error:
            # It may be gone already: then it must stay away, but nobody was told so.
            home.ledger.kept[scope].discard(word)
            if not home.is_rough:
                raise AssertionError(f"{word} was not forgotten: {error}") from error


async def others_sync(home, mean):
    while True:
        await anyio.sleep(random.expovariate(1 / mean))
        for store, command in ((home.phone, ("sync",)), (home.ben, ("team", "sync"))):
            try:
                await anyio.to_thread.run_sync(store.run, *command)
            except (AssertionError, subprocess.TimeoutExpired) as error:
                if not home.is_rough:
                    raise AssertionError(f"{command}: {error}") from error


async def rough(home, folder, seconds):
    """What happens to servers. Ends with them running and everything as it should be."""

    def restart(how):
        say(how)
        home.up.kill() if how == "killed" else home.up.stop()
        home.start()

    def fill():
        say("the disk is full")
        with suppress(OSError), open(folder / "ballast", "wb", buffering=0) as file:
            while True:
                file.write(bytes(1 << 20))

    def change_key():
        say("the key changes")
        number = len(list(folder.glob("key*")))
        home.store.run("rekey", "--to-key-file", str(folder / f"key{number}"))
        home.store.environment["SOTTOVOCE__CONTEXT__KEYFILE"] = str(folder / f"key{number}")
        restart("restarted under it")

    def jump(by):
        say(f"the clock says {by}")
        home.clock.write_text(f"{by}\n")

    end, step = time.monotonic() + seconds, max(4.0, min(240.0, seconds / 12))
    happenings = [lambda: restart("restarted"), lambda: restart("killed"), "disk", change_key, lambda: jump("+3d"), lambda: restart("killed"),
                  lambda: jump("-1h"), lambda: jump("+0")]
    at = 0
    while time.monotonic() < end or at < len(happenings):
        await anyio.sleep(step / 2 + random.uniform(0, step / 2))
        happening = happenings[at % len(happenings)]
        at += 1
        if happening == "disk":
            await anyio.to_thread.run_sync(fill)
            await anyio.sleep(step / 4)
            (folder / "ballast").unlink()
        else:
            await anyio.to_thread.run_sync(happening)
    jump("+0")
    await anyio.to_thread.run_sync(restart, "restarted, and left alone from now on")
    await anyio.sleep(5)
    home.is_rough = False


async def samples(home, every):
    while True:
        home.sample()
        await anyio.sleep(every)


async def live(home, folder, minutes):
    seconds = minutes * 60
    pace = min(1.0, max(0.05, minutes / 120))
    async with anyio.create_task_group() as tasks:
        for scope, way, mean in ((SHARED, home.wyoming_says, 12), ("default", home.serve_says, 16), ("named/study", lambda words: home.serve_says(words, "/s/study"), 20),
                                 ("Mira", home.mcp_says, 30), ("dm/ann", home.command_says, 40)):
            tasks.start_soon(speaks, home, scope, way, mean * pace)
        tasks.start_soon(looks, home, 60 * pace)
        tasks.start_soon(forgets, home, 60 * pace)
        tasks.start_soon(others_sync, home, 45 * pace)
        tasks.start_soon(samples, home, max(1.0, seconds / 3000))
        await rough(home, folder, seconds * ROUGH)
        say(f"{home.ledger.count} messages so far")
        await anyio.sleep(seconds * (1 - ROUGH))
        tasks.cancel_scope.cancel()


def settle(home):
    """Everybody syncs, and everything is compared."""
    assert home.up.stop() == 130
    for _ in range(3):
        for store, command in ((home.store, ("sync",)), (home.phone, ("sync",)), (home.store, ("team", "sync")), (home.ben, ("team", "sync"))):
            store.run(*command)
    lines = lambda store, *which: [json.loads(line) for line in store.run(*which, "tail", "-n", "1000000", "--json").splitlines()]
    for scope in home.ledger.tried:
        which = ("--context", "Mira") if scope == "Mira" else ("--scope", scope)
        count = home.ledger.holds(scope, lines(home.store, *which), "the home")
        say(f"{scope}: {count} of {len(home.ledger.tried[scope])} that were said, {len(home.ledger.forgotten.get(scope, ()))} forgotten")
    for scope in ("default", SHARED, "named/study"):
        home.ledger.holds(scope, lines(home.phone, "--scope", scope), "the phone")
    home.ledger.holds(SHARED, lines(home.ben, "--scope", SHARED), "Ben")
    for store in (home.store, home.phone, home.ben):
        store.is_sound()


def flat(home):
    """Compares the second quarter of the quiet part with its last one. Returns what is too much."""
    quiet = [sample for sample in home.samples if not sample["rough"]]
    quiet = [sample for sample in quiet if sample["pid"] == quiet[-1]["pid"]]
    quarter = len(quiet) // 4
    middle, last = quiet[quarter:2 * quarter], quiet[-quarter:]
    of = lambda samples, name: median(sample[name] for sample in samples)
    said = of(last, "messages") - of(middle, "messages")
    problems = []
    for name, more in (("rss_kb", said * INDEX_BYTES / 1024), ("anon_kb", None), ("descriptors", 2), ("threads", 16)):
        before, after = of(middle, name), of(last, name)
        say(f"{name}: {before:.0f}, at the end {after:.0f}, with {said:.0f} messages between them")
        if more is not None and after > before * (1 + FLAT) + more:
            problems.append(f"{name} grew from {before:.0f} to {after:.0f}")
    return problems


def plot(samples, file):
    """Memory and descriptors over time, as SVG; the rough part is shaded."""
    width, height, left = 900, 260, 60
    last = samples[-1]["seconds"] or 1
    x = lambda sample: left + (width - left - 10) * sample["seconds"] / last
    rough_end = max((x(sample) for sample in samples if sample["rough"]), default=left)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {3 * height}" font-family="sans-serif" font-size="12">',
             f'<rect width="{width}" height="{3 * height}" fill="#fff"/>',
             f'<rect x="{left}" width="{rough_end - left:.1f}" height="{3 * height}" fill="#f3eee6"/>']
    for row, (name, title, scale) in enumerate((("rss_kb", "resident memory, MB", 1024), ("anon_kb", "anonymous memory, MB", 1024), ("descriptors", "descriptors", 1))):
        top = max(sample[name] for sample in samples) / scale * 1.15 or 1
        base = (row + 1) * height - 30
        y = lambda value: base - (height - 60) * value / top
        for share in (0, 0.5, 1):
            parts.append(f'<line x1="{left}" x2="{width - 10}" y1="{y(top * share):.1f}" y2="{y(top * share):.1f}" stroke="#ddd"/>'
                         f'<text x="{left - 6}" y="{y(top * share) + 4:.1f}" text-anchor="end">{top * share:.0f}</text>')
        lines = {}
        for sample in samples[::max(1, len(samples) // 600)]:
            lines.setdefault(sample["pid"], []).append(f"{x(sample):.1f},{y(sample[name] / scale):.1f}")
        parts += [f'<polyline fill="none" stroke="#2b5d8a" stroke-width="1.5" points="{" ".join(points)}"/>' for points in lines.values()]
        parts.append(f'<text x="{left}" y="{row * height + 20}" font-weight="bold">{title}</text>')
    parts.append(f'<text x="{width - 10}" y="{3 * height - 8}" text-anchor="end">{last / 60:.0f} minutes; shaded: restarts, kills, full disk, clocks, key</text></svg>')
    file.write_text("\n".join(parts) + "\n")


def main():
    minutes = float(sys.argv[1]) if len(sys.argv) > 1 else 360.0
    out = Path(sys.argv[2] if len(sys.argv) > 2 else "soak").resolve()
    out.mkdir(parents=True, exist_ok=True)
    seed = int(os.environ.get("SOAK_SEED", time.time()))
    random.seed(seed)
    say(f"{minutes:.0f} minutes, seed {seed}")
    folder = Path(tempfile.mkdtemp(prefix="sottovoce-soak-"))
    # A disk of its own, which can be full.
    is_mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512m", "soak", str(folder)], capture_output=True).returncode == 0
    if not is_mounted:
        sys.exit("SKIPPED: only root may mount the disk that fills up; nothing was tried")
    tempfile.tempdir = str(folder)
    home = None
    try:
        with Model(lambda _: ["It is ", "noted."]) as model:
            home = Home(folder, model)
            home.prepare(folder)
            home.start()
            anyio.run(live, home, folder, minutes)
            settle(home)
    finally:
        if home:
            for server in (home.up, home.team):
                if server:
                    server.process.kill()
            (out / "said.log").write_text(home.up.errors if home.up else "")
            if home.samples:
                with open(out / "samples.csv", "w", newline="") as file:
                    table = csv.DictWriter(file, home.samples[0].keys())
                    table.writeheader()
                    table.writerows(home.samples)
                plot(home.samples, out / "soak.svg")
        time.sleep(0.5)
        subprocess.run(["umount", "-l", str(folder)], check=False)
        shutil.rmtree(folder, ignore_errors=True)
    if problems := flat(home):
        sys.exit(f"error: {'; '.join(problems)}")
    say("everything that was acknowledged is there, and memory is flat")


if __name__ == "__main__":
    main()

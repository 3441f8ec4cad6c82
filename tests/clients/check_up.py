"""`sottovoce up`: all servers in one process, as their clients and whoever watches over it see it."""

import json
import re
import socket
import subprocess
import time
import urllib.error
import urllib.request
from contextlib import contextmanager

import anyio
import ollama
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from wyoming.asr import Transcript
from wyoming.client import AsyncTcpClient
from wyoming.handle import Handled, HandledChunk, HandledStart, HandledStop
from zeroconf import ServiceBrowser, Zeroconf

from model import NAME, Model
from sottovoce import PROGRAM, Listening, Store, done, http_client

CAT, QUESTION = "My cat is called Minka.", "What is my cat called?"
KITCHEN = {"satellite_id": "assist_satellite.kitchen"}
LOOPBACK = {
    "SOTTOVOCE__SERVE__ADDRESS": "127.0.0.1:0",
    "SOTTOVOCE__WYOMING__ADDRESSES": "127.0.0.1:0",
    "SOTTOVOCE__WYOMING__MAP": "assist_satellite.kitchen=named/kitchen",
    "SOTTOVOCE__MCP__ADDRESS": "127.0.0.1:0",
    "SOTTOVOCE__MCP__SCOPES": "named/kitchen",
    "SOTTOVOCE__UP__HEALTHADDRESS": "127.0.0.1:0",
}
# What it says last is where MCP is.
ADDRESSES = {"serve": r"serving at (http://[^/\s]+)$", "wyoming": r"answering at \S+:(\d+)$", "mcp": r"serving at (\S+/mcp)$",
             "health": r"health at (\S+)$"}


class Up(Listening):
    """A process of all servers, and where each of them is."""

    def __init__(self, store, **settings):
        super().__init__(store, "--verbose", "up", says=ADDRESSES["mcp"], **{**LOOPBACK, **settings})
        for name, pattern in ADDRESSES.items():
            setattr(self, name, re.search(pattern, self.errors, re.MULTILINE)[1])

    def get(self, path, **headers):
        """The status and the text."""
        try:
            with urllib.request.urlopen(urllib.request.Request(self.health + path, headers=headers), timeout=5) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def metrics(self):
        """The samples by name and labels."""
        status, text = self.get("/metrics")
        assert status == 200, text
        families = list(text_string_to_metric_families(text))
        samples = [sample for family in families for sample in family.samples]
        assert all(sample.labels.keys() <= {"end", "kind", "le"} for sample in samples), samples
        assert "kitchen" not in text and "Minka" not in text, text
        return {(sample.name, *sample.labels.values()): sample.value for sample in samples}


@contextmanager
def _up(store, **settings):
    with Up(store, **settings) as up:
        yield up
        assert up.process.poll() == 130 or up.stop() == 130, up.errors
    assert "Minka" not in up.errors, up.errors


def _say(up, words, path="/s/kitchen"):
    answer = ollama.Client(host=up.serve + path).chat(NAME, [{"role": "user", "content": words}], stream=True)
    return "".join(part.message.content for part in answer)


def _say_slowly(up, words):
    """The package takes the empty lines of a model that waits for a wrong answer."""
    body = json.dumps({"model": NAME, "messages": [{"role": "user", "content": words}]}).encode()
    with urllib.request.urlopen(urllib.request.Request(f"{up.serve}/s/kitchen/api/chat", body), timeout=30) as answer:
        assert json.loads(answer.read().split(b"\n")[-2])["done"]


async def _speak(up, words, context=KITCHEN):
    async with AsyncTcpClient("127.0.0.1", int(up.wyoming)) as client:
        await client.write_event(Transcript(text=words, language="en", context=context).event())
        spoken = None
        while event := await client.read_event():
            if Handled.is_type(event.type):
                spoken = Handled.from_event(event).text
            if HandledStop.is_type(event.type):
                return spoken
    raise AssertionError("the connection ended")


async def what_is_said_by_one_way_is_known_by_every_other_and_counted_without_words():
    with Model() as model, Store(**model.environment()) as store, _up(store) as up:
        assert up.get("/healthz") == (200, "ok\n") and up.get("/readyz") == (200, "ready\n")
        before = up.metrics()
        assert before["sottovoce_turns_total", "whole"] == 0
        assert before["sottovoce_syncs_total",] == 0 and before["sottovoce_sync_failures_total",] == 0, before
        assert await anyio.to_thread.run_sync(_say, up, CAT) == "It is fine."
        assert await _speak(up, QUESTION) == "It is fine."
        assert CAT in json.dumps(model.asked[-1]), model.asked[-1]
        async with http_client(up.mcp, "auto", token=None) as client:
            found = await done(client, "context-search", contextId="named/kitchen", query="Minka")
            assert [match["content"] for match in found["matches"]] == [CAT], found
        await store.keeps("kitchen", ("user", CAT), ("assistant", "It is fine."), ("user", QUESTION), ("assistant", "It is fine."))
        after = up.metrics()
        grown = {"sottovoce_turns_total": ("whole", 2), "sottovoce_first_word_seconds_count": (2,),
                 "sottovoce_prompt_tokens_total": (24,), "sottovoce_stored_messages": (4,), "sottovoce_open_conversations": (1,)}
        for name, (*labels, value) in grown.items():
            assert after[name, *labels] == value, (name, after)
        assert after["sottovoce_first_word_seconds_bucket", "+Inf"] == 2 and after["process_resident_memory_bytes",] > 1 << 20
        model.answer = lambda _: []
        await _failing(up)
        assert up.metrics()["sottovoce_turns_total", "failed"] == 1, up.metrics()
        assert up.metrics()["sottovoce_errors_total", "model"] == 1, up.metrics()


async def _failing(up):
    async with AsyncTcpClient("127.0.0.1", int(up.wyoming)) as client:
        await client.write_event(Transcript(text="Hello?", language="en", context=KITCHEN).event())
        event = await client.read_event()
        assert event.type == "not-handled", event


async def turns_of_one_conversation_wait_for_each_other_whichever_way_they_come_in():
    with Model(stall_after=1) as model, Store(**model.environment()) as store, _up(store) as up:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(anyio.to_thread.run_sync, _say_slowly, up, CAT)
            assert await anyio.to_thread.run_sync(model.stalled.wait, 10)
            tasks.start_soon(_speak, up, QUESTION)
            await anyio.sleep(0.5)
            assert len(model.asked) == 1 and store.messages("kitchen") == [("user", CAT)], model.asked
            model.go_on.set()
        assert [words for _, words in store.messages("kitchen")] == [CAT, "It is fine.", QUESTION, "It is fine."]


async def what_had_come_of_answers_is_kept_on_sigterm_and_health_tells_of_the_end():
    with Model(stall_after=1) as model, Store(**model.environment()) as store, _up(store) as up:
        messages = [{"role": "user", "content": "Rain?"}]
        parts = ollama.Client(host=up.serve).chat(NAME, messages, stream=True)
        first = await anyio.to_thread.run_sync(next, parts)
        assert first.message.content == "It is "
        async with AsyncTcpClient("127.0.0.1", int(up.wyoming)) as client:
            await client.write_event(Transcript(text="Snow?", language="en", context=KITCHEN).event())
            assert HandledStart.is_type((await client.read_event()).type)
            assert HandledChunk.from_event(await client.read_event()).text == "It is "
            up.process.terminate()
            await anyio.sleep(0.5)
            assert up.get("/readyz") == (503, "stopping\n") and up.get("/healthz")[0] == 200
            assert await anyio.to_thread.run_sync(up.process.wait, 20) == 130, up.errors
        for scope, words in [("default", "Rain?"), ("named/kitchen", "Snow?")]:
            lines = [json.loads(line) for line in store.run("--scope", scope, "tail", "--json").splitlines()]
            assert [line["content"] for line in lines] == [words, "It is "], lines
            assert lines[1]["metadata"]["cutOff"] == "interrupted", lines
        store.is_sound()


async def an_address_that_is_taken_is_named_and_nothing_runs():
    with Store() as store, socket.create_server(("127.0.0.1", 0)) as taken, socket.create_server(("127.0.0.1", 0)) as free:
        busy, port = (f"127.0.0.1:{server.getsockname()[1]}" for server in (taken, free))
        free.close()
        for name in ("SERVE__ADDRESS", "WYOMING__ADDRESSES", "MCP__ADDRESS", "UP__HEALTHADDRESS"):
            other = "SERVE__ADDRESS" if name != "SERVE__ADDRESS" else "WYOMING__ADDRESSES"
            settings = {**LOOPBACK, f"SOTTOVOCE__{other}": port, f"SOTTOVOCE__{name}": busy}
            ended = subprocess.run([PROGRAM, "up"], env={**store.environment, **settings}, cwd=store.folder, capture_output=True,
                                   text=True, timeout=20)
            section = name.split("__")[0].capitalize()
            assert ended.returncode == 2 and f"error: {section}." in ended.stderr and busy in ended.stderr, ended
            assert "serving" not in ended.stderr and "answering" not in ended.stderr, ended
            try:
                socket.create_connection(("127.0.0.1", int(port.split(":")[1])), 1)
                raise AssertionError("something listens")
            except ConnectionRefusedError:
                pass


async def metrics_want_the_token_and_health_does_not():
    with Store() as store, _up(store, SOTTOVOCE__SERVE__TOKEN="open-sesame") as up:
        assert up.get("/healthz")[0] == 200 and up.get("/metrics")[0] == 401
        assert up.get("/metrics", Authorization="Bearer wrong")[0] == 401
        assert up.get("/metrics", Authorization="Bearer open-sesame")[0] == 200
        assert up.get("/healthz", Host="evil.example")[0] == 421


async def systemd_learns_when_it_is_ready_alive_and_stopping():
    for name in ("/notify", "\0sottovoce-notify"):
        with Store() as store, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
            path = f"{store.folder}{name}" if name[0] == "/" else f"{name}-{time.time_ns()}"
            systemd.bind(path)
            systemd.settimeout(10)
            told = lambda: systemd.recv(99).decode()
            with _up(store, NOTIFY_SOCKET=path.replace("\0", "@"), WATCHDOG_USEC="200000") as up:
                assert told() == "READY=1"
                assert [told() for _ in range(3)] == ["WATCHDOG=1"] * 3
                up.process.terminate()
                assert up.process.wait(20) == 130
            rest = [told()]
            while rest[-1] == "WATCHDOG=1":
                rest.append(told())
            assert rest[-1] == "STOPPING=1", rest


def _own_address():
    """An address of this machine that others could reach; nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
            return probe.getsockname()[0]
        except OSError:
            return None


class _Seen:
    def __init__(self):
        self.names, self.gone = {}, set()

    def add_service(self, zeroconf, kind, name):
        self.names[name] = zeroconf.get_service_info(kind, name)

    def update_service(self, *_):
        pass

    def remove_service(self, zeroconf, kind, name):
        self.gone.add(name)


def _until(condition, seconds=10):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.1)
    return condition()


def _multicast_comes_back(address):
    """Whether this machine hears its own multicast, as it does unless its network has none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as ear, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as mouth:
        try:
            ear.bind(("", 0))
            group = socket.inet_aton("224.0.0.251") + socket.inet_aton(address)
            ear.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, group)
            mouth.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(address))
            ear.settimeout(2)
            mouth.sendto(b"?", ("224.0.0.251", ear.getsockname()[1]))
            return ear.recv(9) == b"?"
        except OSError:
            return False


async def the_agent_is_announced_and_its_end_too():
    address = _own_address()
    if address is None or not _multicast_comes_back(address):
        print("SKIPPED: this machine has no multicast; nothing has tried the announcement", flush=True)
        return

    def watch():
        seen, zeroconf = _Seen(), Zeroconf(interfaces=[address])
        try:
            ServiceBrowser(zeroconf, "_wyoming._tcp.local.", seen)
            settings = {"WYOMING__ADDRESSES": f"{address}:0", "WYOMING__ALLOW": address, "WYOMING__ANNOUNCE": "true"}
            with Store() as store, _up(store, **{f"SOTTOVOCE__{name}": value for name, value in settings.items()}) as up:
                ours = lambda: [name for name in seen.names if name.startswith("sottovoce on ")]
                assert _until(ours), seen.names
                [name] = ours()
                info = seen.names[name]
                assert info.port == int(up.wyoming) and info.parsed_addresses() == [address], info
                assert "kitchen" not in str(info), info
            assert _until(lambda: name in seen.gone), "it was not withdrawn"
        finally:
            zeroconf.close()

    await anyio.to_thread.run_sync(watch)


async def an_agent_that_nobody_else_reaches_is_not_announced():
    with Store() as store:
        done = subprocess.run([PROGRAM, "wyoming", "--announce", "--addr", "127.0.0.1:0"], env=store.environment, cwd=store.folder,
                              capture_output=True, text=True, timeout=20)
        assert done.returncode == 2 and "no other machine can reach" in done.stderr, done

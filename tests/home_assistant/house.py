"""A real Home Assistant: started with an empty configuration, set up as its user would by forms, and spoken to."""

import asyncio
import contextlib
import json
import os
import random
import shutil
import socket
import subprocess
import time
from pathlib import Path

import aiohttp

HERE = Path(__file__).parent
SYSTEM = Path(os.environ["HA_SYSTEM"])
CONFIG = SYSTEM / "srv/config"
# Where there is a lamp that can be turned on, and nothing that asks the network.
CONFIGURATION = """
homeassistant: {name: Test house, unit_system: metric, time_zone: UTC, language: en, country: GB}
api:
assist_pipeline:
brands:
config:
conversation:
media_source:
onboarding:
websocket_api:
input_boolean: {lamp: {name: Switch of the lamp}}
template:
  - light:
      - name: Kitchen lamp
        unique_id: kitchen_lamp
        state: "{{ is_state('input_boolean.lamp', 'on') }}"
        turn_on: {action: input_boolean.turn_on, target: {entity_id: input_boolean.lamp}}
        turn_off: {action: input_boolean.turn_off, target: {entity_id: input_boolean.lamp}}
logger: {default: warning, logs: {homeassistant.components.wyoming: info, custom_components: debug}}
"""


def free_port():
    """A port that no system gives by itself, so that nobody takes it before its server starts."""
    while True:
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", random.randrange(10240, 32768))) as free:
            return free.getsockname()[1]


class Reply:
    """What Home Assistant says, in which conversation, and how long it took."""

    def __init__(self, body, took):
        self.body, self.took = body, took
        self.speech = body["response"]["speech"].get("plain", {}).get("speech", "")
        self.kind, self.conversation = body["response"]["response_type"], body["conversation_id"]

    def __repr__(self):
        return f"{self.kind}: {self.speech!r} ({self.took:.2f}s)"


def spoken(events):
    """What Home Assistant says at the end of a voice assistant's turn."""
    for _, kind, data in events:
        if kind == "intent-end":
            return data["intent_output"]["response"]["speech"]["plain"]["speech"]
        if kind == "error":
            return data["message"]
    raise AssertionError(events)


class House:
    """Home Assistant on a port of its own. Its folder is made anew."""

    def __init__(self):
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = CONFIG / "home-assistant.log"
        self._headers, self._process = {}, None

    async def __aenter__(self):
        shutil.rmtree(CONFIG, ignore_errors=True)
        (CONFIG / ".storage").mkdir(parents=True)
        (CONFIG / "configuration.yaml").write_text(CONFIGURATION)
        # An address in the file of settings would be on trial, and be taken back after some minutes.
        stable = {"server_port": self.port, "server_host": ["127.0.0.1"], "ssl_profile": "intermediate_v6", "cors_allowed_origins": [],
                  "login_attempts_threshold": -1, "ip_ban_enabled": False, "use_x_frame_options": True, "error": None,
                  "error_message": None, "created_at": "2026-01-01T00:00:00+00:00"}
        data = {"stable": stable, "pending": None, "yaml_migration_done": True}
        (CONFIG / ".storage/http").write_text(json.dumps({"version": 3, "minor_version": 1, "key": "http", "data": data}))
        self.before_start()
        self.session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=300))
        self._start()
        try:
            await asyncio.wait_for(self._onboard(), 90)
        except BaseException:
            await self.__aexit__()
            raise
        return self

    def before_start(self):
        """Puts the custom integration where Home Assistant looks for it."""
        own = HERE.parent.parent / "integrations/home_assistant/custom_components"
        if own.is_dir():
            shutil.copytree(own, CONFIG / "custom_components")

    def _start(self):
        with open(CONFIG / "console.log", "ab") as console:
            command = [HERE / "inside", SYSTEM, "/srv/ha/bin/hass", "-c", "/srv/config", "--log-file", "/srv/config/home-assistant.log"]
            self._process = subprocess.Popen(command, stdout=console, stderr=console, stdin=subprocess.DEVNULL)

    async def restart_after_kill(self):
        """Ends as in a power cut, and starts again."""
        await asyncio.sleep(2)  # Home Assistant writes down what was added only a second later.
        self._process.kill()
        await asyncio.to_thread(self._process.wait)
        self._start()
        await self._answers()
        await self._runs()

    async def _answers(self):
        while True:
            assert self._process.poll() is None, (CONFIG / "console.log").read_text()[-3000:]
            with contextlib.suppress(aiohttp.ClientError):
                async with self.session.get(f"{self.url}/api/onboarding") as answer:
                    if answer.status == 200:
                        break
            await asyncio.sleep(0.1)

    async def _runs(self):
        while (await self.call("GET", "/api/config"))["state"] != "RUNNING":
            await asyncio.sleep(0.1)

    async def _onboard(self):
        await self._answers()
        client = f"{self.url}/"
        user = {"client_id": client, "name": "Ann", "username": "ann", "password": "only-for-this-test", "language": "en"}
        async with self.session.post(f"{self.url}/api/onboarding/users", json=user) as answer:
            code = (await answer.json())["auth_code"]
        grant = {"grant_type": "authorization_code", "code": code, "client_id": client}
        async with self.session.post(f"{self.url}/auth/token", data=grant) as answer:
            self.token = (await answer.json())["access_token"]
        self._headers = {"Authorization": f"Bearer {self.token}"}
        await self._runs()

    async def __aexit__(self, *_):
        await self.session.close()
        self._process.terminate()
        try:
            await asyncio.to_thread(self._process.wait, 30)
        finally:
            self._process.kill()

    async def call(self, method, path, body=None):
        """An answer of the REST interface."""
        async with self.session.request(method, self.url + path, json=body, headers=self._headers) as answer:
            text = await answer.text()
            assert answer.status < 300, (method, path, answer.status, text[:500])
            return json.loads(text)

    @contextlib.asynccontextmanager
    async def _socket(self):
        async with self.session.ws_connect(f"{self.url}/api/websocket") as opened:
            await opened.receive_json()
            await opened.send_json({"type": "auth", "access_token": self.token})
            assert (await opened.receive_json())["type"] == "auth_ok"
            yield opened

    async def command(self, kind, **more):
        """The result of a command of the websocket interface."""
        async with self._socket() as opened:
            await opened.send_json({"id": 1, "type": kind, **more})
            answer = await opened.receive_json()
            assert answer["success"], (kind, answer)
            return answer["result"]

    async def add(self, integration, *forms):
        """Adds an integration by filling in its forms one after the other; the id of its entry."""
        flow = await self.call("POST", "/api/config/config_entries/flow", {"handler": integration})
        for form in forms:
            assert flow["type"] in ("form", "menu"), flow
            flow = await self.call("POST", f"/api/config/config_entries/flow/{flow['flow_id']}", form)
        assert flow["type"] == "create_entry", flow
        return flow["result"]["entry_id"]

    async def refused(self, integration, form):
        """The errors that a form of an integration shows."""
        flow = await self.call("POST", "/api/config/config_entries/flow", {"handler": integration})
        return (await self.call("POST", f"/api/config/config_entries/flow/{flow['flow_id']}", form))["errors"]

    async def add_part(self, entry, kind, form):
        """Adds a part of an integration, such as a conversation agent."""
        handler = {"handler": [entry, kind]}
        flow = await self.call("POST", "/api/config/config_entries/subentries/flow", handler)
        flow = await self.call("POST", f"/api/config/config_entries/subentries/flow/{flow['flow_id']}", form)
        assert flow["type"] == "create_entry", flow

    async def remove(self, entry):
        await self.call("DELETE", f"/api/config/config_entries/entry/{entry}")

    async def entities(self, entry, domain):
        """The entities of an integration's entry, once there are any."""
        for _ in range(100):
            listed = await self.command("config/entity_registry/list")
            found = [e for e in listed if e["config_entry_id"] == entry and e["entity_id"].startswith(f"{domain}.")]
            if found:
                return found
            await asyncio.sleep(0.1)
        raise AssertionError(f"{entry} has no {domain}")

    async def entity(self, entry, domain):
        return (await self.entities(entry, domain))[0]["entity_id"]

    async def state(self, entity):
        return (await self.call("GET", f"/api/states/{entity}"))["state"]

    async def add_ollama(self, url, name, model, tools=True, **more):
        """Home Assistant's own integration of Ollama, with its default settings; its entry and its agent."""
        entry = await self.add("ollama", {"url": url, **more})
        form = {"name": name, "model": model, "num_ctx": 8192, "max_history": 20, "keep_alive": -1, "think": False}
        await self.add_part(entry, "conversation", {**form, "llm_hass_api": ["assist"] if tools is True else list(tools or ())})
        return entry, await self.entity(entry, "conversation")

    async def add_wyoming(self, port):
        """An entry of Home Assistant's own integration of Wyoming."""
        return await self.add("wyoming", {"host": "127.0.0.1", "port": port})

    async def say(self, agent, words, **more):
        """One turn. Without the id of a conversation it begins a new one."""
        begun = time.monotonic()
        body = await self.call("POST", "/api/conversation/process", {"text": words, "agent_id": agent, "language": "en", **more})
        return Reply(body, time.monotonic() - begun)

    async def pipeline(self, name, agent, **more):
        """A voice assistant with this agent; its id."""
        none = {"stt_engine": None, "stt_language": None, "tts_engine": None, "tts_language": None, "tts_voice": None,
                "wake_word_entity": None, "wake_word_id": None, "prefer_local_intents": False}
        made = await self.command("assist_pipeline/pipeline/create", name=name, language="en", conversation_engine=agent,
                                  conversation_language="en", **{**none, **more})
        return made["id"]

    async def run(self, pipeline, words, seconds=None, **more):
        """A turn of a voice assistant, from the words to the answer's text: its events with the seconds since it began. It is
        broken off after so many seconds, if that is wanted."""
        events, begun = [], time.monotonic()
        async with self._socket() as opened:
            await opened.send_json({"id": 1, "type": "assist_pipeline/run", "pipeline": pipeline, "start_stage": "intent",
                                    "end_stage": "intent", "input": {"text": words}, **more})
            while True:
                try:
                    left = None if seconds is None else max(0, begun + seconds - time.monotonic())
                    answer = await opened.receive_json(timeout=left)
                except TimeoutError:
                    return events
                assert answer.get("success", True), answer
                if answer["type"] == "event":
                    event = answer["event"]
                    events.append((time.monotonic() - begun, event["type"], event["data"] or {}))
                    if event["type"] == "run-end":
                        return events

"""The packages `ollama` (Python and JavaScript) and `openai` with `serve` in front of a model: they get a memory, and what needs
none reaches the model byte for byte as it does without `serve`."""

import json
import os
import subprocess
from pathlib import Path

import anyio
import ollama
import openai

from model import NAME, Model
from sottovoce import Endpoint, Store

CAT, QUESTION = "My cat is called Minka.", "What is my cat called?"
TOOL = {"type": "function", "function": {"name": "light", "description": "Turns a light on", "parameters": {
    "type": "object", "properties": {"room": {"type": "string"}}}}}


def _says(words, *before):
    return [*before, {"role": "user", "content": words}]


def _ollama_calls(client):
    """Each way to ask, once."""
    system = {"role": "system", "content": "Be brief."}
    client.chat(NAME, _says("Hello.", system), options={"num_ctx": 8192.0, "temperature": 0.5}, keep_alive=-1.0)
    list(client.chat(NAME, _says("Hello again."), stream=True, tools=[TOOL], think=False))
    client.generate(NAME, "Once more.", system="Be brief.")
    client.chat(NAME, _says("A title?"), format={"type": "object"})
    client.embed(NAME, ["one", "two"])
    client.list(), client.ps(), client.show(NAME)


def _openai_calls(client):
    client.chat.completions.create(model=NAME, messages=_says("Hello."), temperature=0.5)
    list(client.chat.completions.create(model=NAME, messages=_says("Hello again."), stream=True, tools=[TOOL],
                                        stream_options={"include_usage": True}))
    client.responses.create(model=NAME, input="Once more.", instructions="Be brief.")
    client.chat.completions.create(model=NAME, messages=_says("A title?"), response_format={"type": "json_object"})
    client.embeddings.create(model=NAME, input="one")
    assert client.models.list().data[0].id == NAME


def _bodies(calls, client):
    """What a model gets without `serve`, and with it. Each request goes to a conversation of its own, which has no memory yet."""
    with Model() as model:
        calls(client(model.url))
        direct = model.bodies
    with Model() as model, Store(**model.environment()) as store, Endpoint(store, SOTTOVOCE__SERVE__HISTORYTOKENS="0") as endpoint:
        calls(client(f"{endpoint.url}/s/kitchen"))
        store.is_sound()
        return direct, model.bodies, store.messages("kitchen")


async def what_the_ollama_package_sends_reaches_the_model_byte_for_byte():
    direct, through, held = await anyio.to_thread.run_sync(_bodies, _ollama_calls, lambda url: ollama.Client(host=url))
    assert len(direct) == 5 and through == direct, (direct, through)
    assert [words for who, words in held if who == "user"] == ["Hello.", "Hello again.", "Once more."], held
    assert [words for who, words in held if who == "assistant"] == ["It is fine."] * 3, held


async def what_the_openai_package_sends_reaches_the_model_byte_for_byte():
    client = lambda url: openai.OpenAI(base_url=f"{url}/v1", api_key="none")
    direct, through, held = await anyio.to_thread.run_sync(_bodies, _openai_calls, client)
    assert len(direct) == 5 and through == direct, (direct, through)
    assert [words for who, words in held if who == "user"] == ["Hello.", "Hello again.", "Once more."], held
    assert [words for who, words in held if who == "assistant"] == ["It is fine."] * 3, held


def remember(ask):
    """Two sessions: the second gets what was said in the first."""
    with Model() as model, Store(**model.environment()) as store, Endpoint(store) as endpoint:
        assert ask(endpoint.url, CAT) == ask(endpoint.url, QUESTION) == "It is fine."
        asked = json.dumps(model.asked[-1])
        assert CAT in asked and QUESTION in asked, asked
        assert store.messages("kitchen") == [("user", CAT), ("assistant", "It is fine."),
                                             ("user", QUESTION), ("assistant", "It is fine.")]
        assert "Minka" not in endpoint.errors, endpoint.errors
        store.is_sound()


async def each_package_gets_a_memory():
    def with_ollama(url, words):
        parts = ollama.Client(host=f"{url}/s/kitchen").chat(NAME, _says(words), stream=True)
        return "".join(part.message.content for part in parts)

    def with_openai(url, words):
        client = openai.OpenAI(base_url=f"{url}/s/kitchen/v1", api_key="none")
        parts = client.chat.completions.create(model=NAME, messages=_says(words), stream=True)
        return "".join(part.choices[0].delta.content or "" for part in parts if part.choices)

    def with_responses(url, words):
        client = openai.OpenAI(base_url=f"{url}/s/kitchen/v1", api_key="none")
        events = client.responses.create(model=NAME, input=words, stream=True)
        return "".join(event.delta for event in events if event.type == "response.output_text.delta")

    def with_generate(url, words):
        return ollama.Client(host=f"{url}/s/kitchen").generate(NAME, words).response

    for ask in (with_ollama, with_openai, with_responses, with_generate):
        await anyio.to_thread.run_sync(remember, ask)


async def the_javascript_package_gets_a_memory():
    modules = Path(os.environ["NODE_BIN"]).parent
    script = """
        import { Ollama } from 'ollama'
        const [host, model, content] = process.argv.slice(2)
        const answer = await new Ollama({ host }).chat({ model, messages: [{ role: 'user', content }], stream: true })
        for await (const part of answer) process.stdout.write(part.message.content)
    """

    def with_javascript(url, words):
        file = modules.parent / "ask.mjs"
        file.write_text(script)
        done = subprocess.run(["node", str(file), f"{url}/s/kitchen", NAME, words], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout

    await anyio.to_thread.run_sync(remember, with_javascript)


async def a_session_with_tools_is_stored_once():
    def talk():
        with Model() as model, Store(**model.environment()) as store, Endpoint(store) as endpoint:
            client = openai.OpenAI(base_url=f"{endpoint.url}/v1", api_key="none")
            call = {"id": "c1", "type": "function", "function": {"name": "light", "arguments": "{\"room\": \"kitchen\"}"}}
            messages = _says("Light on.", {"role": "system", "content": "Be brief."})
            messages += [{"role": "assistant", "content": None, "tool_calls": [call]},
                         {"role": "tool", "tool_call_id": "c1", "content": "done"}]
            for words in ("And now?", "Thank you.", "Good night."):
                answer = client.chat.completions.create(model=NAME, messages=messages, tools=[TOOL])
                messages = _says(words, *messages, {"role": "assistant", "content": answer.choices[0].message.content})
            held = store.scope("default")
            assert [who for who, _ in held] == ["user", "assistant", "tool", "assistant", "user", "assistant", "user", "assistant"], held

    await anyio.to_thread.run_sync(talk)


async def a_caller_that_leaves_stops_the_model_and_leaves_what_had_come():
    def talk():
        with Model(pieces=["It is ", "raining"], stall_after=1) as model, Store(**model.environment()) as store:
            with Endpoint(store) as endpoint:
                parts = ollama.Client(host=endpoint.url).chat(NAME, _says("Rain?"), stream=True)
                assert next(parts).message.content == "It is "
                parts.close()
                for _ in range(100):
                    held = store.scope("default")
                    if len(held) == 2:
                        break
                assert held == [("user", "Rain?"), ("assistant", "It is ")], held
                store.is_sound()

    await anyio.to_thread.run_sync(talk)


async def a_key_opens_one_conversation_and_errors_come_in_the_clients_form():
    def talk():
        with Model() as model, Store(**model.environment()) as store:
            keys = store.folder / "keys"
            keys.write_text("named/kitchen kitchen-key\ndm/ann ann-key\n")
            with Endpoint(store, SOTTOVOCE__SERVE__KEYSFILE=str(keys)) as endpoint:
                ann = openai.OpenAI(base_url=f"{endpoint.url}/v1", api_key="ann-key", max_retries=0)
                ann.chat.completions.create(model=NAME, messages=_says(CAT))
                assert store.scope("dm/ann")[0] == ("user", CAT)
                kitchen = openai.OpenAI(base_url=f"{endpoint.url}/u/ann/v1", api_key="kitchen-key", max_retries=0)
                try:
                    kitchen.chat.completions.create(model=NAME, messages=_says(QUESTION))
                    raise AssertionError("it was let in")
                except openai.PermissionDeniedError as error:
                    assert "key" in error.message and "Minka" not in error.message, error
                headers = {"Authorization": "Bearer kitchen-key"}
                client = ollama.Client(host=f"{endpoint.url}/s/kitchen", headers=headers)
                client.chat(NAME, _says(QUESTION))
                assert CAT not in json.dumps(model.asked[-1])
                try:
                    ollama.Client(host=f"{endpoint.url}/s/kitchen").chat(NAME, _says(QUESTION))
                    raise AssertionError("it was let in")
                except ollama.ResponseError as error:
                    assert error.status_code == 401 and "key" in error.error, error

    await anyio.to_thread.run_sync(talk)

"""Programs and frameworks that people talk to a model with, with `serve` in front of it: what is said in one session is known in the
next, and stored once. Each is given another address and nothing else."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import anyio
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_ollama import ChatOllama
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from check_serve import CAT, QUESTION, remember
from model import NAME, Model
from sottovoce import Endpoint, Store


def _run(*command, **more):
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, **more)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


async def the_command_llm_gets_a_memory():
    with tempfile.TemporaryDirectory() as folder:
        def with_llm(url, words):
            environment = {"PATH": os.environ["PATH"], "HOME": folder, "LLM_USER_PATH": folder, "OLLAMA_HOST": f"{url}/s/kitchen"}
            return _run(sys.executable, "-m", "llm", "--no-log", "-m", f"ollama/{NAME}:latest", words, env=environment)

        await anyio.to_thread.run_sync(remember, with_llm)


async def langchain_gets_a_memory():
    def with_langchain(url, words):
        model = ChatOllama(model=NAME, base_url=f"{url}/s/kitchen")
        return "".join(part.content for part in model.stream([HumanMessage(words)]))

    await anyio.to_thread.run_sync(remember, with_langchain)


async def pydantic_ai_gets_a_memory():
    def with_pydantic_ai(url, words):
        provider = OpenAIProvider(base_url=f"{url}/s/kitchen/v1", api_key="none")
        return Agent(OpenAIChatModel(NAME, provider=provider), system_prompt="Be brief.").run_sync(words).output

    await anyio.to_thread.run_sync(remember, with_pydantic_ai)


async def vercels_ai_gets_a_memory():
    modules = Path(os.environ["NODE_BIN"]).parent
    script = """
        import { streamText } from 'ai'
        import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
        const [baseURL, model, prompt] = process.argv.slice(2)
        const provider = createOpenAICompatible({ name: 'local', baseURL, apiKey: 'none' })
        const answer = streamText({ model: provider(model), prompt })
        for await (const part of answer.textStream) process.stdout.write(part)
    """

    def with_ai(url, words):
        file = modules.parent / "ai.mjs"
        file.write_text(script)
        return _run("node", file, f"{url}/s/kitchen/v1", NAME, words)

    await anyio.to_thread.run_sync(remember, with_ai)


async def a_tool_of_langchain_is_called_and_its_turn_stored_once():
    @tool
    def light(room: str) -> str:
        """Turns a light on."""
        return f"the light is on in the {room}"

    def answer(body):
        call = [{"function": {"name": "light", "arguments": {"room": "kitchen"}}}]
        return ["It is on."] if body["messages"][-1]["role"] == "tool" else [call]

    def talk():
        with Model(pieces=answer) as model, Store(**model.environment()) as store, Endpoint(store) as endpoint:
            asked = ChatOllama(model=NAME, base_url=f"{endpoint.url}/s/kitchen").bind_tools([light])
            said = [HumanMessage(f"{CAT} Light on.")]
            called = asked.invoke(said)
            assert isinstance(called, AIMessage) and called.tool_calls[0]["args"] == {"room": "kitchen"}, called
            result = ToolMessage(light.invoke(called.tool_calls[0]["args"]), tool_call_id=called.tool_calls[0]["id"])
            assert asked.invoke([*said, called, result]).content == "It is on."
            held = store.messages("kitchen")
            assert [who for who, _ in held] == ["user", "assistant", "tool", "assistant"], held
            model.answer = lambda _: ["Minka."]
            assert asked.invoke([HumanMessage(QUESTION)]).content == "Minka."
            assert CAT in str(model.asked[-1]), model.asked[-1]
            store.is_sound()

    await anyio.to_thread.run_sync(talk)

"""The inspector, which looks for schemas that some clients could not use."""

import json

import anyio

from node import inspect
from sottovoce import PROGRAM, TOKEN, Store, http_server

ERAS = ("legacy", "modern")


async def the_inspector_has_nothing_to_say_against_the_schemas():
    with Store() as store, http_server(store) as server:
        for era in ERAS:
            for target in (_started(store), _connected(server)):
                listed = await _inspect(store, *target, "--protocol-era", era, "--method", "tools/list", "--strict")
                assert len(listed["result"]["tools"]) == 10
                assert not listed.get("schemaFindings"), listed["schemaFindings"]


async def the_inspector_calls_reads_and_gets():
    with Store() as store, http_server(store) as server:
        for era, target in zip(ERAS, (_started(store), _connected(server))):
            target = (*target, "--protocol-era", era, "--method")
            arguments = {"action": "create", "name": f"Mira {era}", "systemPrompt": "You are Mira."}
            given = ("--tool-args-json", json.dumps(arguments))
            made = await _inspect(store, *target, "tools/call", "--tool-name", "context-manage", *given)
            context = made["result"]["structuredContent"]["contextId"]
            uri = f"mcp-llm-generator://context/{context}"
            read = await _inspect(store, *target, "resources/read", "--uri", uri)
            assert "You are Mira." in read["result"]["contents"][0]["text"]
            given = ("--prompt-args", "role=a cook", "traits=calm", "scenario=dinner")
            got = await _inspect(store, *target, "prompts/get", "--prompt-name", "personality-creator", *given)
            assert "a cook" in got["result"]["messages"][0]["content"]["text"]


def _started(store):
    environment = [word for name, value in store.environment.items() for word in ("-e", f"{name}={value}")]
    return (PROGRAM, "mcp", *environment)


def _connected(server):
    return (server.url, "--transport", "http", "--header", f"Authorization: Bearer {TOKEN}", "--stored-auth-only")


async def _inspect(store, *arguments):
    return await anyio.to_thread.run_sync(inspect, store, *arguments)

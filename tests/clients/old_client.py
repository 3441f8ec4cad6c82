"""Run by check_old_client.py, with the SDK of requirements-old.txt: `stdio PROGRAM ARGUMENTS...` or `http URL TOKEN`."""

import os
import sys
from contextlib import asynccontextmanager
from datetime import timedelta

import anyio
import httpx
from mcp import ClientSession, McpError, StdioServerParameters, types
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client


@asynccontextmanager
async def connect(way, target, *rest):
    if way == "stdio":
        async with stdio_client(StdioServerParameters(command=target, args=list(rest), env=dict(os.environ))) as (read, write):
            yield read, write
    else:
        headers = {"Authorization": f"Bearer {rest[0]}"}
        async with httpx.AsyncClient(headers=headers, timeout=httpx.Timeout(30, read=300)) as connection:
            async with streamable_http_client(target, http_client=connection) as (read, write, _):
                yield read, write


async def main():
    heard, told = [], []

    async def hear(message):
        heard.append(type(getattr(message, "root", message)).__name__)

    async def progress(done, total, message):
        told.append(done)

    limit = timedelta(seconds=20)
    async with connect(*sys.argv[1:]) as streams, ClientSession(*streams, limit, message_handler=hear) as c:
        begun = await c.initialize()
        assert begun.protocolVersion == "2025-11-25" and begun.serverInfo.name == "sottovoce" and begun.instructions
        await c.send_ping()
        tools = [tool.name for tool in (await c.list_tools()).tools]
        assert len(tools) == 10, tools
        made = await c.call_tool("context-manage", {"action": "create", "name": "Mira", "systemPrompt": "You are Mira."})
        context = made.structuredContent["contextId"]
        uri = f"mcp-llm-generator://context/{context}"
        await c.subscribe_resource(uri)
        said = {"contextId": context, "message": "Tell me"}
        answer = await c.call_tool("context-chat", said, progress_callback=progress)
        assert answer.structuredContent["response"] == "word " * 5, answer
        assert told and told == sorted(set(told)), told
        await c.unsubscribe_resource(uri)
        assert (await c.call_tool("context-manage", {"action": "get", "contextId": "nobody"})).isError
        assert "word" in (await c.read_resource(uri)).contents[0].text
        assert len((await c.list_resources()).resources) == 3 + 1 + 6
        assert len((await c.list_resource_templates()).resourceTemplates) == 3
        assert len((await c.list_prompts()).prompts) == 2
        given = {"role": "a cook", "traits": "calm", "scenario": "dinner"}
        assert "a cook" in (await c.get_prompt("personality-creator", given)).messages[0].content.text
        prompt = types.PromptReference(type="ref/prompt", name="context-summary")
        offered = await c.complete(prompt, {"name": "contextName", "value": "mi"})
        assert offered.completion.values == ["Mira"]
        try:
            await c.call_tool("no-such-tool", {})
        except McpError as error:
            assert error.error.code == -32602
        else:
            raise AssertionError("there is no such tool")
        await anyio.sleep(0.3)
        assert {"ResourceUpdatedNotification", "ResourceListChangedNotification"} <= set(heard), heard


anyio.run(main)

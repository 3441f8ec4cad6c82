"""Home Assistant's own client of MCP with `sottovoce mcp --http`: another agent of Home Assistant searches a room's memory."""

import json

from model import NAME, Model
from report import table
from sottovoce import Http, Store

FACT, QUESTION = "The key of the garden shed is under the blue flower pot.", "What did we say about the shed?"


def _searching(body):
    """A model that searches for a word, and reads aloud what it finds."""
    newest = body["messages"][-1]
    if newest["role"] == "tool":
        return [f"It says: {newest['content']}"]
    name = next(tool["function"]["name"] for tool in body["tools"] if tool["function"]["name"].endswith("context-search"))
    return [[{"function": {"name": name, "arguments": {"contextId": "named/kitchen", "query": "shed"}}}]]


async def another_agent_searches_what_was_said_in_a_room(house):
    with Model(_searching) as model, Store(SOTTOVOCE__MCP__SCOPES="named/kitchen") as store:
        store.run("--room", "kitchen", "append", "--role", "user", FACT)
        store.run("--room", "office", "append", "--role", "user", "The shed is no business of the kitchen.")
        server = Http(store, token=None)
        try:
            entry = await house.add("mcp", {"url": server.url})
            entries = await house.call("GET", "/api/config/config_entries/entry")
            assert [e["title"] for e in entries if e["entry_id"] == entry] == ["sottovoce"], entries
            apis = ["assist", f"mcp-{entry}"]
            plain, agent = await house.add_ollama(model.url, "With functions of MCP", f"{NAME}:latest", tools=apis)
            reply = await house.say(agent, QUESTION)
            tools = [tool["function"]["name"] for tool in model.asked[0]["tools"]]
            assert FACT in reply.speech and "no business" not in reply.speech, reply
            table(("its functions",), [(name,) for name in tools if name.startswith(("context-", "artifact-", "conversation-", "personality-"))])
            assert json.dumps(model.asked[0]).count("HassTurnOn"), tools
            for one in (plain, entry):
                await house.remove(one)
        finally:
            server.stop()

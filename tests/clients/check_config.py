"""The block that is printed for a client's configuration starts a server that works."""

import json
import os

from mcp import Client, StdioServerParameters

from node import inspect
from sottovoce import ERAS, TOKEN, Store, done, http_client, http_server, make_context


async def the_printed_block_starts_a_server_of_the_same_store():
    with Store() as store:
        (store.folder / "appsettings.json").write_text(json.dumps({"Mcp": {"Scopes": "contexts default"}}))
        store.run("append", "--role", "user", "a plum of the default conversation")
        printed = store.run("--config", "appsettings.json", "mcp", "--print-config")
        server = json.loads(printed)["mcpServers"]["sottovoce"]
        # Where a relative path would lead somewhere else.
        elsewhere = store.folder / "elsewhere"
        elsewhere.mkdir()
        parameters = StdioServerParameters(command=server["command"], args=server["args"], env=server["env"], cwd=elsewhere)
        for era, revision in ERAS.items():
            async with Client(parameters, mode=era, cache=None) as c:
                assert c.protocol_version == revision
                await make_context(c, f"Made with {revision}")
                assert (await done(c, "context-search", query="plum"))["totalCount"] == 1
        config = store.folder / "mcp.json"
        config.write_text(printed)
        call = ("--method", "tools/call", "--tool-name", "context-manage", "--tool-args-json", '{"action": "list"}')
        listed = inspect(store, "--config", config, "--server", "sottovoce", *call)
        assert listed["result"]["structuredContent"]["totalCount"] == 2
        store.is_sound()


async def the_printed_block_holds_no_secret():
    with Store(SOTTOVOCE__MCP__TOKEN=TOKEN) as store:
        del store.environment["SOTTOVOCE__CONTEXT__KEYFILE"]
        store.environment["SOTTOVOCE__CONTEXT__PASSPHRASE"] = "also secret"
        for arguments in ((), ("--http", "127.0.0.1:8765")):
            printed = store.run("mcp", "--print-config", *arguments)
            assert TOKEN not in printed and "also secret" not in printed, printed


async def the_printed_block_leads_to_a_server_that_listens():
    with Store(SOTTOVOCE__MCP__TOKEN=TOKEN) as store, http_server(store) as server:
        printed = json.loads(store.run("mcp", "--print-config", "--http", f"127.0.0.1:{server.port}"))
        block = printed["mcpServers"]["sottovoce"]
        assert block["url"] == server.url
        # As a client does that replaces variables.
        shown = block["headers"]["Authorization"].replace("${SOTTOVOCE__MCP__TOKEN}", TOKEN)
        assert shown == f"Bearer {TOKEN}"
        async with http_client(block["url"], "auto") as c:
            assert (await c.list_tools()).tools

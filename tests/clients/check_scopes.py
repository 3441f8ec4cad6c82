"""Which conversations clients may touch."""

from sottovoce import WAYS, Store, client, done, make_context, refused

FOREIGN = ["default", "dm/42", "guild/1/2/3", "named/x", "../..", "../default", "/etc/passwd", "", "named/../../key", "Default"]


async def _touches_nothing(c, ids):
    for id in ids:
        for tool, given in (
            ("context-manage", {"action": "get"}), ("context-manage", {"action": "delete"}),
            ("context-manage", {"action": "extend"}), ("context-manage", {"action": "update", "name": "y"}),
            ("conversation-manage", {"action": "list"}), ("conversation-manage", {"action": "clear"}),
            ("context-chat", {"message": "x"}), ("context-remember", {"content": "x"}), ("context-search", {"query": "x"}),
        ):
            reason = await refused(c, tool, contextId=id, **given)
            assert "secret" not in reason, (id, tool, reason)


async def by_default_only_contexts_are_touched():
    for era, transport in WAYS:
        with Store() as store:
            store.run("append", "--role", "user", "a secret of the default conversation")
            store.run("--scope", "dm/42", "append", "--role", "user", "a secret of 42")
            store.run("--scope", "named/x", "append", "--role", "user", "a secret that is in no context")
            before = store.run("scopes", "--json")
            async with client(store, era, transport) as c:
                await _touches_nothing(c, FOREIGN)
                assert (await done(c, "context-search", query="secret"))["totalCount"] == 0
                assert (await done(c, "context-manage", action="list", includeInactive=True))["totalCount"] == 0
            assert store.run("scopes", "--json") == before


async def what_the_setting_names_is_touched_and_nothing_else():
    for era, transport in WAYS:
        with Store(SOTTOVOCE__MCP__SCOPES="contexts default") as store:
            store.run("append", "--role", "user", "a plum of the default conversation")
            store.run("--scope", "dm/42", "append", "--role", "user", "a secret plum of 42")
            async with client(store, era, transport) as c:
                context = await make_context(c)
                await done(c, "context-remember", contextId=context, content="a plum of a context")
                await done(c, "context-remember", contextId="default", content="another plum")
                assert (await done(c, "conversation-manage", action="list", contextId="default"))["totalCount"] == 2
                found = await done(c, "context-search", query="plum")
                assert found["totalCount"] == 3 and {m["contextId"] for m in found["matches"]} == {context, "default"}
                await _touches_nothing(c, [id for id in FOREIGN if id.lower() != "default"])
            assert "another plum" in store.run("tail", "--json")


async def contexts_are_not_touched_where_the_setting_leaves_them_out():
    for era, transport in WAYS:
        with Store(SOTTOVOCE__MCP__SCOPES="default") as store:
            async with client(store, era, transport) as c:
                for tool in ("context-manage", "personality-preset-manage"):
                    assert "may not use contexts" in await refused(c, tool, action="list")
                assert (await c.list_resources()).resources == []
                await done(c, "context-remember", contextId="default", content="a plum")


async def a_setting_that_names_no_scope_is_refused_at_the_start():
    with Store(SOTTOVOCE__MCP__SCOPES="everything") as store:
        store.run("mcp", code=5, input="")

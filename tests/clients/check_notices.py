"""Hearing of changes: in a session, or by listening."""

import anyio

from sottovoce import TOKEN, WAYS, Store, client, done, http_client, http_server, make_context

CONTEXTS = "mcp-llm-generator://contexts"


async def _until(happened):
    with anyio.fail_after(5):
        while not happened():
            await anyio.sleep(0.02)


async def a_client_hears_of_what_it_asked_for():
    for era, transport in WAYS:
        with Store() as store:
            heard = []

            async def hear(message):
                name, params = type(message).__name__, getattr(message, "params", None)
                heard.append((name, str(getattr(params, "uri", ""))))

            async with client(store, era, transport, message_handler=hear) as c:
                context = await make_context(c)
                uri = f"mcp-llm-generator://context/{context}"
                remember = {"contextId": context, "content": "Plums"}
                if era == "legacy":
                    heard.clear()
                    await c.subscribe_resource(uri)
                    await done(c, "context-remember", **remember)
                    await _until(lambda: ("ResourceUpdatedNotification", uri) in heard)
                    await make_context(c, "Another")
                    await _until(lambda: any(name == "ResourceListChangedNotification" for name, _ in heard))
                    await c.unsubscribe_resource(uri)
                    heard.clear()
                    await done(c, "context-remember", **remember)
                    await anyio.sleep(0.2)
                    assert not any(name == "ResourceUpdatedNotification" for name, _ in heard), heard
                    continue
                async with c.listen(resources_list_changed=True, resource_subscriptions=[uri]) as events:
                    await done(c, "context-remember", **remember)
                    await make_context(c, "Another")
                    seen = []
                    with anyio.fail_after(5):
                        async for event in events:
                            seen.append((type(event).__name__, str(getattr(event, "uri", ""))))
                            if len(seen) == 2:
                                break
                    assert seen == [("ResourceUpdated", uri), ("ResourcesListChanged", "")], seen


async def a_client_hears_what_another_one_changed():
    with Store() as store, http_server(store) as server:
        heard = []

        async def hear(message):
            heard.append(type(message).__name__)

        async with http_client(server.url, "legacy", message_handler=hear) as old:
            async with http_client(server.url, "auto") as listening, http_client(server.url, "auto") as changing:
                await old.subscribe_resource(CONTEXTS)
                async with listening.listen(resource_subscriptions=[CONTEXTS]) as events:
                    await make_context(changing)
                    with anyio.fail_after(5):
                        async for event in events:
                            assert str(event.uri) == CONTEXTS
                            break
                await _until(lambda: "ResourceUpdatedNotification" in heard)
                await _until(lambda: "ResourceListChangedNotification" in heard)

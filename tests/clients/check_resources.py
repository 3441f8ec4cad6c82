"""What can be read without calling a tool: resources, prompts, completions."""

import json

import mcp_types as T
from mcp import MCPError

from sottovoce import WAYS, Store, client, done, make_context

SCHEME = "mcp-llm-generator://"


async def _read(c, uri):
    contents = (await c.read_resource(SCHEME + uri)).contents
    assert len(contents) == 1 and contents[0].mime_type == "application/json" and str(contents[0].uri) == SCHEME + uri
    return json.loads(contents[0].text)


async def _fails(code, work):
    try:
        await work
    except MCPError as error:
        assert error.code == code, (error.code, error.message)
        return error
    raise AssertionError("it did not fail")


async def contexts_and_presets_can_be_read_by_their_addresses():
    for era, transport in WAYS:
        with Store() as store:
            async with client(store, era, transport) as c:
                context = await make_context(c)
                await done(c, "context-remember", contextId=context, content="The key is under the mat")
                listed = {str(resource.uri): resource for resource in (await c.list_resources()).resources}
                for uri in ("contexts", f"context/{context}", "personality-templates", "personality-presets"):
                    assert SCHEME + uri in listed and listed[SCHEME + uri].name, uri
                for uri in listed:
                    await _read(c, uri.removeprefix(SCHEME))
                assert (await _read(c, "contexts"))["contexts"][0]["name"] == "Mira"
                detail = await _read(c, f"context/{context}")
                assert detail["context"]["id"] == context
                assert detail["recentConversations"][0]["content"] == "The key is under the mat"
                assert (await _read(c, "personality-templates"))["totalCount"] == 6
                assert (await _read(c, "preset/calm_counselor"))["preset"]["isBuiltIn"]
                templates = (await c.list_resource_templates()).resource_templates
                uris = [template.uri_template for template in templates]
                assert uris == [
                    SCHEME + "context/{contextId}", SCHEME + "artifact/{+contextId}/{artifactId}", SCHEME + "preset/{presetId}",
                ], uris
                for uri in ("context/nobody", "context/", "context/../../key", "preset/nobody", "elsewhere"):
                    error = await _fails(-32002 if era == "legacy" else -32602, c.read_resource(SCHEME + uri))
                    assert error.data == {"uri": SCHEME + uri}, error.data
                await _fails(-32002 if era == "legacy" else -32602, c.read_resource("file:///etc/passwd"))


async def prompts_are_filled_with_what_was_given():
    for era, transport in WAYS:
        with Store() as store:
            async with client(store, era, transport) as c:
                prompts = {prompt.name: prompt for prompt in (await c.list_prompts()).prompts}
                assert sorted(prompts) == ["context-summary", "personality-creator"]
                for prompt in prompts.values():
                    assert prompt.title and prompt.description
                    given = {argument.name: f"<{argument.name}>" for argument in prompt.arguments}
                    text = (await c.get_prompt(prompt.name, given)).messages[0].content.text
                    assert all(value in text for value in given.values()), text
                    await _fails(-32602, c.get_prompt(prompt.name, {}))
                await _fails(-32602, c.get_prompt("no-such-prompt", {}))


async def arguments_are_completed():
    for era, transport in WAYS:
        with Store() as store:
            async with client(store, era, transport) as c:
                context = await make_context(c, "Plum tart")
                await make_context(c, "A plum")
                prompt = T.PromptReference(name="context-summary")
                template = T.ResourceTemplateReference(uri=SCHEME + "context/{contextId}")
                preset = T.ResourceTemplateReference(uri=SCHEME + "preset/{presetId}")

                async def offered(reference, argument, typed):
                    completion = (await c.complete(reference, {"name": argument, "value": typed})).completion
                    assert completion.total == len(completion.values) and not completion.has_more
                    return completion.values

                assert await offered(prompt, "contextName", "plu") == ["Plum tart", "A plum"]
                assert context in await offered(template, "contextId", "context-")
                assert len(await offered(preset, "presetId", "")) == 6
                assert await offered(prompt, "timeSpan", "") == []
                await _fails(-32602, c.complete(T.PromptReference(name="none"), {"name": "x", "value": ""}))


async def long_lists_come_in_pages():
    with Store() as store:
        for era, transport in WAYS:
            async with client(store, era, transport) as c:
                if (era, transport) == WAYS[0]:
                    made = [await make_context(c, f"Context {number}") for number in range(103)]
                uris, cursor, pages = [], None, 0
                while True:
                    page = await c.list_resources(cursor=cursor)
                    uris += [str(resource.uri) for resource in page.resources]
                    cursor, pages = page.next_cursor, pages + 1
                    if not cursor:
                        break
                assert pages == 2 and len(uris) == len(set(uris)) == 3 + 103 + 6, (pages, len(uris))
                assert all(f"{SCHEME}context/{context}" in uris for context in made)
                await _fails(-32602, c.list_resources(cursor="none of yours"))
                completion = await c.complete(T.ResourceTemplateReference(uri=SCHEME + "context/{contextId}"),
                                              {"name": "contextId", "value": ""})
                assert len(completion.completion.values) == 100 and completion.completion.total == 103
                assert completion.completion.has_more

"""Every action of every tool, in both eras, over both transports."""

import jsonschema

from model import Model
from sottovoce import WAYS, Store, client, done, make_context, refused

CONTEXT, CHAT, PRESET, HISTORY = "context-manage", "context-chat", "personality-preset-manage", "conversation-manage"
SEARCH, ARTIFACT = "context-search", "artifact-read"
RECALL, REMEMBER, FORGET = "recall", "remember", "forget"


async def every_action_of_every_tool_answers_as_its_schema_says():
    for era, transport in WAYS:
        with Model() as model, Store(**model.environment()) as store:
            async with client(store, era, transport) as c:
                tools = {tool.name: tool for tool in (await c.list_tools()).tools}
                for tool in tools.values():
                    jsonschema.Draft202012Validator.check_schema(tool.input_schema)
                    jsonschema.Draft202012Validator.check_schema(tool.output_schema)
                    assert tool.title and tool.description and tool.annotations
                    assert tool.annotations.read_only_hint == (tool.name in (SEARCH, ARTIFACT, RECALL))
                memory = {RECALL, REMEMBER, FORGET}
                assert set(tools) == {CONTEXT, CHAT, PRESET, HISTORY, "context-remember", SEARCH, ARTIFACT} | memory
                await _contexts(c)
                await _presets(c)
                await _history(c)
                await _memory(c)


async def _contexts(c):
    made = await done(c, CONTEXT, action="create", name="Mira", systemPrompt="You are Mira.", temperature=0.25)
    mira = made["contextId"]
    assert made["context"]["temperature"] == 0.25 and made["context"]["status"] == "created"
    overrides = {"name": "Helper", "temperature": 0, "maxTokens": 9}
    helper = await done(c, CONTEXT, action="create_from_preset", presetId="calm_counselor", presetOverrides=overrides)
    assert helper["name"] == "Helper" and helper["context"]["maxTokens"] == 9 and helper["context"]["temperature"] == 0
    listed = await done(c, CONTEXT, action="list")
    assert [context["name"] for context in listed["contexts"]] == ["Helper", "Mira"], listed
    second = await done(c, CONTEXT, action="list", page=2, pageSize=1, includeExpired=True)
    assert [context["id"] for context in second["contexts"]] == [mira] and second["totalCount"] == 2
    # To JSON Schema these are integers too, and some clients write every number so.
    assert (await done(c, CONTEXT, action="list", page=2.0, pageSize=1.0))["contexts"] == second["contexts"]
    assert (await done(c, CONTEXT, action="get", contextId="Mira"))["context"]["id"] == mira
    updated = await done(c, CONTEXT, action="update", contextId=mira, name="Mira 2", maxHistoryTokens=2000)
    assert updated["context"]["name"] == "Mira 2" and updated["context"]["maxHistoryTokens"] == 2000
    before = updated["context"]["expiresAt"]
    extended = (await done(c, CONTEXT, action="extend", contextId=mira, days=90))["context"]
    assert extended["expiresAt"] > before and extended["status"] == "extended"
    deleted = await done(c, CONTEXT, action="delete", contextId=helper["contextId"])
    assert deleted["deleted"] == {"id": helper["contextId"], "status": "deleted"}
    assert (await done(c, CONTEXT, action="list"))["totalCount"] == 1
    assert (await done(c, CONTEXT, action="list", includeInactive=True))["totalCount"] == 2
    back = await done(c, CONTEXT, action="update", contextId=helper["contextId"], isActive=True)
    assert back["context"]["isActive"]
    for wrong in (
        {"action": "explode"}, {"action": "get"}, {"action": "get", "contextId": "nobody"}, {"action": "create", "name": "x"},
        {"action": "create", "name": "x", "systemPrompt": "y", "temperature": 1.5}, {"action": "update", "contextId": mira},
        {"action": "create", "name": "x", "systemPrompt": "y", "maxHistoryTokens": 10}, {"action": "list", "pageSize": 101},
        {"action": "create", "name": "x" * 300, "systemPrompt": "y"}, {"action": "list", "unheard": 1}, {},
        {"action": "list", "page": 1.5}, {"action": "create_from_preset", "presetId": "nobody"}, {"action": "extend", "contextId": mira, "days": 0},
    ):
        assert (await refused(c, CONTEXT, **wrong)).startswith("Error: "), wrong


async def _presets(c):
    settings = {"temperature": 0.9, "maxTokens": 50, "maxHistoryTokens": 3000, "expiryDays": 3}
    made = (await done(c, PRESET, action="create", name="DJ", description="Plays music", systemPrompt="You play music.",
                       defaultPersonality="Cheerful", defaultSettings=settings, metadata={"lang": "de"}))["preset"]
    assert made["defaultSettings"] == settings and made["metadata"] == {"lang": "de"} and not made["isBuiltIn"]
    listed = await done(c, PRESET, action="list", pageSize=100)
    assert listed["totalCount"] == 7 and made["id"] in [preset["id"] for preset in listed["presets"]]
    assert (await done(c, PRESET, action="get", presetId="DJ"))["preset"]["id"] == made["id"]
    updated = await done(c, PRESET, action="update", presetId=made["id"], description="Plays calm music", isActive=False)
    assert updated["preset"]["description"] == "Plays calm music"
    assert (await done(c, PRESET, action="list"))["totalCount"] == 6
    assert (await done(c, PRESET, action="list", includeInactive=True))["totalCount"] == 7
    assert (await done(c, PRESET, action="delete", presetId=made["id"]))["deleted"]["status"] == "deleted"
    changed = await done(c, PRESET, action="update", presetId="calm_counselor", description="Mine")
    assert changed["preset"]["isBuiltIn"] and changed["preset"]["description"] == "Mine"
    assert (await done(c, PRESET, action="delete", presetId="calm_counselor"))["deleted"]["status"] == "reset"
    assert (await done(c, PRESET, action="get", presetId="calm_counselor"))["preset"]["description"] != "Mine"
    for wrong in ({"action": "get"}, {"action": "get", "presetId": "nobody"}, {"action": "create", "name": "x"}, {}):
        assert (await refused(c, PRESET, **wrong)).startswith("Error: "), wrong


async def _history(c):
    context = await make_context(c, "Talk")
    for role in ("user", "assistant", "system"):
        said = {"contextId": context, "content": f"The {role} likes plums", "role": role, "metadata": {"from": "a check"}}
        assert (await done(c, "context-remember", **said))["conversation"]["role"] == role
    answer = await done(c, CHAT, contextId="Talk", message="How are you?")
    assert answer["response"] == "It is fine." and answer["contextName"] == "Talk" and answer["metadata"]["tokensUsed"] == 16
    assert answer["personality"] == "Warm and brief" and answer["assistantResponse"]["id"] == "conv-5"
    answer = await done(c, CHAT, contextId=context, message="And now?", maintainPersonality=False)
    assert answer["personality"] == ""
    listed = await done(c, HISTORY, action="list", contextId=context, pageSize=3)
    assert [message["id"] for message in listed["conversations"]] == ["conv-7", "conv-6", "conv-5"], listed
    oldest = await done(c, HISTORY, action="list", contextId=context, pageSize=2, page=2, reverse=False)
    assert [message["id"] for message in oldest["conversations"]] == ["conv-3", "conv-4"] and oldest["totalCount"] == 7
    found = await done(c, SEARCH, query="plums LIKES")
    assert found["totalCount"] == 3 and found["matches"][0]["contextId"] == context
    assert (await done(c, SEARCH, query="plums", contextId="Mira 2"))["totalCount"] == 0
    assert (await done(c, SEARCH, query="plums", limit=1, includeExpired=True))["totalCount"] == 3
    gone = await done(c, HISTORY, action="delete", contextId=context, conversationIds=["conv-2", "conv-99"])
    assert gone["deleted"] == {"count": 1, "status": "deleted"} and gone["deletedCount"] == 1
    assert (await done(c, HISTORY, action="delete", contextId=context, olderThan="2020-01-01T00:00:00Z"))["deletedCount"] == 0
    assert (await done(c, HISTORY, action="clear", contextId=context))["cleared"]["count"] == 6
    assert (await done(c, HISTORY, action="list", contextId=context))["conversations"] == []
    for tool, wrong in (
        (HISTORY, {"action": "delete"}), (HISTORY, {"action": "delete", "conversationIds": ["x"]}), (HISTORY, {}),
        (HISTORY, {"action": "delete", "olderThan": "yesterday"}), (HISTORY, {"action": "list", "pageSize": 0}),
        (CHAT, {}), (CHAT, {"message": " "}), ("context-remember", {"content": ""}),
        ("context-remember", {"content": "x", "metadata": {"saidIn": "y"}}), ("context-remember", {"content": "x", "role": "tool"}),
    ):
        assert (await refused(c, tool, contextId=context, **wrong)).startswith("Error: "), (tool, wrong)
    for wrong in ({"query": ""}, {"query": "x", "limit": 101}, {"query": "x", "contextId": "nobody"}):
        assert (await refused(c, SEARCH, **wrong)).startswith("Error: "), wrong
    assert (await done(c, ARTIFACT, contextId=context))["artifacts"] == []
    for wrong in ({}, {"contextId": context, "artifactId": "abcd1234"}, {"contextId": "nobody", "artifactId": "abcd1234"}):
        assert (await refused(c, ARTIFACT, **wrong)).startswith("Error: "), wrong


async def _memory(c):
    said = "We got a hamster and called it Pixel."
    stored = await done(c, REMEMBER, text=said)
    assert stored["scope"] == "named/mcp-memory" and stored["id"] == "conv-1"
    found = await done(c, RECALL, words="What is the hamster called?", limit=1)
    assert found["passages"][0]["text"] == said and found["passages"][0]["scope"] == stored["scope"]
    which = {"ids": [stored["id"]], "scope": stored["scope"]}
    plan = await done(c, FORGET, confirmed=False, **which)
    assert plan["ids"] == [stored["id"]] and plan["messages"] == [{"id": stored["id"], "text": said}]
    assert (await done(c, FORGET, confirmed=True, **which))["ids"] == [stored["id"]]
    assert (await done(c, RECALL, words="hamster", scope=stored["scope"]))["passages"] == []
    for tool, wrong in (
        (RECALL, {}), (RECALL, {"words": " "}), (RECALL, {"words": "x", "limit": 51}), (RECALL, {"words": "x", "scope": "dm/42"}),
        (REMEMBER, {"text": ""}), (REMEMBER, {"text": "x", "scope": "nobody"}),
        (FORGET, {"ids": ["conv-1"], "confirmed": True}), (FORGET, {**which, "ids": [], "confirmed": True}), (FORGET, which),
    ):
        assert (await refused(c, tool, **wrong)).startswith("Error: "), (tool, wrong)

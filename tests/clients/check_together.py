"""Several servers and the program itself on one store at once."""

import anyio

from sottovoce import ERAS, Store, client, done, make_context

EACH = 25
MADE = 8


async def nothing_is_lost_when_two_servers_and_the_program_write_at_once():
    with Store() as store:
        async with client(store, "legacy", "stdio") as one, client(store, "auto", "http") as other:
            context, made = await make_context(one, "Shared"), []

            async def remember(c, who):
                for number in range(EACH):
                    said = await done(c, "context-remember", contextId=context, content=f"{who} {number}")
                    assert said["conversation"]["content"] == f"{who} {number}"

            async def make(c, who):
                for number in range(MADE):
                    made.append(await make_context(c, f"{who} {number}"))

            async def append():
                arguments = ("--scope", f"named/{context}", "append", "--role", "user")
                for number in range(EACH):
                    await anyio.to_thread.run_sync(store.run, *arguments, f"program {number}")

            async with anyio.create_task_group() as group:
                group.start_soon(append)
                for c, who in ((one, "one"), (other, "other")):
                    group.start_soon(remember, c, who)
                    group.start_soon(make, c, who)

            wanted = sorted(f"{who} {number}" for who in ("one", "other", "program") for number in range(EACH))
            for c in (one, other):
                held = []
                for page in (1, 2, 3):
                    listed = await done(c, "conversation-manage", action="list", contextId=context, page=page, pageSize=50)
                    assert listed["totalCount"] == 3 * EACH
                    held += listed["conversations"]
                assert sorted(message["content"] for message in held) == wanted
                assert len({message["id"] for message in held}) == 3 * EACH
                contexts = await done(c, "context-manage", action="list", pageSize=100)
                assert {entry["id"] for entry in contexts["contexts"]} == {context, *made} and len(made) == 2 * MADE
                for who in ("one", "other", "program"):
                    told = [m["content"] for m in reversed(held) if m["content"].startswith(f"{who} ")]
                    assert told == [f"{who} {number}" for number in range(EACH)], "each one's messages stay in order"
        assert sorted(words for _, words in store.messages(context)) == wanted
        store.is_sound()


async def what_one_server_deletes_is_gone_for_the_other():
    with Store() as store:
        async with client(store, "legacy", "stdio") as one, client(store, "auto", "stdio") as other:
            context = await make_context(one)
            await done(other, "context-remember", contextId=context, content="Plums")
            await done(one, "conversation-manage", action="clear", contextId=context)
            assert (await done(other, "context-search", query="Plums"))["totalCount"] == 0
            await done(other, "context-manage", action="delete", contextId=context)
            assert (await done(one, "context-manage", action="list"))["totalCount"] == 0
            assert (await one.call_tool("context-chat", {"contextId": context, "message": "x"})).is_error
        store.is_sound()


async def many_calls_of_one_client_at_once_are_all_answered():
    for era in ERAS:
        with Store() as store:
            async with client(store, era, "http") as c:
                contexts = [await make_context(c, f"Context {number}") for number in range(4)]

                async def remember(context, number):
                    await done(c, "context-remember", contextId=context, content=f"Number {number}")

                async with anyio.create_task_group() as group:
                    for number in range(40):
                        group.start_soon(remember, contexts[number % 4], number)
                counts = [entry["messageCount"] for entry in (await done(c, "context-manage", action="list"))["contexts"]]
                assert counts == [10] * 4, counts
            store.is_sound()

"""Talking to a model: what it is told, and what is left when it is broken off."""

import anyio

from model import Model
from sottovoce import WAYS, Store, client, done, make_context, refused


async def the_model_is_told_the_personality_first_and_the_figures_of_the_context():
    for era, transport in WAYS:
        with Model() as model, Store(**model.environment()) as store:
            async with client(store, era, transport) as c:
                context = await make_context(c)
                await done(c, "context-chat", contextId=context, message="Good morning")
                await done(c, "context-chat", contextId=context, message="Still there?")
                await done(c, "context-chat", contextId=context, message="Who?", maintainPersonality=False)
        first, second, bare = model.asked
        assert first["stream"] and first["options"]["temperature"] == 0.25 and first["options"]["num_predict"] == 77
        system = first["messages"][0]
        assert system["role"] == "system" and "You are Mira." in system["content"] and "Warm and brief" in system["content"]
        assert "Good morning" in first["messages"][-1]["content"] and first["messages"][-1]["role"] == "user"
        roles = [message["role"] for message in second["messages"]]
        assert roles == ["system", "user", "assistant", "user"], roles
        assert second["messages"][: 2] == first["messages"], "the beginning of a prompt stays the same"
        assert not any("Warm and brief" in message["content"] for message in bare["messages"])


async def progress_is_told_while_the_model_answers():
    for era, transport in WAYS:
        with Model(pieces=["word "] * 10, pause=0.1) as model, Store(**model.environment()) as store:
            async with client(store, era, transport) as c:
                context, told = await make_context(c), []

                async def hear(progress, total, message):
                    told.append(progress)

                said = {"contextId": context, "message": "Tell me"}
                result = await c.call_tool("context-chat", said, progress_callback=hear)
                assert not result.is_error
                assert len(told) >= 3 and told == sorted(set(told)), told


async def what_was_said_and_what_had_come_of_the_answer_outlive_a_cancellation():
    for era, transport in WAYS:
        with Model(pieces=["The sea ", "is ", "never said"], stall_after=2) as model, Store(**model.environment()) as store:
            async with client(store, era, transport) as c:
                context = await make_context(c)
                async with anyio.create_task_group() as group:
                    said = {"contextId": context, "message": "What is it?"}
                    group.start_soon(c.call_tool, "context-chat", said)
                    assert await anyio.to_thread.run_sync(model.stalled.wait, 10)
                    await anyio.sleep(0.2)
                    group.cancel_scope.cancel()
                await store.keeps(context, ("user", "What is it?"), ("assistant", "The sea is "))
                model.go_on.set()
                answer = await done(c, "context-chat", contextId=context, message="Once more?")
                assert answer["response"] == "The sea is never said"
            store.is_sound()


async def two_calls_in_one_context_take_turns():
    for era, transport in WAYS:
        with Model(pause=0.05) as model, Store(**model.environment()) as store:
            async with client(store, era, transport) as c:
                context = await make_context(c)
                async with anyio.create_task_group() as group:
                    for number in range(4):
                        said = {"contextId": context, "message": f"Number {number}"}
                        group.start_soon(c.call_tool, "context-chat", said)
            roles = [role for role, _ in store.messages(context)]
            assert roles == ["user", "assistant"] * 4, roles


async def without_a_model_the_answer_is_an_error_and_what_was_said_is_kept():
    for era, transport in WAYS:
        with Store() as store:
            async with client(store, era, transport) as c:
                context = await make_context(c)
                reason = await refused(c, "context-chat", contextId=context, message="Anybody?")
                assert "model server cannot be reached" in reason, reason
            assert store.messages(context) == [("user", "Anybody?")]

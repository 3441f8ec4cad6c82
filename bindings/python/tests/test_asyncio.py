import asyncio

import pytest

import sottovoce


def run(work):
    return asyncio.run(asyncio.wait_for(work, 30))


def last(conversation):
    message = conversation.tail()[-1]
    return message.role, message.content, message.cut_off


def test_every_method_has_a_twin_for_asyncio():
    for kind in [sottovoce.Store, sottovoce.Conversation, sottovoce.Answer]:
        methods = {name for name in dir(kind) if not name.startswith("_") and callable(getattr(kind, name))}
        twins = {name for name in methods if name.endswith("_async")}
        alone = {name for name in methods - twins if f"{name}_async" not in twins}
        # To close an answer only tells the turn to end.
        assert alone == ({"close"} if kind is sottovoce.Answer else set())


def test_a_whole_conversation_in_asyncio(options, model):
    async def talk():
        async with sottovoce.Store(**options, base_url=model.url) as store:
            conversation = await store.conversation_async("named/kitchen")
            await conversation.prepare_async()
            async with await conversation.ask_async("How is it?") as answer:
                assert [text async for text in answer] == ["It is ", "fine."]
            assert await (await conversation.ask_async("And now?", sentences=True)).read_async() == "It is fine."
            prompt = await conversation.hear_async("And then?", speaker="Ben")
            assert (await conversation.prompt_async("What?")).utterance is None
            assert prompt.utterance.seq == 5
            await conversation.keep_async("Rain.", spoken_up_to=2)
            message = await conversation.append_async("system", "The door opens.", metadata={"a": "b"})
            assert (await conversation.get_async(message.seq)).metadata == {"a": "b"}
            assert len(await conversation.search_async("fine")) == 2
            assert await conversation.recall_async("How is it?")
            assert await conversation.forget_async(1, 2) == [1, 2]
            assert [m.seq for m in await conversation.tail_async()] == [3, 4, 5, 6, 7]
            assert await conversation.forget_all_async() == [3, 4, 5, 6, 7]
            await conversation.close_async()
            assert await store.scopes_async() == ["named/kitchen"]
        with pytest.raises(sottovoce.ClosedError):
            await conversation.tail_async()

    run(talk())


def test_the_loop_runs_on_while_the_model_is_silent(slow):
    async def talk():
        ticks = 0
        answer = await slow.ask_async("Count.")
        assert await anext(answer) == "One. "
        waiting = asyncio.ensure_future(anext(answer))
        for _ in range(20):
            await asyncio.sleep(0.01)
            ticks += 1
        assert ticks == 20 and not waiting.done()
        waiting.cancel()

    run(talk())


def test_a_cancelled_task_interrupts_its_answer(slow):
    answers = []

    async def speak():
        answers.append(await slow.ask_async("Count."))
        async for _ in answers[0]:
            pass

    async def talk():
        task = asyncio.create_task(speak())
        while not (answers and answers[0].text):
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await slow.close_async()
        assert answers[0].interrupted

    run(talk())
    assert last(slow) == ("assistant", "One. ", "interrupted")


def test_a_time_limit_interrupts(slow):
    async def talk():
        answer = await slow.ask_async("Count.")
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(answer.read_async(), 0.5)
        assert [text async for text in answer] == []
        await slow.close_async()

    run(talk())
    assert last(slow) == ("assistant", "One. ", "interrupted")


def test_another_task_interrupts_and_the_loop_ends(slow):
    async def talk():
        answer = await slow.ask_async("Count.")

        async def barge_in():
            while not answer.text:
                await asyncio.sleep(0.01)
            return await answer.spoken_up_to_async(3)

        task = asyncio.create_task(barge_in())
        assert [text async for text in answer] == ["One. "]
        assert (await task).content == "One"

    run(talk())
    assert last(slow) == ("assistant", "One", "interrupted")


def test_many_conversations_at_once(options, model):
    async def talk():
        async with sottovoce.Store(**options, base_url=model.url) as store:

            async def one(n):
                conversation = await store.conversation_async(f"dm/{n}")
                answer = await conversation.ask_async(f"I am {n}.")
                return await answer.read_async()

            assert set(await asyncio.gather(*map(one, range(40)))) == {"It is fine."}
            assert len(await store.scopes_async()) == 40

    run(talk())


def test_a_loop_that_ends_in_the_middle_of_an_answer_stores_what_was_taken(slow):
    async def talk():
        answer = await slow.ask_async("Count.")
        assert await anext(answer) == "One. "
        asyncio.ensure_future(anext(answer))
        await asyncio.sleep(0.1)

    run(talk())
    slow.close()
    assert last(slow) == ("assistant", "One. ", "interrupted")


def test_an_asynchronous_method_outside_of_a_loop_is_refused(conversation):
    with pytest.raises(RuntimeError):
        conversation.tail_async()

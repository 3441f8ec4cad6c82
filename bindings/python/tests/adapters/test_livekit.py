"""livekit's agents: what is stored of answers that are interrupted or fail."""

import asyncio

import pytest

pytest.importorskip("livekit.agents", reason="livekit-agents is not installed")

from livekit.agents import APIConnectionError, APIConnectOptions, llm  # noqa: E402

import sottovoce  # noqa: E402
from sottovoce.livekit import SottovoceLLM  # noqa: E402

ONCE = APIConnectOptions(max_retry=0)


def _tail(conversation):
    return [(message.role, message.content, message.cut_off) for message in conversation.tail()]


async def _texts(stream):
    async with stream:
        return [chunk.delta.content async for chunk in stream if chunk.delta]


def test_only_the_newest_utterance_is_stored_and_usage_is_told(conversation):
    async def main():
        context = llm.ChatContext.empty()
        context.add_message(role="system", content="Be brief.")
        context.add_message(role="user", content="Good morning.")
        context.add_message(role="user", content="How is the weather?")
        async with SottovoceLLM(conversation) as model, model.chat(chat_ctx=context) as stream:
            chunks = [chunk async for chunk in stream]
        assert "".join(chunk.delta.content for chunk in chunks if chunk.delta) == "It is fine."
        assert chunks[-1].usage.prompt_tokens == 12 and chunks[-1].usage.completion_tokens == 4

    asyncio.run(main())
    assert _tail(conversation) == [("user", "How is the weather?", None), ("assistant", "It is fine.", None)]


@pytest.mark.parametrize("heard", ["One.", "", None])
def test_of_an_interrupted_answer_what_was_heard_is_stored_with_the_next_turn(slow, slow_model, heard):
    async def main():
        context = llm.ChatContext.empty()
        context.add_message(role="user", content="Count.")
        async with SottovoceLLM(slow) as model:
            stream = model.chat(chat_ctx=context)
            assert (await anext(stream)).delta.content == "One. "
            await stream.aclose()
            if heard is not None:
                context.add_message(role="assistant", content=heard, interrupted=True)
            slow_model.stall_after = None
            context.add_message(role="user", content="Again.")
            assert "".join(await _texts(model.chat(chat_ctx=context))) == "One. Two. Three."

    asyncio.run(main())
    cut = [("assistant", "One.", "interrupted")] if heard else []
    rest = [("user", "Again.", None), ("assistant", "One. Two. Three.", None)]
    assert _tail(slow) == [("user", "Count.", None), *cut, *rest]


def test_a_whole_answer_is_cut_to_what_was_heard_of_it(conversation):
    async def main():
        context = llm.ChatContext.empty()
        context.add_message(role="user", content="How is the weather?")
        async with SottovoceLLM(conversation) as model:
            await _texts(model.chat(chat_ctx=context))
            context.add_message(role="assistant", content="It is", interrupted=True)
            context.add_message(role="user", content="Stop.")
            await _texts(model.chat(chat_ctx=context))

    asyncio.run(main())
    assert _tail(conversation)[1] == ("assistant", "It is", "interrupted")


def test_a_model_that_cannot_be_reached_is_an_error_of_livekits_and_stores_the_utterance_once(options):
    async def main(conversation):
        context = llm.ChatContext.empty()
        context.add_message(role="user", content="Hello?")
        again = APIConnectOptions(max_retry=2, retry_interval=0)
        async with SottovoceLLM(conversation) as model:
            with pytest.raises(APIConnectionError):
                await _texts(model.chat(chat_ctx=context, conn_options=again))

    with sottovoce.Store(**options, base_url="http://127.0.0.1:9") as store:
        conversation = store.conversation("dm/ann")
        asyncio.run(main(conversation))
        assert _tail(conversation) == [("user", "Hello?", None)]

"""Sessions of the OpenAI Agents SDK."""

import asyncio

import pytest

pytest.importorskip("agents", reason="openai-agents is not installed")

from sottovoce.agents import SottovoceSession  # noqa: E402

ITEMS = [
    {"role": "user", "content": "What's the weather in Ulm?"},
    {"role": "developer", "content": "Answer briefly."},
    {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"},
    {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "weather", "arguments": '{"city": "Ulm",  "days": 1}'},
    {"type": "function_call", "id": "fc_2", "call_id": "call_2", "name": "weather", "arguments": "{not json"},
    {"type": "function_call_output", "call_id": "call_1", "output": "Rain."},
    {"type": "function_call_output", "call_id": "call_2", "output": [{"type": "input_text", "text": "No such place."}]},
    {"id": "m1", "type": "message", "role": "assistant", "status": "completed",
     "content": [{"type": "output_text", "text": "It rains.", "annotations": []}]},
    {"role": "user", "content": [{"type": "input_text", "text": "And this?"}, {"type": "input_image", "image_url": "data:,x"}]},
    {"role": "user", "type": "message", "content": ""},
]


def test_every_kind_of_item_comes_back_as_it_was(conversation):
    async def main():
        session = SottovoceSession(conversation)
        await session.add_items(ITEMS)
        assert await session.get_items() == ITEMS
        assert await session.get_items(limit=2) == ITEMS[-2:]
        assert await session.get_items(limit=0) == []

    asyncio.run(main())
    tail = conversation.tail()
    assert [message.content for message in tail if message.content] == [
        "What's the weather in Ulm?", "Answer briefly.", "Rain.", "It rains.", "And this?"
    ]
    assert tail[3].tool_calls == [{"id": "call_1", "name": "weather", "arguments": {"city": "Ulm", "days": 1}}]
    assert [found.seq for found in conversation.search("rains")] == [8]


def test_words_stand_in_one_place_so_that_forgetting_leaves_none(conversation):
    session = SottovoceSession(conversation)
    asyncio.run(session.add_items(ITEMS))
    for message in conversation.tail():
        for value in message.metadata.values():
            assert "rains" not in value and "Rain." not in value and "weather in" not in value


def test_what_is_popped_or_cleared_is_gone_and_nothing_else(store):
    async def main():
        one = SottovoceSession(store.conversation("dm/ann", thread="one"))
        two = SottovoceSession(store.conversation("dm/ann", thread="two"))
        assert one.session_id == "one" and await one.pop_item() is None
        await one.add_items(ITEMS[:3])
        await two.add_items(ITEMS[:1])
        assert await one.pop_item() == ITEMS[2]
        assert await one.get_items() == ITEMS[:2]
        await one.clear_session()
        assert await one.get_items() == [] and await two.get_items() == ITEMS[:1]
        await one.clear_session()

    asyncio.run(main())


def test_a_limit_of_the_session_holds_unless_the_call_has_one(conversation):
    from agents.memory import SessionSettings

    async def main():
        session = SottovoceSession(conversation, SessionSettings(limit=1))
        await session.add_items(ITEMS)
        assert await session.get_items() == ITEMS[-1:]
        assert await session.get_items(3) == ITEMS[-3:]

    asyncio.run(main())

"""Sealed memory for the OpenAI Agents SDK: a session in the encrypted store.

    from agents import Agent, Runner
    from sottovoce import Store
    from sottovoce.agents import SottovoceSession

    store = Store()
    session = SottovoceSession(store.conversation("dm/ann", thread="travel"))
    result = await Runner.run(agent, "Where did we want to go?", session=session)
"""

from __future__ import annotations

import json
from typing import Any, cast

from agents import SessionABC, TResponseInputItem
from agents.memory import SessionSettings

from . import Conversation, Message

__all__ = ["SottovoceSession"]

# The metadata key of what an item says besides its text.
_ITEM = "agentsItem"
# The largest number of messages that can be asked for.
_ALL = 2**32
_TEXTS = ("input_text", "output_text", "text")


class SottovoceSession(SessionABC):
    """The items of a session, each a sealed message of a conversation.

    The texts of items are the words of messages, so that they can be searched, recalled and forgotten as any others; the rest
    of an item is kept beside them as JSON. Messages that something else has put into the same conversation are items too.
    `pop_item` and `clear_session` delete for ever.
    """

    def __init__(
        self, conversation: Conversation, session_settings: SessionSettings | None = None
    ) -> None:
        self.session_id = conversation.thread or conversation.scope
        self.session_settings = session_settings or SessionSettings()
        self._conversation = conversation

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """The newest `limit` items, oldest first; all without a limit."""
        if limit is None and self.session_settings is not None:
            limit = self.session_settings.limit
        if limit is not None and limit <= 0:
            return []
        messages = await self._conversation.tail_async(_ALL if limit is None else limit)
        return [_item(message) for message in messages]

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Stores items after all others, in their order."""
        for item in items:
            await self._conversation.append_async(**_message(cast("dict[str, Any]", item)))

    async def pop_item(self) -> TResponseInputItem | None:
        """Deletes the newest item and returns it; `None` if there is none."""
        messages = await self._conversation.tail_async(1)
        if not messages:
            return None
        await self._conversation.forget_async(messages[-1].seq)
        return _item(messages[-1])

    async def clear_session(self) -> None:
        """Deletes all items of this session, and no others."""
        messages = await self._conversation.tail_async(_ALL)
        await self._conversation.forget_async(*(message.seq for message in messages))


def _message(item: dict[str, Any]) -> dict[str, Any]:
    """An item as arguments of `append`."""
    kind = item.get("type", "message")
    if kind == "function_call":
        arguments = _parsed(item.get("arguments", ""))
        call = {"id": item.get("call_id", ""), "name": item.get("name", ""), "arguments": arguments}
        return _with_rest(item, "assistant", "", tool_calls=[call])
    if kind == "function_call_output" and isinstance(item.get("output"), str):
        rest = {**item, "output": None}
        return _with_rest(rest, "tool", item["output"], tool_call_id=item.get("call_id"))
    role = item.get("role")
    if kind != "message" or role not in ("user", "assistant", "system", "developer"):
        return _with_rest(item, "assistant", "")
    role = "system" if role == "developer" else role
    content = item.get("content")
    if isinstance(content, str):
        if item == {"role": role, "content": content}:
            return {"role": role, "content": content}
        return _with_rest({**item, "content": None}, role, content)
    if isinstance(content, list) and len(content) == 1 and _is_text(content[0]):
        rest = {**item, "content": [{**content[0], "text": None}]}
        return _with_rest(rest, role, content[0]["text"])
    return _with_rest(item, role, "\n".join(part["text"] for part in content or [] if _is_text(part)))


def _with_rest(rest: dict[str, Any], role: str, content: str, **more: Any) -> dict[str, Any]:
    metadata = {_ITEM: json.dumps(rest, ensure_ascii=False)}
    return {"role": role, "content": content, "metadata": metadata, **more}


def _item(message: Message) -> TResponseInputItem:
    """The item that a message is."""
    rest = message.metadata.get(_ITEM)
    if rest is None:
        if message.role == "tool":
            output = {"type": "function_call_output", "call_id": message.tool_call_id or ""}
            return cast(TResponseInputItem, {**output, "output": message.content})
        return cast(TResponseInputItem, {"role": message.role, "content": message.content})
    item = json.loads(rest)
    # What was masked before it was sealed stays masked.
    for field in ("output", "content"):
        if field in item and item[field] is None:
            item[field] = message.content
    content = item.get("content")
    if isinstance(content, list) and len(content) == 1 and content[0].get("text", "") is None:
        content[0]["text"] = message.content
    return cast(TResponseInputItem, item)


def _is_text(part: Any) -> bool:
    return (
        isinstance(part, dict) and part.get("type") in _TEXTS and isinstance(part.get("text"), str)
    )


def _parsed(arguments: str) -> Any:
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments

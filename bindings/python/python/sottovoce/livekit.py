"""Sealed memory for livekit's agents: a model for an `AgentSession`.

    from livekit.agents import AgentSession
    from sottovoce import Store
    from sottovoce.livekit import SottovoceLLM

    store = Store(model="llama3.2")
    session = AgentSession(llm=SottovoceLLM(store.conversation("dm/ann")), ...)
"""

from __future__ import annotations

import asyncio
from typing import Any

from livekit.agents import APIConnectionError, APIError, llm
from livekit.agents.types import DEFAULT_API_CONNECT_OPTIONS, APIConnectOptions

from . import Answer, Conversation, ModelUnreachableError, SottovoceError

__all__ = ["SottovoceLLM"]


class SottovoceLLM(llm.LLM[str]):
    """Asks the conversation's own model about each turn of the user, and stores both.

    Of the session's context only the user's newest message counts: what was said before comes from the conversation, and so
    does the system prompt. The session's tools are not offered to the model. Of an answer that was interrupted, what the
    session says was heard is stored, as soon as the next turn begins or the model is closed.
    """

    def __init__(self, conversation: Conversation) -> None:
        super().__init__()
        self._conversation = conversation
        self._newest: _Stream | None = None

    @property
    def model(self) -> str:
        """The name of this model."""
        return "sottovoce"

    @property
    def provider(self) -> str:
        """The name of its provider."""
        return "sottovoce"

    def chat(
        self,
        *,
        chat_ctx: llm.ChatContext,
        tools: list[llm.Tool] | None = None,
        conn_options: APIConnectOptions = DEFAULT_API_CONNECT_OPTIONS,
        **_options: Any,
    ) -> llm.LLMStream:
        """Answers the user's newest message in the context."""
        return _Stream(self, chat_ctx=chat_ctx, tools=tools or [], conn_options=conn_options)

    async def _prewarm_impl(self) -> None:
        await self._conversation.prepare_async()

    async def aclose(self) -> None:
        """Interrupts an answer in progress, and waits until it is stored."""
        await super().aclose()
        await self._conversation.close_async()


class _Stream(llm.LLMStream):
    """One answer."""

    def __init__(self, model: SottovoceLLM, **options: Any) -> None:
        self._owner = model
        self._before, model._newest = model._newest, self
        self._answer: Answer | None = None
        # The item of the session's context that is answered.
        self._asked: str | None = None
        self._has_ended = False
        super().__init__(model, **options)

    async def _run(self) -> None:
        try:
            if self._before is not None:
                await self._before._correct(self._chat_ctx)
                self._before = None
            self._answer = answer = await self._ask()
            if answer is None:
                return
            name = f"sottovoce-{id(self)}"
            # An interruption cancels this task. The turn must not end with it: how much was heard comes later.
            while (text := await asyncio.shield(_next(answer))) is not None:
                delta = llm.ChoiceDelta(role="assistant", content=text)
                self._event_ch.send_nowait(llm.ChatChunk(id=name, delta=delta))
            self._has_ended = True
            self._send_usage(answer, name)
        except ModelUnreachableError as error:
            raise APIConnectionError(error.message) from error
        except SottovoceError as error:
            raise APIError(error.message, retryable=False) from error

    async def _ask(self) -> Answer | None:
        conversation = self._owner._conversation
        if self._answer is not None:
            # A second try: the utterance is stored.
            return await conversation.retry_async()
        for item in reversed(self._chat_ctx.items):
            if item.type == "message" and item.role == "user":
                self._asked, text = item.id, item.text_content
                return await conversation.ask_async(text) if text and text.strip() else None
        return None

    def _send_usage(self, answer: Answer, name: str) -> None:
        report = answer.report
        if report is None or report.prompt_tokens is None or report.answer_tokens is None:
            return
        usage = llm.CompletionUsage(
            completion_tokens=report.answer_tokens,
            prompt_tokens=report.prompt_tokens,
            total_tokens=report.prompt_tokens + report.answer_tokens,
        )
        self._event_ch.send_nowait(llm.ChatChunk(id=name, usage=usage))

    async def _correct(self, chat_ctx: llm.ChatContext) -> None:
        """Shortens the stored answer to what the session says was heard of it."""
        answer = self._answer
        if answer is None:
            return
        heard = _heard(chat_ctx, self._asked)
        if heard is None and self._has_ended:
            return
        # An answer that was interrupted before anything was heard is in no context.
        heard = heard or ""
        if answer.text.startswith(heard) and len(heard) < len(answer.text):
            await answer.spoken_up_to_async(len(heard))
        elif not self._has_ended:
            answer.close()


async def _next(answer: Answer) -> str | None:
    return await anext(answer, None)


def _heard(chat_ctx: llm.ChatContext, asked: str | None) -> str | None:
    """What was heard of the answer to an item, if it was interrupted."""
    items = iter(chat_ctx.items)
    if not any(item.id == asked for item in items):
        return None
    for item in items:
        if item.type == "message" and item.role == "assistant":
            return (item.text_content or "").rstrip() if item.interrupted else None
    return None

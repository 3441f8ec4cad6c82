"""Sealed memory for pipecat's pipelines.

`SottovoceLLM` stands in the place of the model: it asks the model that the store is configured for. `SottovoceMemory` stands
before any model of pipecat's: it stores what the user said, and gives the model the conversation's prompt in place of the
session's messages. Both store of an interrupted answer what was spoken of it, as pipecat's assistant aggregator tells.

    from pipecat.processors.aggregators.llm_context import LLMContext
    from pipecat.processors.aggregators.llm_response_universal import LLMContextAggregatorPair
    from sottovoce import Store
    from sottovoce.pipecat import SottovoceLLM

    store = Store(model="llama3.2")
    aggregators = LLMContextAggregatorPair(LLMContext())
    pipeline = Pipeline([
        transport.input(), stt, aggregators.user(),
        SottovoceLLM(store.conversation("named/kitchen")),
        tts, transport.output(), aggregators.assistant(),
    ])
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from pipecat.frames.frames import (
    EagerEndOfTurnCancelFrame,
    Frame,
    InterruptionFrame,
    LLMContextAssistantTurnFrame,
    LLMContextFrame,
    LLMContextUserTurnFrame,
    LLMFullResponseEndFrame,
    LLMFullResponseStartFrame,
    LLMTextFrame,
)
from pipecat.processors.frame_processor import FrameDirection, FrameProcessor
from pipecat.services.llm_service import LLMService
from pipecat.services.settings import LLMSettings

from . import Answer, Conversation, Message, SottovoceError

__all__ = ["SottovoceLLM", "SottovoceMemory"]

_SYSTEM = ("system", "developer")


class SottovoceLLM(LLMService):
    """Asks the conversation's own model about each turn of the user, and stores both.

    Tools of the session's context are not offered to the model. If the model fails, the pipeline gets an error, and what
    the user said stays stored.
    """

    def __init__(self, conversation: Conversation, **kwargs: Any) -> None:
        super().__init__(settings=_settings(), **kwargs)
        self._conversation = conversation
        self._answer: Answer | None = None
        self._is_interrupted = False
        self._is_speculative = False
        self._hears_turns = False

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        """Answers contexts, and passes on every other frame."""
        await super().process_frame(frame, direction)
        if isinstance(frame, LLMContextFrame):
            await self._ask(frame)
            return
        if isinstance(frame, InterruptionFrame):
            self._is_interrupted = True
        elif isinstance(frame, LLMContextAssistantTurnFrame):
            self._hears_turns = True
            await self._note_spoken(frame.text)
        elif isinstance(frame, EagerEndOfTurnCancelFrame):
            await self._withdraw()
        await self.push_frame(frame, direction)

    async def cleanup(self) -> None:
        """Stores what was spoken of the last answer."""
        await super().cleanup()  # type: ignore[no-untyped-call]
        await self._end_answer()
        await self._conversation.close_async()

    async def _ask(self, frame: LLMContextFrame) -> None:
        await self._end_answer()
        utterance = _utterance(frame.context.get_messages())
        if utterance is None:
            return
        self._is_interrupted, self._is_speculative = False, frame.speculation
        try:
            await self.push_frame(LLMFullResponseStartFrame())
            await self.start_processing_metrics()
            await self.start_ttfb_metrics()
            self._answer = answer = await self._conversation.ask_async(utterance)
            while True:
                # An interruption cancels this task. The turn must not end with it: how much was spoken comes later.
                text = await asyncio.shield(_next(answer))
                if text is None:
                    break
                await self.stop_ttfb_metrics()
                await self.push_frame(LLMTextFrame(text))
        except SottovoceError as error:
            await self.push_error(error_msg=error.message, exception=error)
        finally:
            await self.stop_processing_metrics()
            await self.push_frame(LLMFullResponseEndFrame())

    async def _note_spoken(self, spoken: str) -> None:
        answer = self._answer
        if answer is not None and self._is_interrupted:
            self._answer = None
            await answer.spoken_up_to_async(_characters(answer.text, spoken))

    async def _end_answer(self) -> None:
        """Ends an answer of which nothing more is heard."""
        answer, self._answer = self._answer, None
        if answer is None or not self._is_interrupted:
            return
        if self._hears_turns:
            # The aggregator tells of every word that is spoken, so there was none.
            await answer.spoken_up_to_async(0)
        else:
            answer.close()

    async def _withdraw(self) -> None:
        """Forgets an utterance that the user had not ended."""
        answer = self._answer
        if answer is None or not self._is_speculative:
            return
        self._answer, self._is_speculative = None, False
        await answer.spoken_up_to_async(0)
        if answer.utterance is not None:
            await self._conversation.forget_async(answer.utterance.seq)


class SottovoceMemory(FrameProcessor):
    """Stores what the user said, and gives the model that follows in the pipeline the conversation's prompt.

    Stands between the user's aggregator and the model. The session's own system messages stay at the prompt's head; without
    any, the configured one of the conversation stands there. Calls of tools within a turn pass as they are.
    """

    def __init__(self, conversation: Conversation, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._conversation = conversation
        self._system: list[Any] | None = None
        self._heard: Message | None = None
        self._is_interrupted = False
        self._is_speculative = False

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        """Replaces the messages of contexts, and passes on every frame."""
        await super().process_frame(frame, direction)
        if isinstance(frame, LLMContextFrame):
            await self._fill(frame)
        elif isinstance(frame, InterruptionFrame):
            self._is_interrupted = True
        elif isinstance(frame, LLMContextUserTurnFrame) and self._is_speculative:
            # The model has answered it already, from a context of its own.
            self._is_speculative, self._is_interrupted = False, False
            self._heard = (await self._conversation.hear_async(frame.text)).utterance
        elif isinstance(frame, EagerEndOfTurnCancelFrame):
            self._is_speculative = False
        elif isinstance(frame, LLMContextAssistantTurnFrame) and frame.text:
            # What the assistant says by itself answers nobody.
            heard, self._heard = self._heard, None
            is_interrupted, self._is_interrupted = self._is_interrupted, False
            await self._conversation.keep_async(frame.text, interrupted=is_interrupted, to=heard)
        await self.push_frame(frame, direction)

    async def cleanup(self) -> None:
        """Waits until everything is stored."""
        await super().cleanup()  # type: ignore[no-untyped-call]
        await self._conversation.close_async()

    async def _fill(self, frame: LLMContextFrame) -> None:
        messages = frame.context.get_messages()
        if self._system is None:
            self._system = _head(messages)
        utterance = _utterance(messages)
        if utterance is None:
            return
        self._is_speculative = frame.speculation
        if frame.speculation:
            prompt = await self._conversation.prompt_async(utterance)
        else:
            self._is_interrupted = False
            prompt = await self._conversation.hear_async(utterance)
            self._heard = prompt.utterance
        said: list[Any] = prompt.messages
        if self._system:
            said = self._system + said[len(_head(said)) :]
        frame.context.set_messages(said)


def _settings() -> LLMSettings:
    """Settings that say nothing: what the store is configured for counts."""
    nothing: dict[str, Any] = {field.name: None for field in dataclasses.fields(LLMSettings)}
    return LLMSettings(**{**nothing, "extra": {}, "use_provider_thinking_default": False})


async def _next(answer: Answer) -> str | None:
    return await anext(answer, None)


def _head(messages: Sequence[Any]) -> list[Any]:
    """The system messages at the beginning."""
    head: list[Any] = []
    for message in messages:
        if not isinstance(message, Mapping) or message.get("role") not in _SYSTEM:
            break
        head.append(message)
    return head


def _utterance(messages: Sequence[Any]) -> str | None:
    """The text of the newest message if it is the user's, without pictures and sounds."""
    newest: Any = messages[-1] if messages else None
    if not isinstance(newest, Mapping) or newest.get("role") != "user":
        return None
    content: Any = newest.get("content") or ""
    if not isinstance(content, str):
        content = "\n".join(part["text"] for part in content if part.get("type") == "text")
    return content if content.strip() else None


def _characters(text: str, spoken: str) -> int:
    """How far `spoken` goes in a text, whatever white space there is between its words."""
    left = sum(not character.isspace() for character in spoken)
    for at, character in enumerate(text):
        if left == 0:
            return at
        left -= not character.isspace()
    return len(text)

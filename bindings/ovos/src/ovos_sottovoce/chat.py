"""A chat engine that asks the store's model."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ovos_plugin_manager.templates.agents import AgentMessage, ChatEngine, MessageRole
from sottovoce import Answer

from .sessions import Sessions


class SottovoceChat(ChatEngine):  # type: ignore[misc]
    """Asks the model that the store is configured for. Of the messages that OVOS hands over, only the newest utterance counts:
    what was said before comes from the session's conversation. A caller that stops taking sentences interrupts the answer.
    """

    def __init__(self, config: dict[str, Any] | None = None) -> None:
        super().__init__(config)
        self._sessions = Sessions(self.config)

    def continue_chat(
        self,
        messages: list[AgentMessage],
        session_id: str = "default",
        lang: str | None = None,
        units: str | None = None,
        tools: Any = None,
    ) -> AgentMessage:
        """The whole answer."""
        text = "".join(self.stream_tokens(messages, session_id, lang, units))
        return AgentMessage(MessageRole.ASSISTANT, text)

    def stream_tokens(
        self,
        messages: list[AgentMessage],
        session_id: str = "default",
        lang: str | None = None,
        units: str | None = None,
    ) -> Iterable[str]:
        """The answer in pieces as the model writes them."""
        return self._ask(messages, session_id, lang, sentences=False)

    def stream_sentences(
        self,
        messages: list[AgentMessage],
        session_id: str = "default",
        lang: str | None = None,
        units: str | None = None,
    ) -> Iterable[str]:
        """The answer in whole sentences."""
        return self._ask(messages, session_id, lang, sentences=True)

    def _ask(
        self, messages: list[AgentMessage], session_id: str, lang: str | None, *, sentences: bool
    ) -> Iterable[str]:
        utterance = messages[-1].content.strip() if messages else ""
        if not utterance or messages[-1].role != MessageRole.USER:
            return
        metadata = {"lang": lang} if lang else None
        conversation = self._sessions.conversation(session_id)
        answer: Answer = conversation.ask(utterance, metadata=metadata, sentences=sentences)
        with answer:
            yield from answer

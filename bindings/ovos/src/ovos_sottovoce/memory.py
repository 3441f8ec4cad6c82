"""A persona's memory, beside any chat engine."""

from __future__ import annotations

from typing import Any

from ovos_plugin_manager.templates.agents import AgentContextManager, AgentMessage, MessageRole
from sottovoce import Conversation

from .sessions import Sessions, agent_message


class SottovoceMemory(AgentContextManager):  # type: ignore[misc]
    """Stores an utterance before an engine sees it, and the answer when OVOS tells of it."""

    def __init__(self, config: dict[str, Any] | None = None) -> None:
        super().__init__(config)
        self._sessions = Sessions(self.config)
        # The utterances that are stored and not answered yet, by session.
        self._heard: dict[str, str] = {}

    def get_history(self, session_id: str) -> list[AgentMessage]:
        """The newest messages of a session, oldest first."""
        messages = self._sessions.conversation(session_id).tail(self.config.get("max_history", 20))
        return [agent_message(message) for message in messages if message.content]

    def build_conversation_context(self, utterance: str, session_id: str) -> list[AgentMessage]:
        """Stores an utterance, and returns the prompt for answering it."""
        utterance = utterance.strip()
        prompt = self._sessions.conversation(session_id).hear(utterance)
        self._heard[session_id] = utterance
        return [
            AgentMessage(MessageRole(message["role"]), message["content"])
            for message in prompt.messages
        ]

    def update_history(self, new_messages: list[AgentMessage], session_id: str) -> None:
        """Stores what was said, but for the utterance that is stored already."""
        conversation = self._sessions.conversation(session_id)
        for message in new_messages:
            heard = self._heard.get(session_id)
            if message.role == MessageRole.USER and message.content.strip() == heard:
                continue
            if message.role == MessageRole.ASSISTANT and heard is not None:
                del self._heard[session_id]
                conversation.keep(message.content)
            elif message.content:
                _append(conversation, message)


def _append(conversation: Conversation, message: AgentMessage) -> None:
    role: Any = "system" if message.role == MessageRole.DEVELOPER else message.role.value
    conversation.append(role, message.content, tool_call_id=message.tool_call_id)

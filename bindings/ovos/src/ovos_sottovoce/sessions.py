"""The conversations of sessions, as a plugin's configuration says."""

from __future__ import annotations

from typing import Any

from ovos_plugin_manager.templates.agents import AgentMessage, MessageRole
from sottovoce import Conversation, Message, Store

# What OVOS puts into every plugin's configuration, and what is not the store's.
_NOT_SETTINGS = ("enabled", "lang", "max_history", "module", "scope", "scopes")


class Sessions:
    """Opens the store on first use, and each session's conversation in it."""

    def __init__(self, config: dict[str, Any]) -> None:
        self._scope = config.get("scope") or "default"
        self._scopes = config.get("scopes") or {}
        self._settings = {key: value for key, value in config.items() if key not in _NOT_SETTINGS}
        self._store: Store | None = None

    def conversation(self, session_id: str) -> Conversation:
        """The conversation of a session. OVOS calls the device's own one `default`."""
        if self._store is None:
            self._store = Store(**self._settings)
        own = self._scope if session_id == "default" else f"named/{session_id}"
        return self._store.conversation(self._scopes.get(session_id, own))


def agent_message(message: Message) -> AgentMessage:
    """A stored message as OVOS has it."""
    return AgentMessage(MessageRole(message.role), message.content)

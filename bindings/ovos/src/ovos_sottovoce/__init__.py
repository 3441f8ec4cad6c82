"""Sealed memory for OVOS personas: a memory beside any chat engine, and a chat engine with a memory."""

from .chat import SottovoceChat
from .memory import SottovoceMemory

__all__ = ["SottovoceChat", "SottovoceMemory"]

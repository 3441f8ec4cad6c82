from asyncio import Future
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from datetime import datetime
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, TypedDict, final, type_check_only

from typing_extensions import Self, Unpack

__all__ = [
    "Answer",
    "Conversation",
    "Message",
    "Prompt",
    "Recalled",
    "Receipt",
    "ReceiptEntry",
    "Report",
    "Store",
    "__version__",
    "setting_names",
]

__version__: str

_Path = str | PathLike[str]

@type_check_only
class ToolCall(TypedDict):
    id: str
    name: str
    arguments: Any

@type_check_only
class Settings(TypedDict, total=False):
    last_n: int | None
    exact: bool | None
    rolling_window: bool | None
    window_seconds: int | None
    max_messages: int | None
    ttl_seconds: int | None
    storage_root: _Path | None
    encryption_key: str | None
    key_file: _Path | None
    passphrase: str | None
    key_fd: int | None
    key_credential: str | None
    compact_at: float | None
    long_result: int | None
    memory_calls: int | None
    memory_bytes: int | None
    inline_artifact: int | None
    recall_tokens: int | None
    recall_min_score: float | None
    recall_sources: Literal["people", "said", "all"] | None
    redact: bool | None
    min_confidence: float | None
    kind: Literal["ollama", "openai"] | None
    base_url: str | None
    api_key: str | None
    api_key_file: _Path | None
    model: str | None
    system_prompt: str | None
    num_ctx: int | None
    num_predict: int | None
    keep_alive: str | int | None
    think: bool | None
    temperature: float | None
    price_per_million: float | None
    strict: bool | None
    allow_cloud: bool | None
    timeout_seconds: int | None
    max_answer_bytes: int | None
    max_tool_calls: int | None
    max_answer_seconds: int | None
    refuse_when_busy: bool | None

def setting_names() -> list[str]: ...

@final
class Message:
    @property
    def seq(self) -> int: ...
    @property
    def role(self) -> Literal["user", "assistant", "system", "tool"]: ...
    @property
    def content(self) -> str: ...
    @property
    def time(self) -> datetime: ...
    @property
    def thread(self) -> str | None: ...
    @property
    def metadata(self) -> dict[str, str]: ...
    @property
    def speaker(self) -> str | None: ...
    @property
    def cut_off(self) -> str | None: ...
    @property
    def tool_calls(self) -> list[ToolCall]: ...
    @property
    def tool_call_id(self) -> str | None: ...

@final
class Recalled:
    @property
    def message(self) -> Message: ...
    @property
    def score(self) -> float: ...
    @property
    def words(self) -> list[str]: ...

@final
class ReceiptEntry:
    @property
    def seq(self) -> int | None: ...
    @property
    def role(self) -> str: ...
    @property
    def placement(self) -> str: ...
    @property
    def tokens(self) -> int: ...
    @property
    def why(self) -> str: ...
    @property
    def included(self) -> bool: ...
    @property
    def outcome(self) -> str: ...

@final
class Receipt:
    @property
    def system_tokens(self) -> int: ...
    @property
    def user_tokens(self) -> int: ...
    @property
    def used_tokens(self) -> int: ...
    @property
    def budget_tokens(self) -> int | None: ...
    @property
    def entries(self) -> list[ReceiptEntry]: ...
    @property
    def skipped(self) -> list[str]: ...
    @property
    def failed(self) -> list[str]: ...

@final
class Prompt:
    @property
    def messages(self) -> list[dict[str, Any]]: ...
    @property
    def receipt(self) -> Receipt: ...
    @property
    def utterance(self) -> Message | None: ...

@final
class Report:
    @property
    def time_to_first_token(self) -> float | None: ...
    @property
    def whole_time(self) -> float | None: ...
    @property
    def prompt_tokens(self) -> int | None: ...
    @property
    def cached_tokens(self) -> int | None: ...
    @property
    def answer_tokens(self) -> int | None: ...
    @property
    def window(self) -> int | None: ...
    @property
    def truncated(self) -> bool: ...
    @property
    def retries(self) -> int: ...
    @property
    def receipt(self) -> Receipt: ...

@final
class Answer(Iterator[str], AsyncIterator[str]):
    @property
    def text(self) -> str: ...
    @property
    def utterance(self) -> Message | None: ...
    @property
    def message(self) -> Message | None: ...
    @property
    def interrupted(self) -> bool: ...
    @property
    def report(self) -> Report | None: ...
    def read(self) -> str: ...
    def read_async(self) -> Future[str]: ...
    def spoken_up_to(self, characters: int, /) -> Message | None: ...
    def spoken_up_to_async(self, characters: int, /) -> Future[Message | None]: ...
    def close(self) -> None: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> str: ...
    def __aiter__(self) -> Self: ...
    def __anext__(self) -> Future[str]: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None: ...
    def __aenter__(self) -> Future[Self]: ...
    def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> Future[None]: ...

@final
class Conversation:
    @property
    def scope(self) -> str: ...
    @property
    def thread(self) -> str | None: ...
    def hear(self, text: str, *, speaker: str | None = None, metadata: Mapping[str, str] | None = None) -> Prompt: ...
    def hear_async(
        self,
        text: str,
        *,
        speaker: str | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> Future[Prompt]: ...
    def keep(
        self,
        reply: str,
        *,
        spoken_up_to: int | None = None,
        interrupted: bool = False,
        to: Message | None = None,
    ) -> Message | None: ...
    def keep_async(
        self,
        reply: str,
        *,
        spoken_up_to: int | None = None,
        interrupted: bool = False,
        to: Message | None = None,
    ) -> Future[Message | None]: ...
    def prompt(self, text: str, *, speaker: str | None = None, metadata: Mapping[str, str] | None = None) -> Prompt: ...
    def prompt_async(
        self,
        text: str,
        *,
        speaker: str | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> Future[Prompt]: ...
    def append(
        self,
        role: Literal["user", "assistant", "system", "tool"],
        content: str,
        *,
        speaker: str | None = None,
        metadata: Mapping[str, str] | None = None,
        time: datetime | None = None,
        tool_calls: Sequence[ToolCall] | None = None,
        tool_call_id: str | None = None,
    ) -> Message: ...
    def append_async(
        self,
        role: Literal["user", "assistant", "system", "tool"],
        content: str,
        *,
        speaker: str | None = None,
        metadata: Mapping[str, str] | None = None,
        time: datetime | None = None,
        tool_calls: Sequence[ToolCall] | None = None,
        tool_call_id: str | None = None,
    ) -> Future[Message]: ...
    def get(self, seq: int, /) -> Message | None: ...
    def get_async(self, seq: int, /) -> Future[Message | None]: ...
    def tail(self, n: int = 20) -> list[Message]: ...
    def tail_async(self, n: int = 20) -> Future[list[Message]]: ...
    def search(self, words: str, n: int = 10) -> list[Message]: ...
    def search_async(self, words: str, n: int = 10) -> Future[list[Message]]: ...
    def recall(self, question: str, n: int = 5) -> list[Recalled]: ...
    def recall_async(self, question: str, n: int = 5) -> Future[list[Recalled]]: ...
    def forget(self, *numbers: int | range) -> list[int]: ...
    def forget_async(self, *numbers: int | range) -> Future[list[int]]: ...
    def forget_all(self) -> list[int]: ...
    def forget_all_async(self) -> Future[list[int]]: ...
    def prepare(self) -> None: ...
    def prepare_async(self) -> Future[None]: ...
    def ask(
        self,
        text: str,
        *,
        speaker: str | None = None,
        metadata: Mapping[str, str] | None = None,
        sentences: bool = False,
        off_record: bool = False,
    ) -> Answer: ...
    def ask_async(
        self,
        text: str,
        *,
        speaker: str | None = None,
        metadata: Mapping[str, str] | None = None,
        sentences: bool = False,
        off_record: bool = False,
    ) -> Future[Answer]: ...
    def retry(self, *, sentences: bool = False) -> Answer: ...
    def retry_async(self, *, sentences: bool = False) -> Future[Answer]: ...
    def close(self) -> None: ...
    def close_async(self) -> Future[None]: ...

@final
class Store:
    def __new__(cls, *, config: _Path | None = None, create: bool = True, **settings: Unpack[Settings]) -> Self: ...
    @property
    def folder(self) -> Path: ...
    @property
    def key_file(self) -> Path | None: ...
    def conversation(self, scope: str = "default", *, thread: str | None = None) -> Conversation: ...
    def conversation_async(self, scope: str = "default", *, thread: str | None = None) -> Future[Conversation]: ...
    def scopes(self) -> list[str]: ...
    def scopes_async(self) -> Future[list[str]]: ...
    def close(self) -> None: ...
    def close_async(self) -> Future[None]: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None: ...
    def __aenter__(self) -> Future[Self]: ...
    def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> Future[None]: ...

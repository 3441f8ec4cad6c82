"""An encrypted memory of conversations for voice assistants, and prompts for local language models.

>>> with Store(storage_root=folder / "store", key_file=folder / "key", base_url=model.url) as store:
...     conversation = store.conversation("dm/ann")
...     for text in conversation.ask("What's the weather like?"):
...         print(text)
It is
fine.
"""

from ._errors import (
    BusyError,
    ClosedError,
    ConfigError,
    ConversationOverError,
    ForgottenError,
    ForkedError,
    InvalidError,
    ModelError,
    ModelUnreachableError,
    NoKeyError,
    NoSuchConversationError,
    SottovoceError,
    StorageError,
    WrongKeyError,
)
from ._sottovoce import (
    Answer,
    Conversation,
    Message,
    Prompt,
    Recalled,
    Receipt,
    ReceiptEntry,
    Report,
    Store,
    __version__,
)

__all__ = [
    "Answer",
    "BusyError",
    "ClosedError",
    "ConfigError",
    "Conversation",
    "ConversationOverError",
    "ForgottenError",
    "ForkedError",
    "InvalidError",
    "Message",
    "ModelError",
    "ModelUnreachableError",
    "NoKeyError",
    "NoSuchConversationError",
    "Prompt",
    "Recalled",
    "Receipt",
    "ReceiptEntry",
    "Report",
    "SottovoceError",
    "StorageError",
    "Store",
    "WrongKeyError",
    "__version__",
]

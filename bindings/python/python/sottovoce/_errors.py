"""The exceptions of the package."""


class SottovoceError(Exception):
    """What went wrong, and what to do about it. Neither text ever holds words of a conversation or any part of a key.

    >>> error = SottovoceError("the store was closed", "open it again")
    >>> error.message, error.help
    ('the store was closed', 'open it again')
    >>> print(error)
    the store was closed; open it again
    """

    __module__ = "sottovoce"

    message: str
    help: str

    def __init_subclass__(cls) -> None:
        # Programs and tracebacks name what programs import.
        cls.__module__ = "sottovoce"

    def __init__(self, message: str, help: str = "") -> None:
        super().__init__(message, help)
        self.message = message
        self.help = help

    def __str__(self) -> str:
        return f"{self.message}; {self.help}" if self.help else self.message


class NoKeyError(SottovoceError):
    """There is no key, or it cannot be read: no key file yet, a lost one, a missing passphrase."""


class WrongKeyError(SottovoceError):
    """The store was written under another key. Nothing was changed."""


class ConfigError(SottovoceError, ValueError):
    """A setting cannot be used."""


class InvalidError(SottovoceError, ValueError):
    """An argument cannot be used. Nothing was stored."""


class NoSuchConversationError(SottovoceError, LookupError):
    """There is no such conversation."""


class ConversationOverError(SottovoceError):
    """The conversation was deleted, has expired or is full. Nothing was stored."""


class BusyError(SottovoceError):
    """Another turn or another process is in the way. Try again."""


class ForgottenError(SottovoceError):
    """The utterance was forgotten before its answer came. The answer is not stored."""


class StorageError(SottovoceError, OSError):
    """The disk is full, a file is damaged, or the system refuses. What was acknowledged before is safe."""

    def __str__(self) -> str:
        return SottovoceError.__str__(self)


class ModelError(SottovoceError):
    """The model gave no answer, or only a part. The utterance is stored, and `Conversation.retry` asks again."""


class ModelUnreachableError(ModelError, ConnectionError):
    """No model server listens at the address, or it is silent."""

    def __str__(self) -> str:
        return SottovoceError.__str__(self)


class ClosedError(SottovoceError):
    """The store was closed."""


class ForkedError(ClosedError):
    """The process was forked from one that had used the package already."""

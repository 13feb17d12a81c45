"""The exception tree. Exceptions carry fields and do nothing.

HermesError                    something a person should read: what happened, what was kept, what to do
├── HomeError                  HERMES_HOME can't be used
├── FolderGone                 the folder this process is in was deleted
├── SettingsError              config.yaml, .env or an override can't be used
├── StoreError                 the session log
│   ├── StoreBusy              another process held the database too long; nothing was written
│   ├── StoreFull              the disk or quota is full; nothing was written
│   ├── StoreUnreachable       the server or the disk does not answer, or takes nothing; nothing was written
│   ├── StoreDamaged           the file is not a sound database; it was not written to
│   ├── StoreTooNew            written by a newer Hermes; it was not written to
│   ├── SessionNotFound        no session (or several) by that name
│   ├── SessionBusy            another process runs this session
│   ├── LeaseLost              this process no longer runs this session; nothing was written
│   ├── AnswerRefused          an answer that does not fit its question; it was not written
│   │   └── AnsweredAlready    nobody waits for the answer any more; it was not written
│   └── ImportRejected         a file that can't be imported; nothing was imported
├── ModelError                 a model call failed, after whatever retries were allowed
│   └── LoginExpiredError      a login is dead; somebody has to sign in again
├── ToolFailed                 a tool could not do what was asked, in words the model can use
│   └── MediaError             a document, a picture or a sound could not be read, understood or made
├── NotFound                   nothing goes by the name that was given (exit code 1)
├── Refused                    a person said no, or could not be asked (exit code 3)
└── UsageError                 a command was given wrongly (exit code 2)
"""

import os
from enum import Enum
from typing import Protocol


class Words(Protocol):
    """A sentence that is translated when it is shown. Its `str` is English."""

    def shown(self) -> str: ...


class HermesError(Exception):
    """What happened, and in `hint` what the user can do about it.

    Both are English, for logs, models and programs; `words` and `hint_words` are what a person reads.
    """

    def __init__(self, message: str | Words, *, hint: str | Words = "") -> None:
        super().__init__(str(message))
        self.message = str(message)
        self.hint = str(hint)
        self.words = message
        self.hint_words = hint


class HomeError(HermesError):
    """HERMES_HOME can't be used."""


class FolderGone(HermesError):
    """The folder this process is in was deleted."""


class SettingsError(HermesError):
    """config.yaml, .env or an override can't be used."""


class UsageError(HermesError):
    """A command was given wrongly."""


class NotFound(HermesError):
    """Nothing goes by the name that was given."""


class Refused(HermesError):
    """A person said no, or could not be asked. Nothing was done."""


class ModelError(HermesError):
    """A model call failed. The flags say what may be done about it."""

    def __init__(  # noqa: PLR0913 - the fields of one classified failure
        self,
        message: str | Words,
        *,
        hint: str | Words = "",
        reason: str,
        retryable: bool = False,
        compress: bool = False,
        rotate_key: bool = False,
        rotate_once: bool = False,
        fall_back: bool = False,
        retry_after: float | None = None,
        status: int | None = None,
        renewed: bool = False,
        request_id: str = "",
        timing: str = "",
    ) -> None:
        super().__init__(message, hint=hint)
        self.request_id = request_id
        self.timing = timing
        self.renewed = renewed
        self.reason = reason
        self.retryable = retryable
        self.compress = compress
        self.rotate_key = rotate_key
        self.rotate_once = rotate_once
        self.fall_back = fall_back
        self.retry_after = retry_after
        self.status = status


class LoginExpiredError(ModelError):
    """A login is dead: nothing but signing in again helps. `is_news` if nobody was told before."""

    def __init__(
        self,
        message: str | Words,
        *,
        hint: str | Words,
        account: str,
        command: str,
        is_news: bool,
    ) -> None:
        super().__init__(
            message, hint=hint, reason="auth", rotate_key=True, fall_back=True
        )
        self.account = account
        self.command = command
        self.is_news = is_news


class ToolFailed(HermesError):
    """A tool could not do what was asked."""


class MediaErrorKind(Enum):
    """The kind of problem with a document, a picture or sound."""

    NOT_CONFIGURED = "not configured"
    """No backend is set up: a key, a program or an extra is missing, or the setting is `off`."""
    NOT_SUPPORTED = "not supported"
    """The backend can't do this: another format, another language, a damaged file, editing."""
    REFUSED = "refused"
    """The service, the file or the person refused: a rejected key, a password, a content filter, no credit."""
    TOO_LARGE = "too large"
    """The file, the text or the answer exceeds a limit."""
    NETWORK = "network"
    """The service can't be reached, or failed. Trying again may help."""


class MediaError(ToolFailed):
    """A document, a picture or a sound could not be read, recognized or made: one class for every capability.

    The person and the model read the same sentence and the same hint. `kind` is for code that decides what to try next;
    `sense` names what failed: "image generation".
    """

    def __init__(
        self,
        kind: MediaErrorKind,
        message: str | Words,
        *,
        sense: str,
        hint: str | Words = "",
    ) -> None:
        super().__init__(message, hint=hint)
        self.kind = kind
        self.sense = sense


class StoreError(HermesError):
    """The session log could not do what was asked."""


class StoreBusy(StoreError):
    """Another process held the database too long."""


class StoreFull(StoreError):
    """The disk or quota is full."""


class StoreUnreachable(StoreError):
    """The server or the disk does not answer, or takes nothing now."""


class StoreDamaged(StoreError):
    """The file is not a sound database."""


class StoreTooNew(StoreError):
    """The file was written by a newer Hermes."""


class SessionNotFound(StoreError):
    """No session, or more than one, goes by that name."""


class SessionBusy(StoreError):
    """Another process runs this session."""


class LeaseLost(StoreError):
    """This process no longer holds the session's lease."""


class AnswerRefused(StoreError):
    """An answer does not fit its question."""


class AnsweredAlready(AnswerRefused):
    """The question is not open, or no longer open."""


class TitledAlready(StoreError):
    """The user has named the session, so it gets no automatic title."""


class ImportRejected(StoreError):
    """The file can't be imported."""


_ENDS = (".", "!", "?", ":", ";", "…")


def os_reason(error: OSError) -> str:
    """What the system says about a failure, in lower case, to be part of a sentence."""
    return (error.strerror or str(error)).lower()


def words_of(error: BaseException) -> str:
    """What an exception of another library says; the name of its class if it says nothing."""
    return str(error).strip() or type(error).__name__


def words_of_connection(error: BaseException) -> str:
    """What an exception of a connection says, without the numbers of the operating system and of sockets."""
    is_of_ssl = (
        type(error).__module__ == "ssl"
    )  # its numbers are not those of the system
    if not isinstance(error, OSError) or is_of_ssl or not error.errno:
        return words_of(error)
    if error.errno < 0:  # a name that can't be resolved
        return str(error.strerror)
    return os.strerror(error.errno)


def in_sentences(error: HermesError, message: str = "") -> str:
    """What happened and what to do about it, one after the other; `message` in place of the error's own words."""
    return _joined(message or error.message, error.hint)


def reason_of(error: Exception) -> str:
    """What happened and what to do about it, whether the error is ours or not."""
    return in_sentences(error) if isinstance(error, HermesError) else words_of(error)


def for_reader(error: HermesError, message: str = "") -> str:
    """The same in the reader's language."""
    return _joined(message or translated(error.words), translated(error.hint_words))


def translated(words: str | Words) -> str:
    """Words in the reader's language."""
    return words if isinstance(words, str) else words.shown()


def _joined(message: str, hint: str) -> str:
    what = message.strip()
    if not hint:
        return what
    return f"{what}{'' if what.endswith(_ENDS) else '.'} {hint}".strip()

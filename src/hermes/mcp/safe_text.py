"""Makes a server's text safe (no terminal escapes, hidden characters or secrets), and the errors that quote it."""

import re
from collections.abc import Iterable

from hermes.errors import HermesError, Words, translated

_SEQUENCES = re.compile(
    r"\x1b\[[0-?]{0,100}[ -/]{0,10}[@-~]|\x1b[\]PX^_][^\x07\x1b]{0,4000}(?:\x07|\x1b\\)|\x1b[ -/]{0,10}[0-~]"
)
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # controls
    "\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"  # unseen, reordering
    "\ud800-\udfff\U000e0000-\U000e0fff]"  # halves of characters, tags
)
_MIN_MASKED_SECRET_CHARACTERS = 6
"""Shorter secrets are not masked, because they occur in ordinary words."""


def plain(text: str) -> str:
    """Removes escapes, control characters, and characters that are invisible or reorder others. Line breaks stay."""
    if text.isascii() and text.isprintable():
        return text
    return _UNSEEN.sub("", _SEQUENCES.sub("", text.replace("\r\n", "\n")))


def one_line(text: str, limit: int = 300) -> str:
    """Returns the beginning of a text, on one line."""
    line = " ".join(plain(text[: limit * 4]).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


class Redaction:
    """Masks the secrets that a server was given wherever they occur in its text."""

    __slots__ = ("_values",)

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._values = sorted(
            {value for value in values if len(value) >= _MIN_MASKED_SECRET_CHARACTERS},
            key=len,
            reverse=True,
        )

    def __call__(self, text: str) -> str:
        for value in self._values:
            text = text.replace(value, "********")
        return text

    def __repr__(self) -> str:
        return f"Redaction({len(self._values)} values)"


class ServerFailed(HermesError):
    """Why a server can't be used, as the end of the sentence "The MCP server NAME can't be used: ...".

    `said` holds the server's own words. The user may see them, but a model would take them for Hermes' words.
    """

    def __init__(
        self, message: str | Words, *, hint: str | Words = "", said: str = ""
    ) -> None:
        super().__init__(message, hint=hint)
        self.said = said

    @property
    def full(self) -> str:
        """The message with the server's own words."""
        return self._with_detail(self.message)

    @property
    def full_shown(self) -> str:
        """The same in the reader's language."""
        return self._with_detail(translated(self.words))

    def _with_detail(self, message: str) -> str:
        return f"{message}: {self.said}" if self.said else message


class ServerRefused(Exception):
    """The server answered a request with an error, in its own words."""


class ConnectionClosed(Exception):
    """The connection, or the request's own stream, ended before the answer came."""


def leaves(error: BaseException) -> list[BaseException]:
    """Returns the errors inside nested exception groups."""
    if isinstance(error, BaseExceptionGroup):
        return [leaf for inner in error.exceptions for leaf in leaves(inner)]
    return [error]

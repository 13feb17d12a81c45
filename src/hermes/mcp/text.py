"""Text of a server, made safe: without what drives a terminal, hides characters, or gives away a secret."""

import re
import unicodedata
from collections.abc import Iterable

_SEQUENCES = re.compile(
    r"\x1b\[[0-?]{0,100}[ -/]{0,10}[@-~]|\x1b[\]PX^_][^\x07\x1b]{0,4000}(?:\x07|\x1b\\)|\x1b[ -/]{0,10}[0-~]"
)
_HIDDEN = "\u00ad\u061c\u180e\u200b\u200e\u200f\u2028\u2029\u2060\ufeff"
_SHORTEST = 6
"""A secret with fewer characters is not looked for: it would be found in ordinary words."""


def plain(text: str) -> str:
    """Without escapes, controls, and characters that can't be seen or that reorder others; line breaks stay."""
    if text.isascii() and text.isprintable():
        return text
    text = _SEQUENCES.sub("", text.replace("\r\n", "\n"))
    return "".join(sign for sign in text if sign in "\n\t" or _is_visible(sign))


def one_line(text: str, limit: int = 300) -> str:
    """The beginning of a text, on one line."""
    line = " ".join(plain(text[: limit * 4]).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def _is_visible(sign: str) -> bool:
    if sign in _HIDDEN or "\U000e0000" <= sign <= "\U000e0fff":
        return False
    return sign in "\u200c\u200d" or unicodedata.category(sign) not in {"Cc", "Cf", "Cs"}


class Redaction:
    """Takes the secrets that a server was given out of what it says."""

    __slots__ = ("_values",)

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._values = sorted({value for value in values if len(value) >= _SHORTEST}, key=len, reverse=True)

    def __call__(self, text: str) -> str:
        for value in self._values:
            text = text.replace(value, "********")
        return text

    def __repr__(self) -> str:
        return f"Redaction({len(self._values)} values)"

"""Text of a server, made safe: without what drives a terminal, hides characters, or gives away a secret."""

import re
from collections.abc import Iterable

_SEQUENCES = re.compile(
    r"\x1b\[[0-?]{0,100}[ -/]{0,10}[@-~]|\x1b[\]PX^_][^\x07\x1b]{0,4000}(?:\x07|\x1b\\)|\x1b[ -/]{0,10}[0-~]"
)
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # controls
    "\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"  # unseen, reordering
    "\ud800-\udfff\U000e0000-\U000e0fff]"  # halves of characters, tags
)
_SHORTEST = 6
"""A secret with fewer characters is not looked for: it would be found in ordinary words."""


def plain(text: str) -> str:
    """Without escapes, controls, and characters that can't be seen or that reorder others; line breaks stay."""
    if text.isascii() and text.isprintable():
        return text
    return _UNSEEN.sub("", _SEQUENCES.sub("", text.replace("\r\n", "\n")))


def one_line(text: str, limit: int = 300) -> str:
    """The beginning of a text, on one line."""
    line = " ".join(plain(text[: limit * 4]).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


class Redaction:
    """Takes the secrets that a server was given out of what it says."""

    __slots__ = ("_values",)

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._values = sorted(
            {value for value in values if len(value) >= _SHORTEST},
            key=len,
            reverse=True,
        )

    def __call__(self, text: str) -> str:
        for value in self._values:
            text = text.replace(value, "********")
        return text

    def __repr__(self) -> str:
        return f"Redaction({len(self._values)} values)"

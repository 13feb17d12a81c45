"""Text on a screen: sanitized, measured in cells, cut and wrapped; short times and amounts.

A wide character (CJK, emoji) takes two cells, a combining one none.
"""

import unicodedata
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from hermes.primitives.lazy_pattern import lazy_pattern
from hermes.surfaces.terminal.style import (
    Style,
    printable,
    stdout_style,
    terminal_width,
)
from hermes.text.formats import ago, count, moment, money

__all__ = [
    "TextScreen",
    "ago",
    "cells",
    "clean",
    "count",
    "cut",
    "moment",
    "money",
    "one_line",
    "pad",
    "stdout_screen",
    "table",
    "width",
    "wrap",
]

_JOINERS = lazy_pattern(
    "([\u200c\u200d]+)"
)  # invisible but harmless; part of many words and emoji


class TextScreen(NamedTuple):
    """The width and style of an output."""

    columns: int
    style: Style
    is_chat: bool = False
    """Whether lines that are too long are wrapped between words, and not by the terminal."""

    @property
    def is_narrow(self) -> bool:
        """Whether it is too narrow for a table."""
        return self.columns < 60


def stdout_screen() -> TextScreen:
    """Returns the screen of stdout."""
    return TextScreen(max(20, terminal_width()), stdout_style())


def clean(text: str) -> str:
    """Removes control sequences from `text`. Tabs become spaces; line breaks stay."""
    if text.isprintable():
        return text
    plain = text.replace("\r\n", "\n").expandtabs(4)
    return "".join(
        part if _JOINERS.match(part) else printable(part)
        for part in _JOINERS.split(plain)
    )


def one_line(text: str) -> str:
    """Returns the start of `text` on one line, long enough for any terminal."""
    return " ".join(clean(text[:2000]).split())


def width(text: str) -> int:
    """Returns the number of cells that `text` takes."""
    if text.isascii():
        return len(text)
    return sum(map(cells, text))


def cut(text: str, columns: int) -> str:
    """Cuts `text` to at most `columns` cells, with an ellipsis if something is missing."""
    if _reach(text, 0, columns) == len(text):
        return text
    return (
        text[: _reach(text, 0, columns - 1)].rstrip() + "…"
        if columns > 1
        else "…"[:columns]
    )


def pad(text: str, columns: int) -> str:
    """Pads `text` with spaces."""
    return text + " " * (columns - width(text))


_NEVER_FIRST = frozenset(
    "、。，．：；！？）」』】》〉］｝〕ー～…・っッゃゅょャュョ々,.:;!?)]}%"
)
_NEVER_LAST = frozenset("（「『【《〈［｛〔([{")


def wrap(text: str, columns: int) -> Iterator[str]:
    """Wraps text into lines of at most `columns` cells. Indentation and line breaks stay."""
    for line in text.split("\n"):
        yield from _wrap_line(line, columns)


def table(rows: Sequence[Sequence[str]], *, right: Sequence[int] = ()) -> list[str]:
    """Aligns rows of one-line cells; columns named in `right` to the right."""
    widths = [max(map(width, column)) for column in zip(*rows, strict=True)]
    lines: list[str] = []
    for row in rows:
        aligned = [
            " " * (size - width(cell)) + cell if index in right else pad(cell, size)
            for index, (cell, size) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(aligned).rstrip())
    return lines


def cells(char: str) -> int:
    """Returns the number of cells that one character takes."""
    if char.isascii():
        return 1
    if unicodedata.combining(char) or unicodedata.category(char) in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def _reach(text: str, start: int, columns: int) -> int:
    """Returns the index in `text` that is so many cells after `start`."""
    used = 0
    for index in range(start, len(text)):
        used += cells(text[index])
        if used > columns:
            return index
    return len(text)


def _wrap_line(line: str, columns: int) -> Iterator[str]:
    start = 0
    while (end := _reach(line, start, columns)) < len(line):
        end = max(end, start + 1)
        at = _break(line, start, end)
        yield line[start:at].rstrip()
        start = at
        while line[start : start + 1] == " ":
            start += 1
    if start < len(line) or not line:
        yield line[start:]


def _break(line: str, start: int, end: int) -> int:
    """Returns where to break the line, at or before `end`: at a space, beside a wide character, or anywhere.

    No line begins with a closing mark of Chinese or Japanese, or ends with an opening one.
    """
    first = start
    while first < end and line[first] == " ":
        first += 1
    for at in range(end, first, -1):
        before, after = line[at - 1], line[at]
        if after == " ":
            return at
        is_wide = cells(before) == 2 or cells(after) == 2
        if is_wide and after not in _NEVER_FIRST and before not in _NEVER_LAST:
            return at
    return end

"""Text on a screen: made harmless, measured in cells, cut, wrapped; short times and amounts.

A wide (CJK, emoji) character takes two cells, a combining one none.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from hermes.commands.formats import ago, count, moment, money
from hermes.surfaces.terminal.style import (
    Style,
    printable,
    stdout_style,
    terminal_width,
)

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

_JOINERS = re.compile(
    "([\u200c\u200d]+)"
)  # invisible, harmless, and part of many words and emoji


class TextScreen(NamedTuple):
    """Where text goes: how wide, in which style."""

    columns: int
    style: Style

    @property
    def is_narrow(self) -> bool:
        """Too narrow for a table."""
        return self.columns < 60


def stdout_screen() -> TextScreen:
    """The screen that stdout is, or would be."""
    return TextScreen(max(20, terminal_width()), stdout_style())


def clean(text: str) -> str:
    """`text` with nothing in it that drives a terminal; tabs become spaces, line breaks stay."""
    if text.isprintable():
        return text
    plain = text.replace("\r\n", "\n").expandtabs(4)
    return "".join(
        part if _JOINERS.match(part) else printable(part)
        for part in _JOINERS.split(plain)
    )


def one_line(text: str) -> str:
    """The beginning of `text` on one line; long enough for any terminal."""
    return " ".join(clean(text[:2000]).split())


def width(text: str) -> int:
    """How many cells `text` takes."""
    return len(text) if text.isascii() else sum(map(cells, text))


def cut(text: str, columns: int) -> str:
    """`text` in at most that many cells, with an ellipsis if something is missing."""
    if _reach(text, 0, columns) == len(text):
        return text
    return (
        text[: _reach(text, 0, columns - 1)].rstrip() + "…"
        if columns > 1
        else "…"[:columns]
    )


def pad(text: str, columns: int) -> str:
    """`text` filled up with spaces."""
    return text + " " * (columns - width(text))


def wrap(text: str, columns: int) -> Iterator[str]:
    """Lines of at most that many cells; indentation and line breaks stay."""
    for line in text.split("\n"):
        yield from _wrap_line(line, columns)


def table(rows: Sequence[Sequence[str]], *, right: Sequence[int] = ()) -> list[str]:
    """Rows of one-line cells, aligned; the columns named in `right` to the right."""
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
    """How many cells one character takes."""
    if char.isascii():
        return 1
    if unicodedata.combining(char) or unicodedata.category(char) in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def _reach(text: str, start: int, columns: int) -> int:
    """How far into `text` that many cells lead from `start`."""
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
    """Where to break so that the line ends at or before `end`: at a space, between wide characters, or anywhere."""
    if cells(line[end]) == 2:
        return end
    space = line.rfind(" ", start + 1, end + 1)
    return end if space < 0 or line[start:space].isspace() else space

"""A small terminal emulator: turns a program's output into the text that a person would see, with scrollback.

Supports what line-oriented programs use: wrapping, CR, LF, BS, cursor movement and erasing. When the window gets
narrower, rows are rewrapped, as in most terminals. The alternate screen replaces the rows until it is left. Colours
are stored beside the text. Other codes are ignored.
"""

import codecs
import re
from itertools import groupby
from typing import TypeAlias

from hermes.surfaces.terminal.text import cells

_Cell: TypeAlias = tuple[str, str]
_BLANK: _Cell = (" ", "")
_CODE = re.compile(
    r"\x1b(?:\[([0-?]*)[ -/]*([@-~])|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_=>78])"
)


class Emulator:
    """A screen of some size; `lines` is everything on it and above it."""

    def __init__(self, columns: int, rows: int) -> None:
        self._columns = columns
        self._height = rows
        self._rows: list[list[_Cell]] = [[]]
        self._look = ""
        self._top = 0
        self._x = 0
        self._y = 0
        self._wraps = True
        self._covered: tuple[list[list[_Cell]], int, int, int] | None = None
        self._rest = ""
        self.replies: list[str] = []
        """What a terminal would send back: the cursor's position, when the program asks for it."""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    @property
    def lines(self) -> list[str]:
        """The rows as text, without trailing blanks."""
        return ["".join(char for char, _ in row).rstrip() for row in self._rows]

    @property
    def text(self) -> str:
        """All rows as one text, without blank rows at the end."""
        return "\n".join(self.lines).rstrip("\n")

    @property
    def window(self) -> list[str]:
        """The rows in the window, without the scrollback."""
        return self.lines[self._top :]

    @property
    def coloured(self) -> str:
        """All rows, with their colour codes."""
        return "\n".join(map(_coloured, self._rows)).rstrip("\n")

    def feed(self, data: bytes) -> None:
        """Processes output."""
        text = self._rest + self._decoder.decode(data)
        self._rest = ""
        at = 0
        while at < len(text):
            if text[at] != "\x1b":
                self._put(text[at])
                at += 1
                continue
            found = _CODE.match(text, at)
            if found is None:
                self._rest = text[at:]
                return
            self._do(found[1] or "", found[2] or "")
            at = found.end()

    def resize(self, columns: int, rows: int) -> None:
        """Resizes the window. Rows that no longer fit are rewrapped, and the cursor stays at its character."""
        broken: list[list[_Cell]] = []
        x, y = 0, 0
        for number, row in enumerate(self._rows):
            if number == self._y:
                y, x = len(broken) + self._x // columns, self._x % columns
            while row and row[-1] == _BLANK:
                row.pop()
            broken += [
                row[start : start + columns]
                for start in range(0, max(len(row), 1), columns)
            ]
        self._rows, self._y, self._x = broken, y, x
        self._columns, self._height = columns, rows
        self._scroll()

    def _put(self, char: str) -> None:
        match char:
            case "\r":
                self._x = 0
            case "\n":
                self._y += 1
                self._scroll()
            case "\b":
                self._x = max(0, self._x - 1)
            case _ if char.isprintable():
                self._print(char)
            case _:
                pass

    def _print(self, char: str) -> None:
        size = cells(char)
        if self._x + size > self._columns:
            if not self._wraps:
                return
            self._x, self._y = 0, self._y + 1
            self._scroll()
        row = self._rows[self._y]
        row += [_BLANK] * (self._x + size - len(row))
        if size:
            row[self._x : self._x + size] = [
                (char, self._look),
                *[("", "")] * (size - 1),
            ]
        self._x += size

    def _do(self, numbers: str, code: str) -> None:
        count = int(numbers) if numbers.isdecimal() and numbers != "0" else 1
        match code:
            case "A":
                self._y = max(self._top, self._y - count)
            case "B":
                self._y = min(self._top + self._height - 1, self._y + count)
                self._scroll()
            case "C":
                self._x = min(self._columns - 1, self._x + count)
            case "D":
                self._x = max(0, self._x - count)
            case "J" | "K":
                del self._rows[self._y][self._x :]
                if code == "J":
                    del self._rows[self._y + 1 :]
            case "L" | "M":
                self._move_rows(count if code == "L" else -count)
            case "m":
                self._paint(numbers)
            case "h" | "l":
                self._set(numbers, on=code == "h")
            case "n" if numbers == "6":
                self.replies.append(f"\x1b[{self._y - self._top + 1};{self._x + 1}R")
            case "H":
                row, _, column = numbers.partition(";")
                self._y = self._top + int(row or 1) - 1
                self._x = int(column or 1) - 1
                self._scroll()
            case _:
                pass

    def _set(self, mode: str, *, on: bool) -> None:
        if mode == "?7":
            self._wraps = on
        elif mode == "?1049":
            self._switch(alternate=on)

    def _switch(self, *, alternate: bool) -> None:
        """Shows the empty alternate screen, or restores the previous one."""
        if alternate and self._covered is None:
            self._covered = self._rows, self._top, self._x, self._y
            self._rows, self._top, self._x, self._y = [list[_Cell]()], 0, 0, 0
        elif not alternate and self._covered is not None:
            self._rows, self._top, self._x, self._y = self._covered
            self._covered = None

    def _move_rows(self, count: int) -> None:
        """Inserts blank rows at the cursor, or deletes rows; the rows below move within the window."""
        bottom = self._top + self._height
        self._rows += [[] for _ in range(bottom - len(self._rows))]
        below = self._rows[self._y : bottom]
        room = len(below)
        blank: list[list[_Cell]] = [[] for _ in range(min(abs(count), room))]
        moved = [*blank, *below] if count > 0 else [*below[-count:], *blank]
        self._rows[self._y : bottom] = moved[:room]

    def _paint(self, numbers: str) -> None:
        if not numbers or numbers.startswith("0"):
            self._look, numbers = "", numbers.removeprefix("0").removeprefix(";")
        self._look = ";".join(filter(None, (self._look, numbers)))

    def _scroll(self) -> None:
        self._rows += [[] for _ in range(self._y + 1 - len(self._rows))]
        self._top = max(self._top, self._y + 1 - self._height, 0)


def _coloured(row: list[_Cell]) -> str:
    runs = (
        (look, "".join(char for char, _ in run))
        for look, run in groupby(row, key=lambda cell: cell[1])
    )
    return "".join(
        f"\x1b[{look}m{text}\x1b[0m" if look else text for look, text in runs
    )

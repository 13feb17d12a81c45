"""Tables: aligned if they fit, with wrapped cells if they nearly fit, else as a list of records."""

import re
from collections.abc import Iterator, Sequence
from copy import copy
from itertools import zip_longest
from typing import Self

from hermes.surfaces.terminal.markdown.inline import parse
from hermes.surfaces.terminal.styled_text import BOLD, DIM, Row, Run, flow, plain
from hermes.surfaces.terminal.text import width

_MIN_COLUMN_CELLS = 8  # narrower columns make the table a list of records
_CELL = re.compile(r"(?:\\.|`[^`]*`|[^|\\`]|[\\`])*")


class _Drawn:
    """The rendered rows of a table by number.

    A growing table reuses them until a column gets wider. Shared between a table and its preview
    with one more row.
    """

    def __init__(self) -> None:
        self._widths: list[int] = []
        self._rows: dict[int, list[Row]] = {}

    def at(self, widths: list[int]) -> dict[int, list[Row]]:
        """Returns the rendered rows for these column widths."""
        if widths != self._widths:
            self._widths = widths
            self._rows = dict[int, list[Row]]()
        return self._rows

    def forget(self, number: int) -> None:
        """Drops a row that has changed."""
        self._rows.pop(number, None)


class Table:
    """A parsed Markdown table. Each line is parsed once, also while the table grows."""

    def __init__(self, lines: Sequence[str], *, marked: bool, ascii_only: bool) -> None:
        self._marked = marked
        self._bar, self._line, self._cross = (
            ("|", "-", "+") if ascii_only else ("│", "─", "┼")
        )
        names, aligned = map(_cells, lines[:2])
        self._right = [
            mark.strip().endswith(":") and not mark.strip().startswith(":")
            for mark in aligned
        ]
        self._right += [False] * (len(names) - len(self._right))
        self._names = [self._parse(name, BOLD) for name in names]
        self._sizes = [max(1, width(plain(name))) for name in self._names]
        self._rows: list[list[list[Run]]] = []
        self._drawn = _Drawn()
        for line in lines[2:]:
            self.add(line)

    def add(self, line: str) -> None:
        """Adds a row."""
        count = len(self._names)
        row = [self._parse(cell, "") for cell in (*_cells(line), *[""] * count)[:count]]
        self._drawn.forget(len(self._rows))  # drawn when only its beginning was there
        self._rows.append(row)
        self._sizes = [
            max(size, width(plain(cell)))
            for size, cell in zip(self._sizes, row, strict=True)
        ]

    def ahead(self, line: str) -> Self:
        """Returns a copy of the table with one more row."""
        other = copy(self)
        other._rows = [*self._rows]  # noqa: SLF001 - one of its own kind
        other.add(line)
        return other

    def rows(self, columns: int, last: int = 0) -> Iterator[Row]:
        """Renders the table in `columns` cells; with `last`, only enough for that many rows at its end."""
        widths = self._widths(columns)
        shown = self._rows[-last:] if last else self._rows
        if widths is None:
            yield from self._records(shown, columns)
            return
        if len(shown) == len(self._rows):
            yield from self._line_of(self._names, widths)
            lines = (self._line * size for size in widths)
            yield (
                (
                    self._line + f"{self._line}{self._cross}{self._line}".join(lines),
                    DIM,
                ),
            )
        drawn = self._drawn.at(widths)
        for number, row in enumerate(shown, len(self._rows) - len(shown)):
            if number not in drawn:
                drawn[number] = list(self._line_of(row, widths))
            yield from drawn[number]

    def _parse(self, text: str, look: str) -> list[Run]:
        return parse(text.replace("\\|", "|"), look, marked=self._marked)

    def _widths(self, columns: int) -> list[int] | None:
        """Returns the width of each column, or None if the table does not fit."""
        room = columns - 1 - 3 * (len(self._sizes) - 1)
        widths = [min(size, max(room, 1)) for size in self._sizes]
        least = [min(size, _MIN_COLUMN_CELLS) for size in widths]
        if sum(least) > room:
            return None
        while sum(widths) > room:
            widest = max(
                range(len(widths)), key=lambda index: widths[index] - least[index]
            )
            widths[widest] -= 1
        return widths

    def _line_of(
        self, row: Sequence[Sequence[Run]], widths: Sequence[int]
    ) -> Iterator[Row]:
        broken = [
            list(flow(list(cell), size)) for cell, size in zip(row, widths, strict=True)
        ]
        for parts in zip_longest(*broken, fillvalue=()):
            line: list[Run] = [(" ", "")]
            for index, (part, size) in enumerate(zip(parts, widths, strict=True)):
                blank = " " * (size - width(plain(part)))
                line += [(f" {self._bar} ", DIM)] if index else []
                line += (
                    [(blank, ""), *part] if self._right[index] else [*part, (blank, "")]
                )
            yield _trimmed(line)

    def _records(self, rows: Sequence[list[list[Run]]], columns: int) -> Iterator[Row]:
        """Renders each row as lines of `name: value`."""
        for number, row in enumerate(rows):
            if number:
                yield ((self._line * 3, DIM),)
            for name, cell in zip(self._names, row, strict=True):
                if plain(cell):
                    head = [*name, (": ", BOLD)] if plain(name) else []
                    first, *more = flow([*head, *cell], columns - 2)
                    yield first
                    yield from ((("  ", ""), *row) for row in more)


def _cells(line: str) -> list[str]:
    """Splits a line into cells. A bar in code or after a backslash does not separate."""
    body = line.strip().removeprefix("|")
    body = body[:-1] if body.endswith("|") and not body.endswith("\\|") else body
    found: list[str] = []
    at = 0
    while at <= len(body):
        cell = _CELL.match(body, at)
        end = cell.end() if cell else len(body)
        found.append(body[at:end].strip())
        at = end + 1
    return found


def _trimmed(line: list[Run]) -> Row:
    while line and not line[-1][0].strip():
        line.pop()
    if line:
        line[-1] = (line[-1][0].rstrip(), line[-1][1])
    return tuple(run for run in line if run[0])

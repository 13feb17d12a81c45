"""What the result of a command looks like: blocks of text, tables, records and diffs, which every surface can draw."""

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Literal, TypeAlias

import msgspec

Look: TypeAlias = Literal["", "bold", "dim", "good", "warn", "bad"]


class Span(msgspec.Struct, frozen=True):
    """Words of one look."""

    text: str
    look: Look = ""


class Line(msgspec.Struct, frozen=True):
    """A line, or a paragraph with line breaks of its own. `fit` says what becomes of one wider than the screen."""

    spans: tuple[Span, ...]
    fit: Literal["leave", "cut", "wrap"] = "leave"


class Column(msgspec.Struct, frozen=True):
    """A column of a table."""

    title: str = ""
    right: bool = False
    widest: int = 0
    """Cells that it takes at most; 0 for as many as there are."""
    shrinks: bool = False
    """Whether it gives way on a screen that is too narrow for all columns."""


class TableRow(msgspec.Struct, frozen=True):
    cells: tuple[str, ...]
    look: Look = ""


class Table(msgspec.Struct, frozen=True):
    """Rows below titles. On a narrow screen each row becomes several lines, of the columns named in `narrow`."""

    columns: tuple[Column, ...]
    rows: tuple[TableRow, ...]
    narrow: tuple[tuple[int, ...], ...] = ()


class Record(msgspec.Struct, frozen=True):
    """Names and values of one thing. Empty values are left out."""

    rows: tuple[tuple[str, str], ...]
    indent: int = 0


class Diff(msgspec.Struct, frozen=True):
    """A unified diff."""

    text: str


Block: TypeAlias = Line | Table | Record | Diff


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What a command found or did."""

    has_json: ClassVar[bool] = True
    json_help: ClassVar[str] = "print JSON"
    as_lines: ClassVar[bool] = False
    """Whether the JSON is a line for each item of `document`, instead of one document."""

    @property
    def exit_code(self) -> int:
        return 0

    def document(self) -> Any:
        """What `--json` and HTTP give."""
        return self

    def view(self, now: float) -> Iterable[Block]:
        """What a person sees. `now` is the time it is seen at."""
        raise NotImplementedError


class Message(Result, frozen=True, kw_only=True):
    """A result that is sentences and nothing else."""

    has_json: ClassVar[bool] = False

    lines: tuple[str, ...]
    failed: bool = False

    @property
    def exit_code(self) -> int:
        return int(self.failed)

    def view(self, now: float) -> Iterable[Block]:  # noqa: ARG002
        return [line(text) for text in self.lines]


def message(*lines: str, failed: bool = False) -> Message:
    """Sentences as a result."""
    return Message(lines=lines, failed=failed)


def line(
    text: str, look: Look = "", *, fit: Literal["leave", "cut", "wrap"] = "leave"
) -> Line:
    """A line of one look."""
    return Line((Span(text, look),), fit)


def lines_of(texts: Iterable[str], look: Look = "") -> list[Line]:
    return [line(text, look) for text in texts]


def table(
    columns: Sequence[Column | str],
    rows: Iterable[TableRow | tuple[str, ...]],
    *,
    narrow: tuple[tuple[int, ...], ...] = (),
) -> Table:
    """A table; a column is its title, a row its cells, where nothing more is to be said of them."""
    made = tuple(Column(one) if isinstance(one, str) else one for one in columns)
    filled = tuple(one if isinstance(one, TableRow) else TableRow(one) for one in rows)
    return Table(made, filled, narrow)

"""What the result of a command looks like: blocks of text, tables, records and diffs, which every surface can draw."""

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Literal, Protocol, TypeAlias

import msgspec

Look: TypeAlias = Literal["", "bold", "dim", "good", "warn", "bad"]


OK, WARN, FAIL = "ok", "warn", "fail"
"""The marks of findings, the same in every command."""

Fit: TypeAlias = Literal["leave", "cut", "wrap", "hang"]
"""What happens to a line that is wider than the screen; `hang` wraps the words of its last span below one another."""


class Span(msgspec.Struct, frozen=True):
    """Words in one style."""

    text: str
    look: Look = ""


class Line(msgspec.Struct, frozen=True):
    """A line, or a paragraph with line breaks of its own."""

    spans: tuple[Span, ...]
    fit: Fit = "leave"


class Column(msgspec.Struct, frozen=True):
    """A column of a table."""

    title: str = ""
    right: bool = False
    widest: int = 0
    """Cells that it takes at most; 0 for as many as there are."""
    least: int = 0
    """Cells that it takes at least, so that several tables are aligned."""
    shrinks: bool = False
    """Whether it gives way on a screen that is too narrow for all columns."""


class TableRow(msgspec.Struct, frozen=True):
    cells: tuple[str, ...]
    look: Look = ""


class TableBlock(msgspec.Struct, frozen=True):
    """Rows below titles. On a narrow screen each row becomes several lines, of the columns named in `narrow`."""

    columns: tuple[Column, ...]
    rows: tuple[TableRow, ...]
    narrow: tuple[tuple[int, ...], ...] = ()
    cut: bool = True
    """Whether lines end where the screen does."""
    indent: int = 0


class Record(msgspec.Struct, frozen=True):
    """Names and values of one thing. Empty values are left out."""

    rows: tuple[tuple[str, str], ...]
    indent: int = 0


class DiffBlock(msgspec.Struct, frozen=True):
    """A unified diff."""

    text: str


class MarkdownBlock(msgspec.Struct, frozen=True):
    """What a model wrote."""

    text: str


Block: TypeAlias = Line | TableBlock | Record | DiffBlock | MarkdownBlock


class Result(Protocol):
    """What a command found or did: a frozen struct, which is also its JSON.

    A result may have `document()` for another JSON, `exit_code`, `has_json = False` when it is nothing but sentences,
    and `as_lines = True` when its document is an iterator whose items become lines of JSON.
    """

    def view(self, now: float, /) -> Iterable[Block]:
        """What a person sees. `now` is the current time."""
        ...


def document_of(result: Result) -> Any:
    """What `--json` prints and HTTP returns."""
    document = getattr(result, "document", None)
    return result if document is None else document()


class TextResult(msgspec.Struct, frozen=True):
    """A result that is sentences and nothing else."""

    has_json: ClassVar[bool] = False

    lines: tuple[str, ...]
    exit_code: int = 0

    def view(self, _now: float) -> Iterable[Block]:
        return lines_of(self.lines)


class MarkdownResult(msgspec.Struct, frozen=True, kw_only=True):
    """A result that a model wrote."""

    has_json: ClassVar[bool] = False

    text: str

    def view(self, _now: float) -> Iterable[Block]:
        return [MarkdownBlock(self.text)]


class RawText(msgspec.Struct, frozen=True, kw_only=True):
    """Lines that a program reads, written as they are."""

    has_json: ClassVar[bool] = False

    lines: Any

    def view(self, _now: float) -> Iterable[Block]:
        return lines_of(self.lines)


def message(*lines: str, failed: bool = False) -> TextResult:
    """Sentences as a result."""
    return TextResult(lines, exit_code=int(failed))


def line(text: str, look: Look = "", *, fit: Fit = "leave") -> Line:
    """A line in one style."""
    return Line((Span(text, look),), fit)


def lines_of(texts: Iterable[str], look: Look = "") -> list[Line]:
    return [line(text, look) for text in texts]


def table(
    columns: Sequence[Column | str],
    rows: Iterable[TableRow | tuple[str, ...]],
    *,
    narrow: tuple[tuple[int, ...], ...] = (),
    cut: bool = True,
    indent: int = 0,
) -> TableBlock:
    """A table. A column may be given as its title alone, a row as its cells alone."""
    made = tuple(Column(one) if isinstance(one, str) else one for one in columns)
    filled = tuple(one if isinstance(one, TableRow) else TableRow(one) for one in rows)
    return TableBlock(made, filled, narrow, cut, indent)

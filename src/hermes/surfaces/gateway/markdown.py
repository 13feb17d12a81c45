"""The result of a command as a message in a chat: Markdown, which every platform turns into its own."""

from collections.abc import Iterable, Iterator

from hermes.commands.formats import first_line
from hermes.commands.views import (
    Block,
    DiffBlock,
    Line,
    Record,
    Result,
    Span,
    TableBlock,
    TableRow,
)


def markdown(result: Result, now: float) -> str:
    """All blocks of a result."""
    return "\n".join(_lines(result.view(now))).strip()


def _lines(blocks: Iterable[Block]) -> Iterator[str]:
    for block in blocks:
        match block:
            case Line():
                yield "".join(map(_span, block.spans))
            case Record():
                yield from (
                    f"{name.capitalize()}: {first_line(value)}"
                    for name, value in block.rows
                    if value
                )
            case TableBlock():
                yield from (_row(block, row) for row in block.rows)
            case DiffBlock():
                yield f"```diff\n{block.text.rstrip()}\n```"


def _span(span: Span) -> str:
    text = span.text.strip("\n")
    return span.text.replace(text, f"**{text}**") if span.look == "bold" else span.text


def _row(table: TableBlock, row: TableRow) -> str:
    """The columns that a narrow screen would show, in one line."""
    wanted = [index for line in table.narrow for index in line]
    first, *rest = [row.cells[index] for index in wanted or range(len(row.cells))]
    return " · ".join(
        (f"- `{first_line(first)}`", *(first_line(cell) for cell in rest if cell))
    )

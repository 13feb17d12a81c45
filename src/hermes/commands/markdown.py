"""The result of a command as a message in a chat: Markdown, which every platform turns into its own."""

from collections.abc import Iterable, Iterator

from hermes.commands.views import (
    Block,
    DiffBlock,
    Line,
    MarkdownBlock,
    Record,
    Result,
    Span,
    TableBlock,
    TableRow,
)
from hermes.text.formats import first_line

_CODE_FENCE = "```"
_BROKEN_FENCE = "`\N{ZERO WIDTH SPACE}``"


def markdown(result: Result, now: float) -> str:
    """All blocks of a result.

    Titles, messages and files in it were written by others: none of them makes a link that hides its address, or ends
    the code block that it is shown in.
    """
    return markdown_of(result.view(now))


def markdown_of(blocks: Iterable[Block]) -> str:
    """Some blocks, as `markdown` writes them."""
    return "\n".join(_lines(blocks)).strip()


def _lines(blocks: Iterable[Block]) -> Iterator[str]:
    for block in blocks:
        match block:
            case Line():
                yield _without_links("".join(map(_span, block.spans)))
            case Record():
                yield from (
                    _without_links(f"{name.capitalize()}: {first_line(value)}")
                    for name, value in block.rows
                    if value
                )
            case TableBlock():
                yield from (_without_links(_row(block, row)) for row in block.rows)
                yield ""  # what follows is no part of the last item
            case MarkdownBlock():
                yield from map(_without_links, block.text.splitlines())
            case DiffBlock():
                text = block.text.rstrip().replace(_CODE_FENCE, _BROKEN_FENCE)
                yield f"{_CODE_FENCE}diff\n{text}\n{_CODE_FENCE}"


def _without_links(text: str) -> str:
    """The text with its addresses visible."""
    return text.replace("](", "] (")


def _span(span: Span) -> str:
    text = span.text.strip("\n")
    if span.look == "bold":
        return span.text.replace(text, f"**{text}**")
    return span.text


def _row(table: TableBlock, row: TableRow) -> str:
    """The columns that a narrow screen would show, in one line."""
    wanted = [index for line in table.narrow for index in line]
    first, *rest = [row.cells[index] for index in wanted or range(len(row.cells))]
    return " · ".join(
        (f"- `{first_line(first)}`", *(first_line(cell) for cell in rest if cell))
    )


def code_block(text: str) -> str:
    """Returns a code block in Markdown. The text can contain any backticks."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}\n{text}\n{fence}"

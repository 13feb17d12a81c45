"""Draws the result of a command on a terminal: a function for each kind of block, and for some
kinds of result.
"""

import re
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, cast

from hermes.commands.views import (
    Block,
    Column,
    DiffBlock,
    Line,
    Look,
    MarkdownBlock,
    Record,
    Result,
    Span,
    TableBlock,
)
from hermes.surfaces.terminal.style import Style, hanging
from hermes.surfaces.terminal.text import (
    TextScreen,
    ago,
    clean,
    cut,
    one_line,
    pad,
    width,
    wrap,
)
from hermes.text.translation import translator

if TYPE_CHECKING:
    from hermes.commands.events import ReplayedEvents
    from hermes.commands.session_views import SearchResults, SessionTranscript
    from hermes.store.search import MessageHit

t = translator(__name__)


_MIN_TABLE_COLUMN_CELLS = 12  # of a column that may shrink


def draw(result: Result, screen: TextScreen, now: float) -> Iterable[str]:
    """Returns the lines of a result."""
    match type(result).__name__:  # by name, so that only what is drawn is imported
        case "SessionTranscript":
            return _transcript(cast("SessionTranscript", result), screen)
        case "SearchResults":
            return _search_results(cast("SearchResults", result), screen, now)
        case "ReplayedEvents":
            return _events(cast("ReplayedEvents", result), screen)
        case _:
            return draw_blocks(result.view(now), screen)


def draw_blocks(blocks: Iterable[Block], screen: TextScreen) -> Iterator[str]:
    """Yields the lines of blocks."""
    for block in blocks:
        match block:
            case Line():
                yield from _line(block, screen)
            case TableBlock():
                yield from _table(block, screen)
            case Record():
                yield from _record(block, screen)
            case DiffBlock():
                yield from _diff(block.text, screen)
            case MarkdownBlock():
                yield from _markdown(block.text, screen)


def _diff(text: str, screen: TextScreen) -> Iterator[str]:
    """Yields a diff with line numbers in a chat, and as git writes it elsewhere."""
    if not screen.is_chat:
        yield from draw_diff(text, screen.style)
        return
    from hermes.surfaces.terminal.diff_view import read_rows
    from hermes.surfaces.terminal.styled_text import painted
    from hermes.surfaces.terminal.tool_line import marks_of_this_run

    rows = read_rows(text, screen.columns, marks_of_this_run())
    yield from (painted(row, screen.style) for row in rows)


def _markdown(text: str, screen: TextScreen) -> Iterator[str]:
    """Yields what a model wrote, rendered in a chat and as it is elsewhere."""
    if not screen.is_chat:
        yield from clean(text).splitlines()
        return
    from hermes.surfaces.terminal.markdown.render import Markdown
    from hermes.surfaces.terminal.styled_text import painted
    from hermes.surfaces.terminal.tool_line import marks_for

    is_ascii = marks_for(sys.stdout.encoding).bar == "|"
    markdown = Markdown(colours=screen.style.enabled, ascii_only=is_ascii)
    rows = [*markdown.feed(clean(text), screen.columns), *markdown.end(screen.columns)]
    for row in rows:
        yield painted(row, screen.style)


def _transcript(result: "SessionTranscript", screen: TextScreen) -> Iterator[str]:
    from hermes.surfaces.terminal.transcript import heading, listing, transcript

    if result.as_events:
        lines = listing(result.rows, screen)
    else:
        if result.with_heading:
            yield from heading(result.session, screen)
        lines = transcript(result.rows, screen)
    is_empty = True
    for line in lines:
        yield line
        is_empty = False
    if is_empty and result.after:
        yield t(
            "No rows after {after}; the last one is {head}.",
            after=result.after,
            head=result.session.head,
        )
    elif is_empty:
        yield t("\nNo messages yet.")


def _search_results(
    result: "SearchResults", screen: TextScreen, now: float
) -> Iterable[str]:

    if not result.hits:
        return draw_blocks(result.view(now), screen)
    return hit_lines(list(result.hits), result.query, screen, now)


def _events(result: "ReplayedEvents", screen: TextScreen) -> Iterator[str]:
    from hermes.surfaces.terminal.event_line import EventLines

    lines = EventLines(screen, dated=True)
    return (lines.line(event) for event in result.events)


def paint(style: Style, look: Look, text: str) -> str:
    """Colours a text in a style."""
    colours = {
        "bold": style.bold,
        "dim": style.dim,
        "good": style.green,
        "warn": style.yellow,
        "bad": style.red,
    }
    colour = colours.get(look)
    return text if colour is None else colour(text)


def draw_diff(text: str, style: Style) -> Iterator[str]:
    """Yields the lines of a unified diff, coloured."""
    for line in clean(text).rstrip("\n").split("\n"):
        if line.startswith(("@@", "diff", "index", "---", "+++")):
            yield style.dim(line)
        elif line.startswith("+"):
            yield style.green(line)
        elif line.startswith("-"):
            yield style.red(line)
        else:
            yield line


def _line(line: Line, screen: TextScreen) -> Iterator[str]:
    is_text = screen.is_chat and line.fit == "leave"
    wraps = line.fit == "wrap" or (
        is_text and (len(line.spans) == 1 or _is_long(line, screen))
    )
    if line.fit == "leave" and not wraps:
        yield "".join(_painted(span, screen.style) for span in line.spans)
        return
    if line.fit == "hang":
        yield _hanging(line, screen.style)
        return
    text = "".join(clean(span.text) for span in line.spans)
    look = line.spans[-1].look
    texts = wrap(text, screen.columns) if wraps else [text]
    for one in texts:
        yield paint(screen.style, look, cut(one, screen.columns))


def _is_long(line: Line, screen: TextScreen) -> bool:
    return width("".join(clean(span.text) for span in line.spans)) > screen.columns


def _hanging(line: Line, style: Style) -> str:
    """Returns the line with its last span wrapped, and indented to where it begins."""
    *marks, last = line.spans
    indent = sum(width(clean(mark.text)) for mark in marks) + 1
    text = hanging(clean(last.text), sys.stdout, indent)
    return (
        "".join(_painted(mark, style) for mark in marks)
        + " "
        + paint(style, last.look, text)
    )


def _painted(span: Span, style: Style) -> str:
    """Colours a span, without the line breaks at its start."""
    text = clean(span.text)
    plain = text.lstrip("\n")
    return "\n" * (len(text) - len(plain)) + paint(style, span.look, plain)


def _record(record: Record, screen: TextScreen) -> Iterator[str]:
    rows = [(name, one_line(value)) for name, value in record.rows if value]
    size = max((len(name) for name, _ in rows), default=0) + 2
    for name, value in rows:
        yield cut_to(f"{' ' * record.indent}{name:<{size}}{value}", screen)


def cut_to(text: str, screen: TextScreen) -> str:
    """Cuts a line to the terminal's width; in a file it stays whole."""
    return cut(text, screen.columns) if screen.style.enabled else text


def _table(table: TableBlock, screen: TextScreen) -> Iterator[str]:
    if screen.is_narrow and table.narrow:
        yield from _stacked(table, screen)
        return
    cells = [[one_line(cell) for cell in row.cells] for row in table.rows]
    titles = [column.title for column in table.columns]
    if any(titles):
        cells.insert(0, titles)
    cells = [_limited(row, table.columns) for row in cells]
    widths = _widths(cells, table, screen)
    looks: list[Look] = [row.look for row in table.rows]
    if any(titles):
        looks.insert(0, "bold")
    for row, look in zip(cells, looks, strict=True):
        aligned = [
            _aligned(cell, size, column)
            for cell, size, column in zip(row, widths, table.columns, strict=True)
        ]
        text = (" " * table.indent + "  ".join(aligned)).rstrip()
        fitting = cut(text, screen.columns) if table.cut else text
        yield paint(screen.style, look, fitting)


def _limited(row: list[str], columns: tuple[Column, ...]) -> list[str]:
    return [
        cut(cell, column.widest) if column.widest else cell
        for cell, column in zip(row, columns, strict=True)
    ]


def _widths(cells: list[list[str]], table: TableBlock, screen: TextScreen) -> list[int]:
    """Returns the width of each column. Columns that may shrink get what the others leave."""
    widths = [
        max(column.least, *map(width, texts))
        for column, texts in zip(table.columns, zip(*cells, strict=True), strict=True)
    ]
    room = screen.columns - table.indent - 2 * (len(widths) - 1)
    excess = sum(widths) - room
    for index, column in enumerate(table.columns):
        if column.shrinks and excess > 0:
            widths[index] = max(widths[index] - excess, _MIN_TABLE_COLUMN_CELLS)
    return widths


def _aligned(cell: str, size: int, column: Column) -> str:
    text = cut(cell, size)
    if column.right:
        return " " * (size - width(text)) + text
    return pad(text, size)


def _stacked(table: TableBlock, screen: TextScreen) -> Iterator[str]:
    """Yields each row as several lines, the first in bold."""
    for row in table.rows:
        for number, columns in enumerate(table.narrow):
            cells = [one_line(row.cells[index]) for index in columns]
            text = "  ".join(cell for cell in cells if cell)
            indent = " " * (table.indent + 2 * bool(number))
            indented = cut(f"{indent}{text}", screen.columns)
            yield paint(screen.style, "" if number else row.look or "bold", indented)


def hit_lines(
    hits: "list[MessageHit]", query: str, screen: TextScreen, now: float
) -> Iterator[str]:
    """Yields the hits, grouped by session."""
    previous = ""
    for hit in hits:
        if hit.session != previous:
            head = f"{one_line(hit.session)}  {one_line(hit.title)}".rstrip()
            yield from ([""] if previous else [])
            yield screen.style.bold(cut(head, screen.columns))
            previous = hit.session
        who = {"user": "you", "assistant": "hermes"}.get(hit.role, hit.role)
        yield screen.style.dim(f"  {ago(hit.ts, now)} · {who} · row {hit.seq:,}")
        for line in wrap(one_line(hit.snippet), screen.columns - 4):
            yield f"    {highlight(line, query, screen)}"


def highlight(line: str, query: str, screen: TextScreen) -> str:
    """Returns `line` with the query's words highlighted."""
    wanted = re.sub(r'(?<!\S)-("[^"]*"?|\S+)', " ", query)
    words: list[str] = re.findall(r"\w+", wanted)
    longest_first = "|".join(
        re.escape(word) for word in sorted(words, key=len, reverse=True)
    )
    mark = screen.style.yellow
    return (
        re.sub(longest_first, lambda found: mark(found[0]), line, flags=re.IGNORECASE)
        if words
        else line
    )

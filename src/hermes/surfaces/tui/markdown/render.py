"""Draws Markdown as rows of a terminal: what has ended for good, what is still being written for now."""

from collections.abc import Iterator, Sequence

import msgspec

from hermes.surfaces.terminal.text import wrap
from hermes.surfaces.tui.markdown.blocks import Block, Blocks
from hermes.surfaces.tui.markdown.inline import parse, row_offsets, settled
from hermes.surfaces.tui.markdown.syntax import Highlighter
from hermes.surfaces.tui.markdown.table import Table
from hermes.surfaces.tui.styled_text import BOLD, CYAN, DIM, UNDERLINE, Row, Run, flow

_MAX_INDENT_CELLS = 12  # cells of indentation of an item, at most


class _Anchor(msgspec.Struct, frozen=True):
    """Where the layout of a long block can go on from: everything before has its rows on the screen for good."""

    columns: int
    parts: tuple[str, ...]
    """Parts of the block that are wholly before it."""
    text: str
    """The beginning of the next part."""
    rows: int
    """How many rows all of that takes."""


class Markdown:
    """One text on its way to the screen."""

    def __init__(self, *, colours: bool, ascii_only: bool) -> None:
        self._marked = not colours
        self._ascii = ascii_only
        self._blocks = Blocks()
        self._code = Highlighter("")
        self._drawn = False
        self._gap = False  # a blank row belongs before the next block
        self._looked = 0  # characters of the block that is being written when it was last looked at for such rows
        self._most = 0  # rows of what is not finished that are wanted; 0 for all
        self._table: Table | None = None
        self._tabled: tuple[str, ...] = ()
        """The table that is being written, without its last line, and which lines that are."""
        self._given: list[tuple[int, int]] = []
        """Of the block that is being written: how many rows are on the screen for good, and how wide they are."""
        self._anchor: _Anchor | None = None

    def feed(self, text: str, columns: int) -> list[Row]:
        """Takes more text; the rows that will never change again."""
        rows = [
            row
            for block in self._blocks.feed(text)
            for row in self._draw(block, columns)
        ]
        begun = self._blocks.begun()
        fixed = (
            self._settled(begun, columns)
            if begun and self._has_grown(begun, columns)
            else []
        )
        if fixed:
            rows += [()] * (self._gap and not self._given) + fixed
            if not self._given or self._given[-1][0] != columns:
                self._given.append((columns, 0))
            self._given[-1] = (columns, self._given[-1][1] + len(fixed))
            self._drawn = True
            self._anchor = self._next_anchor(begun, columns) if begun else None
        return rows

    def rest(self, columns: int, most: int = 0) -> list[Row]:
        """The rows of what is not finished yet; of a long table only as many as `most` asks for, from its end."""
        self._most = most
        before = (
            self._drawn,
            self._gap,
            self._code,
            self._given,
            self._looked,
            self._anchor,
        )
        blocks = [block for block in self._blocks.rest() if block.kind != "close"]
        rows = [row for block in blocks for row in self._plainly(block, columns)]
        self._drawn, self._gap, self._code, self._given, self._looked, self._anchor = (
            before
        )
        self._most = 0
        return rows

    def end(self, columns: int) -> list[Row]:
        """The text is over: everything that is left."""
        return [
            row for block in self._blocks.end() for row in self._draw(block, columns)
        ]

    def _plainly(self, block: Block, columns: int) -> Iterator[Row]:
        """A line of code is coloured once, when it is whole."""
        if block.kind == "code":
            yield from (((part, ""),) for part in wrap(block.lines[0], columns))
        else:
            yield from self._draw(block, columns)

    def _draw(self, block: Block, columns: int) -> Iterator[Row]:
        """A block's rows, but for those that were given away while it was being written."""
        if block.kind == "blank":
            self._gap = self._drawn
            return
        if self._gap and not self._given:
            yield ()
        yield from self._left(block, columns)
        self._drawn, self._gap = True, False
        self._given, self._looked, self._anchor = list[tuple[int, int]](), 0, None

    def _has_grown(self, block: Block, columns: int) -> bool:
        """Whether there is so much more of a block that it is worth a look; not with every token."""
        length = sum(map(len, block.lines))
        if length - self._looked < columns // 2:
            return False
        self._looked = length
        return True

    def _settled(self, block: Block, columns: int) -> list[Row]:
        """More rows of a block that is being written which can't change: all but the last, up to an open mark."""
        *before, last = _parts(block)
        is_here = self._anchor is not None and len(self._anchor.parts) == len(before)
        known = (
            self._anchor.text
            if self._anchor and is_here and self._is_anchored([*before, last], columns)
            else ""
        )
        lines = (*(f"{part}  " for part in before), known + settled(last[len(known) :]))
        return self._left(msgspec.structs.replace(block, lines=lines), columns)[:-1]

    def _next_anchor(self, block: Block, columns: int) -> _Anchor | None:
        """As far into the block as its rows are on the screen, at the beginning of a row without marks of its own."""
        if len(self._given) != 1 or self._given[0][0] != columns or _is_box(block):
            return None
        parts, given = tuple(_parts(block)), self._given[0][1]
        found = self._anchor if self._is_anchored(parts, columns) else None
        at, text, rows = (
            (len(found.parts), found.text, found.rows) if found else (0, "", 0)
        )
        room = max(columns - self._lead_width(block), 8)
        while at < len(parts):
            offsets = row_offsets(parts[at][len(text) :], room, marked=self._marked)
            whole = (
                at < len(parts) - 1 and rows + len(offsets) <= given
            )  # up to a hard break
            for number, offset in enumerate(offsets):
                if not whole and offset is not None and 0 < rows + number <= given:
                    found = _Anchor(
                        columns,
                        parts[:at],
                        parts[at][: len(text) + offset],
                        rows + number,
                    )
            if not whole:
                break
            at, text, rows = at + 1, "", rows + len(offsets)
        return found

    def _is_anchored(self, parts: Sequence[str], columns: int) -> bool:
        """Whether the anchor belongs to this block, as wide as it is drawn now."""
        anchor = self._anchor
        if (
            anchor is None
            or anchor.columns != columns
            or len(parts) <= len(anchor.parts)
        ):
            return False
        return tuple(parts[: len(anchor.parts)]) == anchor.parts and parts[
            len(anchor.parts)
        ].startswith(anchor.text)

    def _lead_width(self, block: Block) -> int:
        """Cells before each row of a paragraph or an item."""
        if block.kind != "item":
            return 0
        pad, mark, _ = self._item_lead(block)
        return len(pad) + len(mark) + 1

    def _left(self, block: Block, columns: int) -> list[Row]:
        """The rows that were not given away; where the window's width has changed since, they follow it."""
        given = self._given or [(columns, 0)]
        anchor = self._anchor
        if anchor is not None and self._is_anchored(tuple(_parts(block)), given[0][0]):
            rows = list(self._anchored(block, anchor))[given[0][1] - anchor.rows :]
        else:
            rows = list(self._rows(block, given[0][0]))[given[0][1] :]
        for width, count in [
            *given[1:],
            *([(columns, 0)] if given[-1][0] != columns else []),
        ]:
            runs = [run for row in rows for run in (*row, (" ", ""))]
            rows = list(flow(runs, width))[count:] if runs else []
        return rows

    def _anchored(self, block: Block, anchor: _Anchor) -> Iterator[Row]:
        """The rows from the anchor on; the first row of the block is not among them."""
        pad = " " * self._lead_width(block)
        first, *more = list(_parts(block))[len(anchor.parts) :]
        for part in (first[len(anchor.text) :], *more):
            for row in flow(self._parse(part, ""), max(anchor.columns - len(pad), 8)):
                yield ((pad, ""), *row) if pad else row

    def _rows(self, block: Block, columns: int) -> Iterator[Row]:
        match block.kind:
            case "heading":
                look = f"{BOLD};{UNDERLINE}" if block.head == "#" else BOLD
                text = (
                    f"{block.head} {block.lines[0]}" if self._marked else block.lines[0]
                )
                yield from flow(self._parse(text, look), columns)
            case "rule":
                yield (
                    (
                        "-" * min(columns, 40)
                        if self._ascii
                        else "─" * min(columns, 40),
                        DIM,
                    ),
                )
            case "open":
                self._code = Highlighter(block.head.lower())
                yield ((self._fence(block.head), DIM),)
            case "code":
                yield self._code.line(block.lines[0])
            case "close":
                self._code = Highlighter("")
                yield ((self._fence(""), DIM),)
            case "table":
                yield from self._read_table(block.lines).rows(columns, self._most)
            case "item":
                yield from self._item(block, columns)
            case "quote":
                lines = block.lines[-self._most :] if self._most else block.lines
                shown = msgspec.structs.replace(block, lines=lines)
                yield from self._led(
                    shown, [("| " if self._ascii else "▏ ", DIM)], [], columns
                )
            case _:
                yield from self._led(block, [], [], columns)

    def _read_table(self, lines: tuple[str, ...]) -> Table:
        """The table of these lines. What was read before is not read again: only the last line can still change."""
        if len(lines) == 2:
            return Table(lines, marked=self._marked, ascii_only=self._ascii)
        table, known = self._table, self._tabled
        if table is None or len(known) >= len(lines) or lines[: len(known)] != known:
            table, known = (
                Table(lines[:2], marked=self._marked, ascii_only=self._ascii),
                lines[:2],
            )
        for line in lines[len(known) : -1]:
            table.add(line)
        self._table, self._tabled = table, lines[:-1]
        return table.ahead(lines[-1])

    def _item(self, block: Block, columns: int) -> Iterator[Row]:
        pad, mark, text = self._item_lead(block)
        lines = (text, *block.lines[1:])
        first = [(pad, ""), (f"{mark} ", CYAN)]
        yield from self._led(
            Block("item", lines),
            first,
            [(" " * (len(pad) + len(mark) + 1), "")],
            columns,
        )

    def _item_lead(self, block: Block) -> tuple[str, str, str]:
        """The indentation and the mark of an item, and its first line without it."""
        mark, text = block.head, block.lines[0]
        if not mark[0].isdigit():
            mark = "-" if self._ascii else "•"
        box = {"[ ] ": "☐ ", "[x] ": "☑ ", "[X] ": "☑ "}.get(text[:4], "")
        if box and not self._ascii:
            mark, text = box.strip(), text[4:]
        return " " * min(block.indent, _MAX_INDENT_CELLS), mark, text

    def _led(
        self, block: Block, first: list[Run], later: list[Run], columns: int
    ) -> Iterator[Row]:
        """Rows behind a mark; a line that ends with two blanks ends its row."""
        lead = first
        room = max(columns - sum(len(text) for text, _ in first), 8)
        for part in _parts(block):
            for row in flow(self._parse(part, ""), room):
                yield tuple(run for run in (*lead, *row) if run[0])
                lead = later or first

    def _parse(self, text: str, look: str) -> list[Run]:
        return parse(text, look, marked=self._marked)

    def _fence(self, language: str) -> str:
        line = "-" * 3 if self._ascii else "─" * 3
        return f"{line} {language}".rstrip()


def _is_box(block: Block) -> bool:
    """Whether an item begins with a box to tick: its text is another one on the screen."""
    return block.kind == "item" and block.lines[0][:4] in {"[ ] ", "[x] ", "[X] "}


def _parts(block: Block) -> Iterator[str]:
    """The lines of a block, joined; quotes keep their own, and a hard break stays one."""
    begun: list[str] = []
    for line in block.lines:
        begun.append(line.rstrip())
        if line.endswith("  ") or block.kind == "quote":
            yield " ".join(begun)
            begun = []
    if begun:
        yield " ".join(begun)

"""Renders streaming Markdown as terminal rows: final rows for finished text, temporary ones for the
rest.
"""

from collections.abc import Callable, Iterator, Sequence

import msgspec

from hermes.surfaces.terminal.markdown.blocks import Block, Blocks
from hermes.surfaces.terminal.markdown.inline import parse, row_offsets, stable_prefix
from hermes.surfaces.terminal.markdown.syntax import Highlighter
from hermes.surfaces.terminal.markdown.table import Table
from hermes.surfaces.terminal.styled_text import (
    BOLD,
    CYAN,
    DIM,
    UNDERLINE,
    Row,
    Run,
    flow,
)
from hermes.surfaces.terminal.text import wrap

_MAX_INDENT_CELLS = 12  # of an item


class _Anchor(msgspec.Struct, frozen=True):
    """A point in a long block from which layout can continue; all rows before it are final."""

    columns: int
    parts: tuple[str, ...]
    """Parts of the block before the anchor."""
    text: str
    """The start of the next part."""
    rows: int
    """The number of rows before the anchor."""


class Markdown:
    """One text being rendered.

    While `is_loaded` denies that the lexer of a language is there, a block in it stays unfinished and without colours.
    """

    def __init__(
        self,
        *,
        colours: bool,
        ascii_only: bool,
        is_loaded: Callable[[str], bool] = lambda _: True,
    ) -> None:
        self._marked = not colours
        self._ascii = ascii_only
        self._is_loaded = is_loaded
        self._blocks = Blocks()
        self._held: list[Block] = []  # from a block on whose lexer is not loaded
        self._code = Highlighter("")
        self._drawn = False
        self._gap = False  # the next block needs a blank row before it
        self._laid_out_chars = 0  # length of the open block at its last layout
        self._most = 0  # limit of unfinished rows; 0 for all
        self._table: Table | None = None
        self._table_lines: tuple[str, ...] = ()
        """The open table without its last line, and the lines it was read from."""
        self._final_rows: list[tuple[int, int]] = []
        """The number of final rows of the open block, and their width."""
        self._anchor: _Anchor | None = None

    def feed(self, text: str, columns: int) -> list[Row]:
        """Adds text. Returns the rows that are final."""
        self._held += self._blocks.feed(text)
        rows = [row for block in self._loaded() for row in self._draw(block, columns)]
        begun = None if self._held else self._blocks.open_block()
        fixed = (
            self._new_final_rows(begun, columns)
            if begun and self._has_grown(begun, columns)
            else []
        )
        if fixed:
            rows += [()] * (self._gap and not self._final_rows) + fixed
            if not self._final_rows or self._final_rows[-1][0] != columns:
                self._final_rows.append((columns, 0))
            self._final_rows[-1] = (columns, self._final_rows[-1][1] + len(fixed))
            self._drawn = True
            self._anchor = self._next_anchor(begun, columns) if begun else None
        return rows

    def rest(self, columns: int, most: int = 0) -> list[Row]:
        """Returns the rows of unfinished text; of a long table or line of code only the last `most`."""
        self._most = most
        before = (
            self._drawn,
            self._gap,
            self._code,
            self._final_rows,
            self._laid_out_chars,
            self._anchor,
        )
        rest = [block for block in self._blocks.rest() if block.kind != "close"]
        blocks = (*self._held, *rest)
        rows = [
            row for block in blocks for row in self._draw_unfinished(block, columns)
        ]
        (
            self._drawn,
            self._gap,
            self._code,
            self._final_rows,
            self._laid_out_chars,
            self._anchor,
        ) = before
        self._most = 0
        return rows

    def end(self, columns: int) -> list[Row]:
        """Ends the text. Returns all rows left."""
        blocks = (*self._held, *self._blocks.end())
        return [row for block in blocks for row in self._draw(block, columns)]

    def whole(self, text: str, columns: int) -> list[Row]:
        """Renders a complete text, in the rows that it would have had piece by piece."""
        blocks = [*self._blocks.feed(text), *self._blocks.end()]
        return [row for block in blocks for row in self._draw(block, columns)]

    def _loaded(self) -> Iterator[Block]:
        """Takes the blocks that need not wait for a lexer."""
        while self._held and self._can_draw(self._held[0]):
            yield self._held.pop(0)

    def _can_draw(self, block: Block) -> bool:
        return block.kind != "open" or self._is_loaded(block.head.lower())

    def _draw_unfinished(self, block: Block, columns: int) -> Iterator[Row]:
        """Returns an unfinished line of code without colours; it is coloured once it is whole."""
        if block.kind == "code":
            line = block.lines[0]
            hidden = max(len(line) // columns - self._most, 0) if self._most else 0
            yield from (
                ((part, ""),) for part in wrap(line[hidden * columns :], columns)
            )
        else:
            yield from self._draw(block, columns)

    def _draw(self, block: Block, columns: int) -> Iterator[Row]:
        """Renders a block, without the rows already returned while it was open."""
        if block.kind == "blank":
            self._gap = self._drawn
            return
        if self._gap and not self._final_rows:
            yield ()
        yield from self._remaining_rows(block, columns)
        self._drawn, self._gap = True, False
        self._final_rows, self._laid_out_chars, self._anchor = (
            list[tuple[int, int]](),
            0,
            None,
        )

    def _has_grown(self, block: Block, columns: int) -> bool:
        """Returns whether the block has grown enough to lay it out again."""
        length = sum(map(len, block.lines))
        if length - self._laid_out_chars < columns // 2:
            return False
        self._laid_out_chars = length
        return True

    def _new_final_rows(self, block: Block, columns: int) -> list[Row]:
        """Returns new final rows of the open block: all but the last, up to an open mark."""
        *before, last = _parts(block)
        is_here = self._anchor is not None and len(self._anchor.parts) == len(before)
        known = (
            self._anchor.text
            if self._anchor and is_here and self._is_anchored([*before, last], columns)
            else ""
        )
        lines = (
            *(f"{part}  " for part in before),
            known + stable_prefix(last[len(known) :]),
        )
        return self._remaining_rows(
            msgspec.structs.replace(block, lines=lines), columns
        )[:-1]

    def _next_anchor(self, block: Block, columns: int) -> _Anchor | None:
        """Returns an anchor as far into the block as rows are final, at the start of an unstyled row."""
        if (
            len(self._final_rows) != 1
            or self._final_rows[0][0] != columns
            or _is_box(block)
        ):
            return None
        parts, given = tuple(_parts(block)), self._final_rows[0][1]
        found = self._anchor if self._is_anchored(parts, columns) else None
        at, text, rows = (
            (len(found.parts), found.text, found.rows) if found else (0, "", 0)
        )
        room = max(columns - _width(self._later_lead(block)), 8)
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
        """Returns whether the anchor belongs to this block and width."""
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

    def _later_lead(self, block: Block) -> list[Run]:
        """Returns what stands before each row of a block but an item's first."""
        match block.kind:
            case "item":
                pad, mark, _ = self._item_lead(block)
                return [(" " * (len(pad) + len(mark) + 1), "")]
            case "quote":
                return [("| " if self._ascii else "▏ ", DIM)]
            case _:
                return []

    def _remaining_rows(self, block: Block, columns: int) -> list[Row]:
        """Returns the rows not yet returned, also after the window's width has changed."""
        given = self._final_rows or [(columns, 0)]
        anchor = self._anchor
        if anchor is not None and self._is_anchored(tuple(_parts(block)), given[0][0]):
            rows = list(self._rows_from(block, anchor))[given[0][1] - anchor.rows :]
        else:
            rows = list(self._rows(block, given[0][0]))[given[0][1] :]
        for width, count in [
            *given[1:],
            *([(columns, 0)] if given[-1][0] != columns else []),
        ]:
            runs = [run for row in rows for run in (*row, (" ", ""))]
            rows = list(flow(runs, width))[count:] if runs else []
        return rows

    def _rows_from(self, block: Block, anchor: _Anchor) -> Iterator[Row]:
        """Renders the rows from the anchor on, which never include the block's first row."""
        lead = self._later_lead(block)
        room = max(anchor.columns - _width(lead), 8)
        first, *more = list(_parts(block))[len(anchor.parts) :]
        for part in (first[len(anchor.text) :], *more):
            for row in flow(self._parse(part, ""), room):
                yield (*lead, *row)

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
                yield from self._with_marker(
                    block, self._later_lead(block), [], columns
                )
            case _:
                yield from self._with_marker(block, [], [], columns)

    def _read_table(self, lines: tuple[str, ...]) -> Table:
        """Returns the table of these lines. Reuses earlier lines: only the last one can still change."""
        if len(lines) == 2:
            return Table(lines, marked=self._marked, ascii_only=self._ascii)
        table, known = self._table, self._table_lines
        if table is None or len(known) >= len(lines) or lines[: len(known)] != known:
            table, known = (
                Table(lines[:2], marked=self._marked, ascii_only=self._ascii),
                lines[:2],
            )
        for line in lines[len(known) : -1]:
            table.add(line)
        self._table, self._table_lines = table, lines[:-1]
        return table.ahead(lines[-1])

    def _item(self, block: Block, columns: int) -> Iterator[Row]:
        pad, mark, text = self._item_lead(block)
        lines = (text, *block.lines[1:])
        first = [(pad, ""), (f"{mark} ", CYAN)]
        later = self._later_lead(block)
        yield from self._with_marker(Block("item", lines), first, later, columns)

    def _item_lead(self, block: Block) -> tuple[str, str, str]:
        """Returns the indentation and the marker of an item, and its first line without them."""
        mark, text = block.head, block.lines[0]
        if not mark[0].isdigit():
            mark = "-" if self._ascii else "•"
        box = {"[ ] ": "☐ ", "[x] ": "☑ ", "[X] ": "☑ "}.get(text[:4], "")
        if box and not self._ascii:
            mark, text = box.strip(), text[4:]
        return " " * min(block.indent, _MAX_INDENT_CELLS), mark, text

    def _with_marker(
        self, block: Block, first: list[Run], later: list[Run], columns: int
    ) -> Iterator[Row]:
        """Renders rows after a marker. A line that ends with two spaces ends its row."""
        lead = first
        room = max(columns - _width(first), 8)
        for part in _parts(block):
            for row in flow(self._parse(part, ""), room):
                yield tuple(run for run in (*lead, *row) if run[0])
                lead = later or first

    def _parse(self, text: str, look: str) -> list[Run]:
        return parse(text, look, marked=self._marked)

    def _fence(self, language: str) -> str:
        line = "-" * 3 if self._ascii else "─" * 3
        return f"{line} {language}".rstrip()


def _width(lead: Sequence[Run]) -> int:
    return sum(len(text) for text, _ in lead)


def _is_box(block: Block) -> bool:
    """Returns whether an item starts with a checkbox, whose text is drawn as a symbol."""
    return block.kind == "item" and block.lines[0][:4] in {"[ ] ", "[x] ", "[X] "}


def _parts(block: Block) -> Iterator[str]:
    """Joins the lines of a block. Hard breaks stay."""
    joined: list[str] = []
    for line in block.lines:
        joined.append(line.rstrip())
        if line.endswith("  "):
            yield " ".join(joined)
            joined = []
    if joined:
        yield " ".join(joined)

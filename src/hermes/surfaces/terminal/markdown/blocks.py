"""Splits streaming Markdown into blocks. A finished block never changes.

Only whole lines decide, so the same text gives the same blocks however it was split into pieces.
"""

import re
from copy import copy
from typing import Literal, TypeAlias

import msgspec

from hermes.surfaces.terminal.text import clean

Kind: TypeAlias = Literal[
    "text",
    "heading",
    "rule",
    "item",
    "quote",
    "table",
    "open",
    "code",
    "close",
    "blank",
]

_MAX_TABLE_HEAD_CHARS = 24  # in which the first bar of a table header must come
_MAX_PARAGRAPH_CHARS = (
    8_000  # of one paragraph or line; longer ones are split to keep drawing fast
)

_FENCE = re.compile(r"( *)(`{3,}|~{3,})[ \t]*([^`\s]*)[^`]*")
_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*))?")
_RULE = re.compile(r" {0,3}(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})")
_ITEM = re.compile(r"([ \t]*)([-*+]|\d{1,9}[.)])(?:[ \t]+(.*)|$)")
_QUOTE = re.compile(r" {0,3}> ?(.*)")
_DELIMITER = re.compile(
    r" {0,3}\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*"
)

_TEXT = re.compile(
    r"""[ ]* (?: [^\W\d_] | \*\*?[^\W_] | __?[^\W_] | `[^`] | \d+(?:[^\d.)]|[.)]\S) | ["'(\[<$@&!?…“‘„«] )""",
    re.VERBOSE,
)
"""Matches the start of a line that can only be text: no heading, item, rule, quote, fence or table."""


class Block(msgspec.Struct, frozen=True):
    """A block that is drawn as a whole. `head` is a heading's level, an item's marker or a code
    block's language.
    """

    kind: Kind
    lines: tuple[str, ...] = ()
    head: str = ""
    indent: int = 0


_BLANK = Block("blank")
_EMPTY_CODE = Block("code", ("",))


class Blocks:
    """The text so far. Returns finished blocks, and what the rest would be if the text ended now."""

    def __init__(self) -> None:
        self._partial = ""
        self._open: Block | None = None
        self._open_lines: list[str] = []  # of the open block
        self._open_chars = 0
        self._fence = ""
        self._indent = 0
        self._plain_chars = 0  # of the line being read, known to need no cleaning

    def feed(self, text: str) -> list[Block]:
        """Adds text. Returns the blocks that it finished."""
        *whole, self._partial = (self._partial + text).split("\n")
        done: list[Block] = []
        for line in whole:
            if not line and self._open is None:
                done.append(_EMPTY_CODE if self._fence else _BLANK)
            else:
                done += self._split_long(line)
        while len(self._partial) > _MAX_PARAGRAPH_CHARS:
            at = self._partial.rfind(" ", 1, _MAX_PARAGRAPH_CHARS)
            at = _MAX_PARAGRAPH_CHARS if at < 0 else at
            head, self._partial = (
                self._partial[:at],
                self._partial[at:].removeprefix(" "),
            )
            done += self._line(head)
        if (
            self._open is not None
            and self._open.kind != "table"
            and not self._fence
            and self._item(self._partial_line())
        ):
            done += self._finish()  # ended by the item that starts here
        return done

    def open_block(self) -> Block | None:
        """Returns the open paragraph, item or quoted line, if following text can only extend it."""
        line = self._partial_line()
        block = self._open
        if self._fence or (
            block is not None
            and (block.kind == "table" or _may_head_table(self._open_lines[0]))
        ):
            return None
        if block is None:
            if quoted := _QUOTE.fullmatch(line):
                return Block("quote", (quoted[1],))
            return self._item(line) or (
                Block("text", (line.strip(),)) if _starts_text(line) else None
            )
        lines = (
            [*self._open_lines, line.strip()] if _is_text(line) else self._open_lines
        )
        return msgspec.structs.replace(block, lines=tuple(lines))

    def _partial_line(self) -> str:
        return self._cleaned(self._partial)

    def _cleaned(self, line: str) -> str:
        """Removes tabs and control sequences. Of a line that grows, only what is new is looked at."""
        if line[self._plain_chars :].isprintable():
            self._plain_chars = len(line)
            return line
        return clean(line.removesuffix("\r").expandtabs(4))

    def _item(self, line: str) -> Block | None:
        """Returns the item that an unfinished line starts, if that is certain."""
        found = _ITEM.fullmatch(line)
        sure = found is not None and _is_text(found[3] or "")
        return (
            Block("item", (found[3],), head=found[2], indent=len(found[1]))
            if found and sure
            else None
        )

    def rest(self) -> list[Block]:
        """Returns the unfinished blocks as if the text ended here."""
        ahead = copy(self)
        self._open_lines = [*self._open_lines]  # the copy keeps the old list
        return ahead.end()

    def end(self) -> list[Block]:
        """Ends the text. Returns everything left."""
        done = self.feed("\n") if self._partial else []
        if self._fence:
            self._fence = ""
            done.append(Block("close"))
        return [*done, *self._finish()]

    def _split_long(self, line: str) -> list[Block]:
        """Splits a line into parts within the limit, at the same points as a partial line."""
        if len(line) <= _MAX_PARAGRAPH_CHARS:
            return self._line(line)
        done: list[Block] = []
        while len(line) > _MAX_PARAGRAPH_CHARS:
            at = line.rfind(" ", 1, _MAX_PARAGRAPH_CHARS)
            at = _MAX_PARAGRAPH_CHARS if at < 0 else at
            done += self._line(line[:at])
            line = line[at:].removeprefix(" ")
        return [*done, *self._line(line)]

    def _line(self, raw: str) -> list[Block]:
        line = self._cleaned(raw)
        self._plain_chars = 0
        if self._fence:
            return [self._code(line)]
        stripped = line.lstrip(" ")
        if stripped[:1] in ("`", "~") and (found := _FENCE.fullmatch(line)):
            done = self._finish()
            self._indent, self._fence = len(found[1]), found[2]
            return [*done, Block("open", head=found[3])]
        if not stripped or stripped.isspace():
            return [*self._finish(), _BLANK]
        if self._open is None:
            return self._begin(line)
        if self._extends(self._open, line):
            return self._finish() if self._is_long() else []
        return [*self._finish(), *self._begin(line)]

    def _code(self, line: str) -> Block:
        stripped = line.strip()
        if stripped.startswith(self._fence) and not stripped.strip(self._fence[0]):
            self._fence = ""
            return Block("close")
        lead = len(line) - len(line.lstrip(" "))
        return Block("code", (line[min(lead, self._indent) :],))

    def _begin(self, line: str) -> list[Block]:
        """Starts a block with its first line. Headings, rules and quoted lines end with it."""
        if found := _HEADING.fullmatch(line):
            text = _heading_text(found[2]) if found[2] else ""
            return [Block("heading", (text,), head=found[1])]
        if _RULE.fullmatch(line):
            return [Block("rule")]
        if found := _QUOTE.fullmatch(line):
            return [Block("quote", (found[1],))]
        if found := _ITEM.fullmatch(line):
            item = Block("item", head=found[2], indent=len(found[1]))
            self._start(item, found[3] or "")
        else:
            self._start(Block("text"), line.strip())
        return []

    def _start(self, block: Block, line: str) -> None:
        self._open, self._open_lines, self._open_chars = block, [line], len(line)

    def _extends(self, block: Block, line: str) -> bool:
        """Adds the line to the open block if it belongs there. Returns whether it did."""
        kind, text = block.kind, line.strip()
        if kind == "table":
            if "|" not in line:
                return False
        elif (
            kind == "text"
            and len(self._open_lines) == 1
            and _may_head_table(self._open_lines[0])
            and _DELIMITER.fullmatch(line)
        ):
            self._open = msgspec.structs.replace(block, kind="table")
        elif any(
            pattern.fullmatch(line) for pattern in (_HEADING, _RULE, _ITEM, _QUOTE)
        ):
            return False
        elif line.endswith("  "):
            text += "  "  # a hard line break
        self._open_lines.append(text)
        self._open_chars += len(text)
        return True

    def _is_long(self) -> bool:
        block = self._open
        return (
            block is not None
            and block.kind != "table"
            and self._open_chars > _MAX_PARAGRAPH_CHARS
        )

    def _finish(self) -> list[Block]:
        block, self._open = self._open, None
        if block is None:
            return []
        return [msgspec.structs.replace(block, lines=tuple(self._open_lines))]


def _is_text(line: str) -> bool:
    """Returns whether an unfinished line can only be text."""
    return _TEXT.match(line) is not None


def _starts_text(line: str) -> bool:
    """Returns whether the unfinished first line of a block can only be text, and no table header."""
    text = line.strip()
    return (
        _is_text(text)
        and len(text) > _MAX_TABLE_HEAD_CHARS
        and not _may_head_table(text)
    )


def _may_head_table(line: str) -> bool:
    """Returns whether a table may follow. The first bar must come early, so that long text need not
    wait.
    """
    return "|" in line[:_MAX_TABLE_HEAD_CHARS]


def _heading_text(text: str) -> str:
    """A heading without the marks that may end it: `# Name #`."""
    text = text.rstrip(" \t")
    before = text.rstrip("#")
    if before[-1:] in ("", " ", "\t"):
        return before.rstrip(" \t")
    return text

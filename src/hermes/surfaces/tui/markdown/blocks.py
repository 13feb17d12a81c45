"""Cuts Markdown into blocks while it streams in. A block that has ended never changes again.

Only whole lines decide anything, so the same text gives the same blocks however it was cut on its way.
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

_MAX_TABLE_HEAD_CHARS = (
    24  # characters of a table's head within which its first bar comes
)
_MAX_PARAGRAPH_CHARS = 8_000  # characters of one paragraph or line; a longer one is cut, so that no text can hold up the screen

_FENCE = re.compile(r"( *)(`{3,}|~{3,})[ \t]*([^`\s]*)[^`]*")
_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*")
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
"""How a line begins that can become no heading, item, rule, quote, fence or table any more."""


class Block(msgspec.Struct, frozen=True):
    """A piece that is drawn as a whole: `head` is a heading's level, an item's mark or a code block's language."""

    kind: Kind
    lines: tuple[str, ...] = ()
    head: str = ""
    indent: int = 0


class Blocks:
    """The text so far: hands out what has ended, and can tell what the rest would be if it ended now."""

    def __init__(self) -> None:
        self._partial = ""
        self._open: Block | None = None
        self._fence = ""
        self._indent = 0

    def feed(self, text: str) -> list[Block]:
        """Takes more text; the blocks that ended with it."""
        *whole, self._partial = (self._partial + text).split("\n")
        done = [block for line in whole for block in self._long(line)]
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
            and self._item(self._so_far())
        ):
            done += self._finish()  # the item that begins here ends it
        return done

    def begun(self) -> Block | None:
        """The paragraph or item that is being written, when whatever follows can only make it longer."""
        line = self._so_far()
        block = self._open
        if self._fence or (
            block is not None
            and (block.kind not in {"text", "item"} or _heads_table(block.lines[0]))
        ):
            return None
        if block is None:
            return self._item(line) or (
                Block("text", (line.strip(),)) if _begins_text(line) else None
            )
        return (
            msgspec.structs.replace(block, lines=(*block.lines, line.strip()))
            if _goes_on(line)
            else block
        )

    def _so_far(self) -> str:
        return clean(self._partial.removesuffix("\r").expandtabs(4))

    def _item(self, line: str) -> Block | None:
        """The item that a line which is not whole yet begins, if that is certain."""
        found = _ITEM.fullmatch(line)
        sure = found is not None and _goes_on(found[3] or "")
        return (
            Block("item", (found[3],), head=found[2], indent=len(found[1]))
            if found and sure
            else None
        )

    def rest(self) -> list[Block]:
        """What is not finished yet, as if it ended here."""
        ahead = copy(self)
        return ahead.end()

    def end(self) -> list[Block]:
        """The text is over: everything that is left."""
        done = self.feed("\n") if self._partial else []
        if self._fence:
            self._fence = ""
            done.append(Block("close"))
        return [*done, *self._finish()]

    def _long(self, line: str) -> list[Block]:
        """A line in parts that are no longer than the limit, cut where a partial one would have been."""
        done: list[Block] = []
        while len(line) > _MAX_PARAGRAPH_CHARS:
            at = line.rfind(" ", 1, _MAX_PARAGRAPH_CHARS)
            at = _MAX_PARAGRAPH_CHARS if at < 0 else at
            done += self._line(line[:at])
            line = line[at:].removeprefix(" ")
        return [*done, *self._line(line)]

    def _line(self, raw: str) -> list[Block]:
        line = clean(raw.removesuffix("\r").expandtabs(4))
        if self._fence:
            return [self._code(line)]
        if found := _FENCE.fullmatch(line):
            done = self._finish()
            self._indent, self._fence = len(found[1]), found[2]
            return [*done, Block("open", head=found[3])]
        if not line.strip():
            return [*self._finish(), Block("blank")]
        if self._open is not None and self._extends(self._open, line):
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
        """The first line of a block; headings and rules end with it."""
        if found := _HEADING.fullmatch(line):
            return [Block("heading", (found[2] or "",), head=found[1])]
        if _RULE.fullmatch(line):
            return [Block("rule")]
        if found := _ITEM.fullmatch(line):
            self._open = Block(
                "item", (found[3] or "",), head=found[2], indent=len(found[1])
            )
        elif found := _QUOTE.fullmatch(line):
            self._open = Block("quote", (found[1],))
        else:
            self._open = Block("text", (line.strip(),))
        return []

    def _extends(self, block: Block, line: str) -> bool:
        """Adds the line to the open block, if it belongs there."""
        kind, text = block.kind, line.strip()
        if kind == "quote":
            found = _QUOTE.fullmatch(line)
            if found is None:
                return False
            text = found[1]
        elif kind == "table":
            if "|" not in line:
                return False
        elif (
            kind == "text"
            and len(block.lines) == 1
            and _heads_table(block.lines[0])
            and _DELIMITER.fullmatch(line)
        ):
            kind = "table"
        elif any(
            pattern.fullmatch(line) for pattern in (_HEADING, _RULE, _ITEM, _QUOTE)
        ):
            return False
        elif line.endswith("  "):
            text += "  "  # a hard line break
        self._open = msgspec.structs.replace(
            block, kind=kind, lines=(*block.lines, text)
        )
        return True

    def _is_long(self) -> bool:
        block = self._open
        return (
            block is not None
            and block.kind != "table"
            and sum(map(len, block.lines)) > _MAX_PARAGRAPH_CHARS
        )

    def _finish(self) -> list[Block]:
        block, self._open = self._open, None
        return [] if block is None else [block]


def _goes_on(line: str) -> bool:
    """Whether a line that is not whole yet can be nothing but text."""
    return _TEXT.match(line) is not None


def _begins_text(line: str) -> bool:
    """The same for the first line of a block, which might still become a table's head."""
    text = line.strip()
    return (
        _goes_on(text) and len(text) > _MAX_TABLE_HEAD_CHARS and not _heads_table(text)
    )


def _heads_table(line: str) -> bool:
    """Whether a table may follow: its first bar comes early, so that long text need not wait for the line's end."""
    return "|" in line[:_MAX_TABLE_HEAD_CHARS]

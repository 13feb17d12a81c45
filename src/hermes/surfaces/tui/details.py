"""Whole outputs, diffs and thinking, of which the chat shows only a part; Ctrl-O opens them."""

from collections import deque
from collections.abc import Iterator

import msgspec

from hermes.surfaces.terminal.diff_view import diff_rows, diffs_in
from hermes.surfaces.terminal.styled_text import BOLD, DIM, Row
from hermes.surfaces.terminal.text import clean, wrap
from hermes.surfaces.terminal.tool_line import Marks

_MAX_ENTRIES = 200
_MAX_ENTRY_CHARS = 200_000
_ALL_ROWS = 1_000_000
_MAX_THOUGHT_CHARS = 100_000


class DetailEntry(msgspec.Struct, frozen=True):
    """One folded part."""

    title: str
    text: str
    name: str = ""
    """The file that a diff changes."""


class Details:
    """The folded parts of a session, oldest first. Only the newest are kept."""

    def __init__(self) -> None:
        self._entries: deque[DetailEntry] = deque(maxlen=_MAX_ENTRIES)

    def __bool__(self) -> bool:
        return bool(self._entries)

    def add(self, title: str, text: str, name: str = "") -> None:
        """Adds a part. Of a very long one only the end is kept."""
        self._entries.append(DetailEntry(title, text[-_MAX_ENTRY_CHARS:], name))

    def rows(self, columns: int, marks: Marks) -> list[Row]:
        """Returns all parts, each under its title."""
        return [row for entry in self._entries for row in _rows(entry, columns, marks)]


def _rows(entry: DetailEntry, columns: int, marks: Marks) -> Iterator[Row]:
    for line in wrap(entry.title, columns):
        yield ((line, BOLD),)
    if diffs := diffs_in(entry.text):
        yield from diff_rows(diffs, columns, marks, _ALL_ROWS, name=entry.name)
    else:
        text = clean(entry.text).strip("\n") or "(nothing)"
        for line in wrap(text, max(columns - 4, 10)):
            yield ((f"  {marks.bar} ", DIM), (line, ""))
    yield ()


class ReplyThoughts:
    """The thoughts of one reply."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._size = 0
        self._began = self._ended = 0.0

    @property
    def text(self) -> str:
        """All of it; of very long thoughts only the beginning."""
        return "".join(self._parts)

    @property
    def seconds(self) -> float:
        """From the first piece to the last."""
        return self._ended - self._began

    @property
    def last_line(self) -> str:
        """The line that is being written."""
        end = "".join(self._parts[-50:])[-400:]
        return clean(end).strip().rpartition("\n")[2]

    def add(self, text: str, now: float) -> None:
        """Adds a piece."""
        if not self._parts:
            self._began = now
        self._ended = now
        if self._size < _MAX_THOUGHT_CHARS:
            self._parts.append(text)
            self._size += len(text)

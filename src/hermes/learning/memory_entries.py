"""Parses a memory file as people write it: list items, paragraphs, or notes separated by `§`.

Headings and comments stay. Editing one note leaves every other byte of the file as it was.
"""

import re
from collections.abc import Iterator

import msgspec

SEPARATOR = "§"
_ITEM = r"(?:[-*+]|\d{1,3}[.)])[ \t]+"
_HEADING = r"#{1,6}(?:\s|$)|={3,}\s*$|-{3,}\s*$"
_FENCE = r"\s*(?:```|~~~)"


class Note(msgspec.Struct, frozen=True):
    """One note: its lines (`last` excluded) and its text."""

    first: int
    last: int
    text: str


class Notes:
    """The text of a memory file, and its notes."""

    def __init__(self, text: str) -> None:
        self._lines = text.removesuffix("\n").split("\n") if text else []
        self._parted = any(line.strip() == SEPARATOR for line in self._lines)
        self.notes = list(self._find_parted() if self._parted else self._find())

    @property
    def text(self) -> str:
        """The whole file."""
        return "\n".join(self._lines) + "\n" if self._lines else ""

    def find(self, piece: str) -> list[Note]:
        """Returns the notes that contain a text, ignoring whitespace. An exact match is returned alone."""
        wanted = _flat(piece)
        exact = [note for note in self.notes if _flat(note.text) == wanted]
        return exact or [note for note in self.notes if wanted in _flat(note.text)]

    def added(self, text: str) -> "Notes":
        """Returns the file with a new note at the end, in the file's style."""
        lines = [*self._lines]
        while lines and not lines[-1].strip():
            lines.pop()
        if self._parted:
            new = [SEPARATOR, *text.splitlines()] if self.notes else text.splitlines()
        else:
            blank = (
                [""]
                if lines
                and not (
                    self.notes and self.notes[-1].last >= len(lines) and self._is_list
                )
                else []
            )
            new = [*blank, *_item("- ", text)]
        return Notes("\n".join([*lines, *new]))

    def replaced(self, note: Note, text: str) -> "Notes":
        """Returns the file with a note replaced."""
        first = self._lines[note.first]
        mark = re.match(_ITEM, first) if not self._parted else None
        new = _item(mark[0], text) if mark else text.splitlines()
        return Notes(
            "\n".join([*self._lines[: note.first], *new, *self._lines[note.last :]])
        )

    def removed(self, note: Note) -> "Notes":
        """Returns the file without a note, and without the separator or blank line it would leave."""
        before, after = self._lines[: note.first], self._lines[note.last :]
        if self._parted:
            if after and after[0].strip() == SEPARATOR:
                after = after[1:]
            elif before and before[-1].strip() == SEPARATOR:
                before = before[:-1]
        elif before and after and not before[-1].strip() and not after[0].strip():
            after = after[1:]
        return Notes("\n".join([*before, *after]))

    @property
    def _is_list(self) -> bool:
        return re.match(_ITEM, self._lines[self.notes[-1].first]) is not None

    def _find_parted(self) -> Iterator[Note]:
        first = 0
        for number, line in enumerate([*self._lines, SEPARATOR]):
            if line.strip() == SEPARATOR:
                text = "\n".join(self._lines[first:number]).strip()
                if text:
                    yield Note(first, number, text)
                first = number + 1

    def _find(self) -> Iterator[Note]:
        """Finds list items with their indented lines, paragraphs and code blocks."""
        place = self._after_front_matter()
        while place < len(self._lines):
            line = self._lines[place]
            if not line.strip() or re.match(_HEADING, line):
                place += 1
            elif line.lstrip().startswith("<!--"):
                place = self._after_comment(place)
            else:
                last = self._end(place)
                yield Note(place, last, self._text_between(place, last))
                place = last

    def _end(self, first: int) -> int:
        """Returns the line after the note that starts here."""
        fenced = re.match(_FENCE, self._lines[first]) is not None
        place = first + 1
        while place < len(self._lines):
            line = self._lines[place]
            if re.match(_FENCE, line):
                fenced = not fenced
            elif not fenced and (
                not line.strip() or re.match(_ITEM, line) or re.match(_HEADING, line)
            ):
                break
            place += 1
        return place

    def _text_between(self, first: int, last: int) -> str:
        lines = self._lines[first:last]
        mark = re.match(_ITEM, lines[0])
        if not mark:
            return "\n".join(lines)
        indent = len(mark[0])
        rest = [
            line[indent:] if not line[:indent].strip() else line.lstrip()
            for line in lines[1:]
        ]
        return "\n".join([lines[0][indent:], *rest])

    def _after_front_matter(self) -> int:
        if self._lines[:1] != ["---"] or "---" not in self._lines[1:]:
            return 0
        return self._lines.index("---", 1) + 1

    def _after_comment(self, place: int) -> int:
        """Returns the line after a comment. An unclosed one is a single line."""
        ends = (
            number
            for number in range(place, len(self._lines))
            if "-->" in self._lines[number]
        )
        return next(ends, place) + 1


def _item(mark: str, text: str) -> list[str]:
    first, *rest = text.splitlines() or [""]
    return [
        f"{mark}{first}",
        *(f"{' ' * len(mark)}{line}" if line else "" for line in rest),
    ]


def _flat(text: str) -> str:
    return " ".join(text.split()).casefold()

"""Finds the one place that an edit refers to, and computes the new text. Does no I/O.

The old text is searched for exactly; then line by line without trailing whitespace; then with a different but
consistent indentation. Two matching places are an error, unless all are to be replaced.
"""

from collections.abc import Iterator

import msgspec

from hermes.errors import ToolFailed
from hermes.tools.files.indentation import reindent
from hermes.tools.files.nearest_text import nearest

_NOTHING = "Nothing was changed."


class Replacement(msgspec.Struct, frozen=True):
    """New text for the text between two positions."""

    start: int
    end: int
    new: str


class Edit(msgspec.Struct, frozen=True):
    """Replacements in order, in one text."""

    before: str
    replacements: tuple[Replacement, ...]
    how: str = ""
    """How the place was found, if not by an exact match."""

    @property
    def after(self) -> str:
        """Returns the text with all replacements made."""
        pieces: list[str] = []
        place = 0
        for replacement in self.replacements:
            pieces += self.before[place : replacement.start], replacement.new
            place = replacement.end
        return "".join([*pieces, self.before[place:]])


def plan_edit(text: str, old: str, new: str, *, replace_all: bool = False) -> Edit:
    """Computes the replacement of `old` by `new`. Raises ToolFailed unless exactly one place matches, or all are
    wanted."""
    if not old:
        raise ToolFailed(
            "The text to replace is empty.",
            hint=f"{_NOTHING} Use write_file for a new file.",
        )
    if old == new:
        raise ToolFailed("The new text is the same as the old one.", hint=_NOTHING)
    if "\r" not in old and 0 < text.count("\n") == text.count("\r\n"):
        old, new = (
            old.replace("\n", "\r\n"),
            new.replace("\r\n", "\n").replace("\n", "\r\n"),
        )
    places = list(_occurrences(text, old))
    if places:
        found = [Replacement(start, start + len(old), new) for start in places]
        return Edit(text, _chosen(text, found, replace_all=replace_all))
    lines = _Lines(text)
    for how, found in _forgiving(lines, old, new):
        if found:
            return Edit(text, _chosen(text, found, replace_all=replace_all), how)
    raise ToolFailed(
        f"The text to replace was not found.{nearest(lines.lines, old.split(chr(10)))}",
        hint=f"{_NOTHING} Copy the text exactly as it is in the file; read it again if need be.",
    )


def line_of(text: str, place: int) -> int:
    """Returns the number of the line that a position is in."""
    return text.count("\n", 0, place) + 1


class _Lines:
    """A text by lines, without their ends, and where each starts."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.lines = text.split("\n")
        self.bare = [line.rstrip() for line in self.lines]
        self.starts = [0]
        for line in self.lines:
            self.starts.append(self.starts[-1] + len(line) + 1)

    def replacement(
        self, first: int, count: int, new: str, *, with_end: bool
    ) -> Replacement:
        """New text for some lines, with the same line ends; `with_end` also replaces the end of the last one."""
        last = first + count - 1
        end = self.starts[last] + len(self.lines[last])
        if with_end:
            end = min(end + 1, len(self.text))
        else:
            end -= self.lines[last].endswith("\r")
        if all(line.endswith("\r") for line in self.lines[first : last + 1]):
            new = new.replace("\r\n", "\n").replace("\n", "\r\n")
        return Replacement(self.starts[first], end, new)


def _occurrences(text: str, old: str) -> Iterator[int]:
    place = text.find(old)
    while place >= 0:
        yield place
        place = text.find(old, place + 1)


def _chosen(
    text: str, found: list[Replacement], *, replace_all: bool
) -> tuple[Replacement, ...]:
    if len(found) == 1:
        return tuple(found)
    if not replace_all:
        lines = ", ".join(str(line_of(text, place.start)) for place in found[:10]) + (
            ", ..." if found[10:] else ""
        )
        raise ToolFailed(
            f"The text to replace matches {len(found)} places (lines {lines}).",
            hint=f"{_NOTHING} Add lines around it so that it matches only one, or set replace_all.",
        )
    kept: list[Replacement] = []
    for place in found:
        if not kept or place.start >= kept[-1].end:
            kept.append(place)
    return tuple(kept)


def _forgiving(
    lines: _Lines, old: str, new: str
) -> Iterator[tuple[str, list[Replacement]]]:
    with_end = old.endswith("\n")
    wanted = [line.rstrip() for line in (old[:-1] if with_end else old).split("\n")]
    if not any(wanted):
        return
    count = len(wanted)
    same = [
        first
        for first in _windows(lines, wanted)
        if lines.bare[first : first + count] == wanted
    ]
    yield (
        "trailing whitespace differed",
        [lines.replacement(first, count, new, with_end=with_end) for first in same],
    )
    found: list[Replacement] = []
    for first in _windows(lines, wanted):
        indent = reindent(wanted, lines.bare[first : first + count])
        moved = None if indent is None else indent.text(new.split("\n"))
        if moved is not None:
            found.append(
                lines.replacement(first, count, "\n".join(moved), with_end=with_end)
            )
    yield "indentation differed", found


def _windows(lines: _Lines, wanted: list[str]) -> Iterator[int]:
    """The positions of the first line that is not blank, ignoring its indentation."""
    offset = next(index for index, line in enumerate(wanted) if line)
    key = wanted[offset].lstrip()
    for first in range(len(lines.bare) - len(wanted) + 1):
        if lines.bare[first + offset].endswith(key):
            yield first

"""Finding the one place an edit means, and what it makes of the text. Pure.

The text is looked for exactly; then line by line without trailing whitespace; then with all its lines indented more or
less by the same amount. Two places that fit are an error, unless all are to be replaced.
"""

from collections.abc import Iterator

import msgspec

from hermes.errors import ToolFailed

_NOTHING = "Nothing was changed."


class Replacement(msgspec.Struct, frozen=True):
    """Text between two places gives way to other text."""

    start: int
    end: int
    new: str


class Edit(msgspec.Struct, frozen=True):
    """Replacements in order, in one text."""

    before: str
    replacements: tuple[Replacement, ...]
    how: str = ""
    """How the place was found, when not exactly."""

    @property
    def after(self) -> str:
        """The text with everything replaced."""
        pieces: list[str] = []
        place = 0
        for replacement in self.replacements:
            pieces += self.before[place : replacement.start], replacement.new
            place = replacement.end
        return "".join([*pieces, self.before[place:]])


def plan_edit(text: str, old: str, new: str, *, replace_all: bool = False) -> Edit:
    """What replacing `old` with `new` would do. Raises ToolFailed when it is not clear where."""
    if not old:
        raise ToolFailed("old_text is empty.", hint=f"{_NOTHING} Use write_file for a new file.")
    if old == new:
        raise ToolFailed("old_text and new_text are the same.", hint=_NOTHING)
    if "\r" not in old and 0 < text.count("\n") == text.count("\r\n"):
        old, new = old.replace("\n", "\r\n"), new.replace("\r\n", "\n").replace("\n", "\r\n")
    places = list(_occurrences(text, old))
    if places:
        found = [Replacement(start, start + len(old), new) for start in places]
        return Edit(text, _chosen(text, found, replace_all=replace_all))
    lines = _Lines(text)
    for how, found in _forgiving(lines, old, new):
        if found:
            return Edit(text, _chosen(text, found, replace_all=replace_all), how)
    raise ToolFailed(
        f"old_text was not found.{_nearest(lines, old)}",
        hint=f"{_NOTHING} Read the file again and copy the text exactly.",
    )


def line_of(text: str, place: int) -> int:
    """The number of the line a place is in."""
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

    def span(self, first: int, count: int, *, with_end: bool) -> tuple[int, int]:
        """From the start of a line to the end of the last, a carriage return left out unless the line end is in."""
        last = first + count - 1
        end = self.starts[last] + len(self.lines[last])
        if with_end:
            return self.starts[first], min(end + 1, len(self.text))
        return self.starts[first], end - self.lines[last].endswith("\r")


def _occurrences(text: str, old: str) -> Iterator[int]:
    place = text.find(old)
    while place >= 0:
        yield place
        place = text.find(old, place + 1)


def _chosen(text: str, found: list[Replacement], *, replace_all: bool) -> tuple[Replacement, ...]:
    if len(found) == 1:
        return tuple(found)
    if not replace_all:
        lines = ", ".join(str(line_of(text, place.start)) for place in found[:10]) + (", ..." if found[10:] else "")
        raise ToolFailed(
            f"old_text fits {len(found)} places (lines {lines}).",
            hint=f"{_NOTHING} Add lines around it so that it fits one, or set replace_all.",
        )
    kept: list[Replacement] = []
    for place in found:
        if not kept or place.start >= kept[-1].end:
            kept.append(place)
    return tuple(kept)


def _forgiving(lines: _Lines, old: str, new: str) -> Iterator[tuple[str, list[Replacement]]]:
    with_end = old.endswith("\n")
    wanted = [line.rstrip() for line in (old[:-1] if with_end else old).split("\n")]
    if not any(wanted):
        return
    count = len(wanted)
    same = [first for first in _windows(lines, wanted) if lines.bare[first : first + count] == wanted]
    yield (
        "trailing whitespace differed",
        [Replacement(*lines.span(first, count, with_end=with_end), new) for first in same],
    )
    found: list[Replacement] = []
    for first in _windows(lines, wanted):
        shift = _shift(wanted, lines.bare[first : first + count])
        moved = None if shift is None else _shifted(new, *shift)
        if moved is not None:
            found.append(Replacement(*lines.span(first, count, with_end=with_end), moved))
    yield "indentation differed", found


def _windows(lines: _Lines, wanted: list[str]) -> Iterator[int]:
    """Where the first line that is not blank, apart from its indentation, is in the text."""
    offset = next(index for index, line in enumerate(wanted) if line)
    key = wanted[offset].lstrip()
    for first in range(len(lines.bare) - len(wanted) + 1):
        if lines.bare[first + offset].endswith(key):
            yield first


def _shift(wanted: list[str], actual: list[str]) -> tuple[str, str] | None:
    """What to take from and add to the indentation of every wanted line to get the actual ones, if one answer fits."""
    shifts: set[tuple[str, str]] = set()
    for want, have in zip(wanted, actual, strict=True):
        if want.lstrip() != have.lstrip():
            return None
        if want:
            more, less = len(have) - len(want), len(want) - len(have)
            shifts.add((want[: max(0, less)], have[: max(0, more)]))
    taken, added = next(iter(shifts))
    fits = all((added + want[len(taken) :]) == have for want, have in zip(wanted, actual, strict=True) if want)
    return (taken, added) if len(shifts) == 1 and fits else None


def _shifted(new: str, taken: str, added: str) -> str | None:
    lines = new.split("\n")
    if any(line.strip() and not line.startswith(taken) for line in lines):
        return None
    return "\n".join(added + line[len(taken) :] if line.strip() else line for line in lines)


def _nearest(lines: _Lines, old: str) -> str:
    """Where its longest line is, if it is somewhere."""
    longest = max(old.split("\n"), key=lambda line: len(line.strip())).strip()
    places = [number for number, line in enumerate(lines.bare, 1) if longest and longest in line]
    return f" Its line {longest[:80]!r} is line {places[0]} of the file." if len(places) == 1 else ""

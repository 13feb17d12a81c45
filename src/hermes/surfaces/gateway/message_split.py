"""Splits long Markdown into messages of a platform's size, without breaking code blocks.

A code block that does not fit is closed at the split and opened again, with its language,
in the next message. Blanks at a split are dropped; everything else stays as it is.
"""

import re
from collections.abc import Callable

_FENCE = re.compile(
    r"^(?P<indent> {0,3})(?P<marks>`{3,20}(?!`)|~{3,20}(?!~))(?P<info>[^\n`]*)$"
)
_MAX_CANDIDATES = 20
_MAX_OPENER_CHARACTERS = 80


def split(text: str, most: int, size: Callable[[str], int] = len) -> list[str]:
    """The text in pieces of at most `most`, as `size` counts, none of them empty."""
    pieces: list[str] = []
    rest, opener = text.strip("\n"), ""
    while rest.strip():
        whole = opener + rest
        if size(whole) <= most:
            pieces.append(whole)
            break
        cut, opened = _cut(rest, opener, most, size)
        head = rest[:cut].rstrip("\n") if opened else rest[:cut].rstrip()
        if head.strip():
            pieces.append(opener + head + (f"\n{_closer(opened)}" if opened else ""))
        rest = rest[cut:].lstrip("\n") if not opened else rest[cut:].removeprefix("\n")
        opener = opened
    return [piece for piece in pieces if piece.strip()]


def _cut(
    rest: str, opener: str, most: int, size: Callable[[str], int]
) -> tuple[int, str]:
    """Where to split, and the opening line of the code block that is open there, if any."""
    room = _prefix(rest, most - size(opener), size)
    for places in (_paragraphs, _lines, _words):
        for place in places(rest, room):
            opened = open_fence(opener + rest[:place])
            ending = f"\n{_closer(opened)}" if opened else ""
            if (
                size(opener + rest[:place].rstrip("\n") + ending) <= most
                and rest[:place].strip()
            ):
                return place, opened
    opened = open_fence(opener + rest[:room])
    tight = most - size(opener) - (size(_closer(opened)) + 1 if opened else 0)
    return max(1, _prefix(rest, max(tight, 1), size)), opened


def open_fence(text: str) -> str:
    """The opening line of the code block that is open at the end of a text; empty for none."""
    opened = ""
    marks = ""
    for line in text.split("\n"):
        found = _FENCE.match(line)
        if not found:
            continue
        if not marks:
            marks, opened = (
                found["marks"],
                f"{found['indent']}{found['marks']}{found['info'].rstrip()}\n",
            )
        elif (
            found["marks"][0] == marks[0]
            and len(found["marks"]) >= len(marks)
            and not found["info"].strip()
        ):
            marks = opened = ""
    return opened if len(opened) <= _MAX_OPENER_CHARACTERS else f"{marks}\n"


def _closer(opened: str) -> str:
    found = _FENCE.match(opened.rstrip("\n"))
    return f"{found['indent']}{found['marks']}" if found else "```"


def _prefix(text: str, most: int, size: Callable[[str], int]) -> int:
    """How many characters of the text fit."""
    low, high = 0, min(len(text), max(most, 0))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if size(text[:middle]) <= most else (low, middle - 1)
    return low


def _paragraphs(text: str, room: int) -> list[int]:
    """Positions after an empty line, not too near the beginning."""
    return _ends(text, room, "\n\n", room // 3)


def _lines(text: str, room: int) -> list[int]:
    return _ends(text, room, "\n", room // 5)


def _words(text: str, room: int) -> list[int]:
    return _ends(text, room, " ", room // 2)


def _ends(text: str, room: int, mark: str, least: int) -> list[int]:
    """The positions after `mark`, the last one first."""
    found: list[int] = []
    end = room
    while (
        len(found) < _MAX_CANDIDATES
        and (place := text.rfind(mark, 0, end)) >= least
        and place > 0
    ):
        found.append(place + (1 if mark == " " else len(mark)))
        end = place
    return found

"""Finds the lines of a file that are most similar to a text that was not found in it, to show them in the error. Pure."""

from collections import Counter
from collections.abc import Sequence

_MAX_SHOWN_LINES = 8
_MAX_NEAREST_LINE_CHARACTERS = 160
_MAX_SCANNED_LINES = 5000
"""How many lines of a file are compared one by one if no line is identical."""
_MAX_OCCURRENCES = 50
"""A line that occurs more often does not identify a place."""


def nearest(lines: Sequence[str], wanted: Sequence[str]) -> str:
    """A sentence with the nearest lines and their numbers; empty if nothing is similar."""
    lines = (
        lines[:-1] if lines and not lines[-1] else lines
    )  # there is no line after the last line end
    wanted = wanted[:-1] if len(wanted) > 1 and not wanted[-1].strip() else wanted
    first = _best_start(lines, wanted)
    if first is None:
        return ""
    last = min(first + min(len(wanted), _MAX_SHOWN_LINES), len(lines))
    shown = [
        f"{number + 1}: {lines[number].rstrip()[:_MAX_NEAREST_LINE_CHARACTERS]}"
        for number in range(first, last)
    ]
    return "\nThe nearest text in the file is:\n" + "\n".join(shown) + "\n"


def _best_start(lines: Sequence[str], wanted: Sequence[str]) -> int | None:
    """Where the wanted lines would begin: where most of them are, else where a line similar to the longest is."""
    places: dict[str, list[int]] = {}
    sought = {line.strip() for line in wanted if line.strip()}
    for number, line in enumerate(lines):
        bare = line.strip()
        if bare in sought:
            places.setdefault(bare, []).append(number)
    votes: Counter[int] = Counter()
    for index, line in enumerate(wanted):
        found = places.get(line.strip(), [])
        if len(found) <= _MAX_OCCURRENCES:
            for number in found:
                votes[max(0, number - index)] += len(line.strip())
    if votes:
        return max(votes, key=lambda place: (votes[place], -place))
    return _alike(lines, wanted)


def _alike(lines: Sequence[str], wanted: Sequence[str]) -> int | None:
    from difflib import get_close_matches

    index = max(
        range(len(wanted)), key=lambda number: len(wanted[number].strip()), default=0
    )
    longest = wanted[index].strip()[:_MAX_NEAREST_LINE_CHARACTERS] if wanted else ""
    if len(longest) < 3:
        return None
    bare = [
        line.strip()[:_MAX_NEAREST_LINE_CHARACTERS]
        for line in lines[:_MAX_SCANNED_LINES]
    ]
    inside = [number for number, line in enumerate(lines) if longest in line]
    if inside:
        return max(0, inside[0] - index)
    close = get_close_matches(longest, bare, 1, 0.6)
    if close:
        return max(0, bare.index(close[0]) - index)
    return None

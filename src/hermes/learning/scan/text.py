"""Whether a text carries instructions that its reader did not ask for."""

from itertools import pairwise

from hermes.learning.scan.disguise import hidden, readings
from hermes.learning.scan.phrases import phrases

_MAX_HINT_DISTANCE_CHARS = 300  # characters between two hints that belong together
_MAX_HINTS_PER_KIND = 50  # hints of one kind that are looked at


def scan(text: str) -> str:
    """What in the text looks like an injected instruction; empty when nothing does."""
    if found := hidden(text):
        return found
    for reading in readings(text):
        if found := _judge(reading):
            return found
    return ""


def _judge(reading: str) -> str:
    hints: list[tuple[int, int, str]] = []
    for phrase in phrases():
        if phrase.strong:
            if phrase.pattern.search(reading):
                return phrase.kind
            continue
        for number, found in enumerate(phrase.pattern.finditer(reading)):
            if number >= _MAX_HINTS_PER_KIND:
                break
            hints.append((found.start(), found.end(), phrase.kind))
    hints.sort()
    for (_, end, one), (start, _, two) in pairwise(hints):
        if one != two and start - end < _MAX_HINT_DISTANCE_CHARS:
            return f"{one} and {two}"
    return ""

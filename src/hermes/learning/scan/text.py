"""Detects injected instructions in a text."""

from itertools import pairwise

from hermes.learning.scan.disguise import hidden, readings
from hermes.learning.scan.phrases import phrases

_MAX_HINT_DISTANCE_CHARS = 300  # between two hints that count as a pair
_MAX_HINTS_PER_KIND = 50  # examined


def scan(text: str) -> str:
    """Returns what in the text looks like an injected instruction; empty if nothing does."""
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

"""Detects injected instructions in a text."""

from collections.abc import Iterable
from itertools import pairwise

from hermes.learning.scan.disguise import hidden, readings
from hermes.learning.scan.phrases import phrases
from hermes.learning.scan.prefixes import SearchedText

_MAX_HINT_DISTANCE_CHARS = 300  # between two hints that count as a pair
_MAX_HINTS_PER_KIND = 50  # examined


def scan(text: str) -> str:
    """Returns what in the text looks like an injected instruction; empty if nothing does."""
    return hidden(text) or scan_readings(map(SearchedText, readings(text)))


def scan_readings(texts: Iterable[SearchedText]) -> str:
    """Returns what in the readings of a text looks like an injected instruction; empty if nothing does."""
    return next((found for reading in texts if (found := _judge(reading))), "")


def _judge(reading: SearchedText) -> str:
    hints: list[tuple[int, int, str]] = []
    for phrase in phrases():
        if phrase.strong:
            if reading.search(phrase.pattern):
                return phrase.kind
            continue
        for number, found in enumerate(reading.finditer(phrase.pattern)):
            if number >= _MAX_HINTS_PER_KIND:
                break
            hints.append((found.start(), found.end(), phrase.kind))
    hints.sort()
    for (_, end, one), (start, _, two) in pairwise(hints):
        if one != two and start - end < _MAX_HINT_DISTANCE_CHARS:
            return f"{one} and {two}"
    return ""

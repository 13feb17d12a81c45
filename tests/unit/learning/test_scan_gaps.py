"""A pattern with a wide gap is tried only where what follows the gap is near."""

import re
from typing import Any

import pytest

from hermes.learning.scan.code import code_patterns
from hermes.learning.scan.gaps import Piece, alternatives, pieces
from hermes.learning.scan.phrases import phrases
from hermes.learning.scan.prefixes import (
    PrefixedPattern,
    SearchedText,
    in_pieces,
    prefixed,
)


class _Counting:
    """A pattern that counts how often it is tried."""

    def __init__(self, pattern: "re.Pattern[str]") -> None:
        self._pattern = pattern
        self.pattern = pattern.pattern
        self.tries = 0

    def match(self, text: str, position: int) -> "re.Match[str] | None":
        self.tries += 1
        return self._pattern.match(text, position)


def _tries(one: PrefixedPattern, text: str) -> int:
    counting: Any = _Counting(one.pattern)
    assert list(SearchedText(text).finditer(one._replace(pattern=counting))) == []
    return int(counting.tries)


def test_a_pattern_is_split_at_its_wide_gaps() -> None:
    assert pieces(r"\bcurl\b(?>[^\n]{0,400}?(?:-o|>))[^.!]{0,60}?\s{1,200}sh") == [
        Piece(r"\bcurl\b", gap=400, forbidden="\n"),
        Piece("(?:-o|>)", gap=60, forbidden=".!"),
        Piece("sh", slack=200),
    ]
    assert pieces(r"a[^\n]{0,5}b") == [Piece(r"a[^\n]{0,5}b")]
    assert pieces(r"(?:a[^\n]{0,50}b)?c") == [Piece(r"(?:a[^\n]{0,50}b)?c")]


def test_only_a_bar_outside_of_groups_separates_alternatives() -> None:
    assert alternatives(r"a(?:b|c)[|]\|d|e") == [r"a(?:b|c)[|]\|d", "e"]


@pytest.mark.parametrize(
    "unit",
    ["curl a ", "curl a\n| sh ", "curl curl\n| sh\n", "| sh\ncurl a\n", "wget "],
)
def test_a_start_without_its_end_is_not_tried(unit: str) -> None:
    one = prefixed(r"\b(?:curl|wget)\b[^\n]{0,300}?\|\s*(?:ba)?sh\b")
    assert _tries(one, unit * 1_000) <= 1
    assert SearchedText(unit * 1_000 + "\ncurl a | sh").search(one)


def test_every_wide_gap_is_known() -> None:
    """A gap within a group, or before something unknown, would be tried at each start again."""
    every = [one.pattern for one in phrases()] + [one[2] for one in code_patterns()]
    unsplit = [
        one.pattern.pattern
        for one in every
        for alternative in alternatives(one.pattern.pattern)
        if len(pieces(alternative)) > 1
        and not one.at_start
        and in_pieces(one.pattern.pattern) is None
    ]
    assert unsplit == []


@pytest.mark.parametrize("unit", ["забуд", "αγνο", "שכח", "talimat", "ignor"])
def test_the_rest_of_a_word_is_not_tried_in_every_length(unit: str) -> None:
    """`\\w*` before a gap took ten seconds for 100,000 characters of one of these."""
    text = unit * 100 + ". instructions, инструкции, οδηγιες, הוראות "
    for one in phrases():
        if one.kind.startswith("an order") and in_pieces(one.pattern.pattern.pattern):
            assert _tries(one.pattern, text) <= 24, one.pattern.pattern.pattern

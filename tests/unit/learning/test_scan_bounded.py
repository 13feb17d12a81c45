"""Bounded patterns: every repetition has an end, and means the same up to there."""

import pytest

from hermes.learning.scan.prefixes import bounded


@pytest.mark.parametrize(
    ("source", "made"),
    [
        (r"a*b+", "a{0,200}b{1,200}"),
        (r"(?:ab)*?c", "(?:ab){0,12}?c"),
        (r"[*+]\*\+", r"[*+]\*\+"),
        (r"[]*]+[^]+]*", "[]*]{1,200}[^]+]{0,200}"),
        (r"a++b{0,4}+", "a{1,200}+b{0,4}+"),
    ],
)
def test_each_repetition_gets_a_bound(source: str, made: str) -> None:
    assert bounded(source).pattern == made

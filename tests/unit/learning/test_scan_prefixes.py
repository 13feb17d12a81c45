"""Searching by prefixes finds exactly what `re` finds."""

import random
from pathlib import Path

import pytest

from hermes.learning.scan.code import code_patterns
from hermes.learning.scan.phrases import phrases
from hermes.learning.scan.prefixes import PrefixedPattern, SearchedText, prefixed

_GLUE = (" ", " ", " ", "\n", ". ", ": ", "/", "'", " the ", " | ", "(", "-", "")


def _all_patterns() -> list[PrefixedPattern]:
    return [one.pattern for one in phrases()] + [one[2] for one in code_patterns()]


def _assert_same_matches(text: str) -> int:
    searched, count = SearchedText(text), 0
    for one in _all_patterns():
        expected = [found.span() for found in one.pattern.finditer(text)]
        assert [found.span() for found in searched.finditer(one)] == expected
        first = searched.search(one)
        assert (first and first.span()) == (expected[0] if expected else None)
        count += len(expected)
    return count


@pytest.mark.parametrize(
    ("source", "prefixes", "at_start"),
    [
        (r"\b(?:send|mail)\b", ("mail", "send"), False),
        (r"(?:ba|z)?sh\s", ("bash", "sh", "zsh"), False),
        (r"(?:^|\n)\W{0,4}assistant", ("\n",), True),
        (r"['\"]x|<\s*y", ('"x', "'x", "<"), False),
        (r"(?!no)ab{2,}c", ("ab",), False),
        (r"\w+@", None, False),
        (r"a?", None, False),
        (r"(?i)ab", None, False),
    ],
)
def test_what_a_match_can_begin_with_is_known(
    source: str, prefixes: tuple[str, ...] | None, at_start: bool
) -> None:
    found = prefixed(source)
    assert (found.prefixes, found.at_start) == (prefixes, at_start)


def test_every_pattern_has_prefixes() -> None:
    slow = [one.pattern.pattern for one in _all_patterns() if one.prefixes is None]
    assert slow == []


@pytest.mark.parametrize("seed", range(12))
def test_generated_texts_have_the_same_matches(seed: int) -> None:
    """Texts of the words that the patterns are made of, so that many match."""
    source = random.Random(seed)
    words = sorted(
        {
            word
            for one in _all_patterns()
            for word in one.pattern.pattern.replace("\\b", " ")
            .replace("\\", "")
            .replace("|", " ")
            .replace("(?:", " ")
            .replace(")", " ")
            .replace("?", " ")
            .split()
        }
    )
    parts = (source.choice(words) + source.choice(_GLUE) for _ in range(1_500))
    assert _assert_same_matches("".join(parts)) > 5


@pytest.mark.parametrize("name", ["test_scan_text.py", "test_scan_code.py"])
def test_known_attacks_have_the_same_matches(name: str) -> None:
    text = Path(__file__).with_name(name).read_text(encoding="utf-8").casefold()
    assert _assert_same_matches(text) > 20

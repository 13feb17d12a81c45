"""Patterns that are compiled when they are first used."""

import re

import pytest

from hermes.primitives.lazy_pattern import lazy_pattern


def test_a_lazy_pattern_finds_what_a_compiled_one_finds() -> None:
    pattern = lazy_pattern(r"(\w+)=(\d+)", re.IGNORECASE)
    assert pattern.findall("a=1 b=2") == [("a", "1"), ("b", "2")]
    assert pattern.sub("x", "a=1 b=2") == "x x"
    assert pattern.fullmatch("a=1 b=2") is None
    assert pattern.pattern == r"(\w+)=(\d+)"


def test_a_lazy_pattern_takes_bytes() -> None:
    found = lazy_pattern(rb"[0-9]+").search(b"ab 12")
    assert found is not None
    assert found[0] == b"12"


def test_a_broken_pattern_fails_at_its_first_use_and_not_before() -> None:
    pattern = lazy_pattern("(")
    with pytest.raises(re.error, match="unterminated"):
        pattern.search("")

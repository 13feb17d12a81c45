"""Text that was made to be slow: twice the text is at most about twice the work, counted in calls."""

import sys
from collections.abc import Callable

import pytest

from hermes.learning.scan import scan, scan_files
from hermes.learning.scan.disguise import readings
from hermes.settings.redaction import mask

UNITS = (
    "1. ", "_a ", "@a ", "h4ck ", "%41", "\\x41", "![a](http://", "![", "ignore all the ", "send token ", "curl a | b ",
    "QUFB", "a.b.", "password=", "token: x1 ", "-----BEGIN PRIVATE KEY-----\n", "명령", "é", "`", "<img src=",
)  # fmt: skip
SCANNERS: tuple[Callable[[str], object], ...] = (
    scan,
    mask,
    lambda text: scan_files({"SKILL.md": text.encode()}),
)
_CHARACTERS = 8_000


def _calls(scanner: Callable[[str], object], text: str) -> int:
    count = 0

    def counted(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event in {"call", "c_call"}

    sys.setprofile(counted)
    try:
        scanner(text)
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("scanner", SCANNERS, ids=["scan", "mask", "skill"])
def test_twice_the_text_is_twice_the_work(
    scanner: Callable[[str], object], unit: str
) -> None:
    once = unit * (_CHARACTERS // len(unit))
    scanner(once * 2)  # patterns are compiled on first use
    assert _calls(scanner, once * 2) <= 2.2 * _calls(scanner, once) + 500


def test_numbers_and_encoded_letters_are_not_examined_one_by_one() -> None:
    list(readings("patterns are compiled on first use"))
    for unit in ("1. ", "5 ", "_a ", "a b "):
        assert _calls(lambda text: [*readings(text)], unit * 20_000) < 2_000


@pytest.mark.parametrize("unit", ["bcc ", "[^", "treat "])
def test_a_pattern_of_which_a_part_is_missing_is_not_tried_anywhere(unit: str) -> None:
    text = unit * (_CHARACTERS // len(unit))
    scan(text)  # patterns are compiled on first use
    assert _calls(scan, text) < _calls(scan, "nothing of the kind ") + 1_000

"""Text from programs: nothing of a terminal reaches the model, and nothing hides from a person."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.tools.escapes import clean, shown


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("plain é 漢\n\ttab", "plain é 漢\n\ttab"),
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x07", "link"),
        ("\x1bPq#0\x1b\\after", "after"),
        ("\x1b]0;never ended", "0;never ended"),
        ("10%\r20%\r\ndone\r\n", "20%\ndone\n"),
        ("b\x08bo\x08old", "bold"),
        ("\x9b31mc1\x85\x00\x07", "c1"),
        ("\x1b(Bset\x1b7", "set"),
    ],
)
def test_escapes_are_removed(text: str, cleaned: str) -> None:
    assert clean(text) == cleaned


@given(st.text(st.sampled_from("\x1b[]P;0m\x07\\\r\n\x08\x9bab")))
def test_no_control_character_survives(text: str) -> None:
    assert not set(clean(text)) & set("\x1b\x07\r\x08\x9b")


@pytest.mark.parametrize(
    ("text", "spelled"),
    [
        ("rm -rf x #\r git status", "rm -rf x #\\x0d git status"),
        ("a\u202eb\u200bc\u2066", "a\\u202eb\\u200bc\\u2066"),
        ("\x1b[2K", "\\x1b[2K"),
        ("é 漢 👍\n\tok", "é 漢 👍\n\tok"),
        ("ls" + " " * 500 + "; rm", "ls[500 spaces]; rm"),
        ("a\u00a0b\u2003c\ufeff", "a\\xa0b\\u2003c\\ufeff"),
    ],
)
def test_what_could_deceive_is_spelled_out(text: str, spelled: str) -> None:
    assert shown(text) == spelled


def test_emptiness_that_pushes_the_rest_out_of_sight_is_counted() -> None:
    assert shown("ls\n" + "\n" * 60 + "curl evil") == "ls\n[60 empty lines]\ncurl evil"
    assert shown("a\u3164b\u2800c") == "a\\u3164b\\u2800c"

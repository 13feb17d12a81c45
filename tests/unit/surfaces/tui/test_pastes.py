"""What is pasted into the input."""

import pytest

from hermes.surfaces.tui.pastes import Pastes

LONG = "\n".join(f"line {number}" for number in range(120))


def test_a_long_text_is_folded_and_sent_whole() -> None:
    pastes = Pastes()
    mark = pastes.insert(LONG)
    assert mark == "[pasted 120 lines]"
    assert pastes.expand(f"see {mark}!") == f"see {LONG}!"


def test_each_paste_has_a_mark_of_its_own() -> None:
    pastes = Pastes()
    assert [pastes.insert(LONG), pastes.insert(LONG.upper())] == [
        "[pasted 120 lines]",
        "[pasted 120 lines #2]",
    ]
    assert pastes.expand("[pasted 120 lines #2]") == LONG.upper()


def test_a_short_text_stays_and_line_ends_are_made_one() -> None:
    assert Pastes().insert("a\r\nb\rc") == "a\nb\nc"


def test_one_very_long_line_is_folded() -> None:
    assert Pastes().insert("x" * 5000) == "[pasted 5,000 characters]"


def test_what_was_sent_is_forgotten() -> None:
    pastes = Pastes()
    mark = pastes.insert(LONG)
    pastes.clear()
    assert pastes.expand(mark) == mark


@pytest.mark.parametrize(
    "text", ["/nowhere/shot.png", "see this.png", "shot.png", "'/unclosed.png"]
)
def test_text_that_names_no_picture_is_text(text: str) -> None:
    pastes = Pastes()
    assert pastes.insert(text) == text
    assert pastes.pictures(text) == ()

"""Taking one piece out of a text in which its neighbours changed since."""

from hermes.learning.history import without


def test_a_line_is_taken_out_from_between_newer_ones() -> None:
    assert without(b"- new\n- a\n- b\n", b"", b"- a\n") == b"- new\n- b\n"


def test_a_replaced_line_comes_back() -> None:
    assert (
        without(b"- x\n- coffee\n- y\n", b"- tea\n", b"- coffee\n")
        == b"- x\n- tea\n- y\n"
    )


def test_a_removed_line_comes_back_behind_its_neighbour() -> None:
    assert without(b"- a\n- c\n", b"- a\n- b\n", b"- a\n") == b"- a\n- b\n- c\n"


def test_what_is_gone_or_there_twice_is_not_guessed() -> None:
    assert without(b"- z\n", b"", b"- a\n") is None
    assert without(b"- a\n- a\n", b"", b"- a\n") is None
    assert without(b"- z\n", b"- b\n", b"") is None

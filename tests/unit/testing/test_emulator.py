"""The small terminal that tests look at."""

import pytest

from hermes.testing.emulator import Emulator


def seen(*pieces: str, columns: int = 10, rows: int = 4) -> Emulator:
    emulator = Emulator(columns, rows)
    for piece in pieces:
        emulator.feed(piece.encode())
    return emulator


def test_text_wraps_and_scrolls_away() -> None:
    assert seen("one two three\r\nfour\r\nfive\r\nsix\r\nseven").lines == [
        "one two th",
        "ree",
        "four",
        "five",
        "six",
        "seven",
    ]


def test_a_row_is_drawn_over_and_erased() -> None:
    assert seen("old text\rnew\x1b[K").text == "new"
    assert seen("a\r\nb\r\nc\x1b[2A\r\x1b[J!").text == "!"


def test_the_cursor_can_not_move_into_what_scrolled_away() -> None:
    assert seen("1\r\n2\r\n3\r\n4\r\n5", "\x1b[9A\rX").lines == [
        "1",
        "X",
        "3",
        "4",
        "5",
    ]


def test_codes_and_characters_may_be_cut_anywhere() -> None:
    emulator = Emulator(10, 4)
    for byte in "\x1b[31mrö\x1b[0m\x1b]0;title\x07t".encode():
        emulator.feed(bytes([byte]))
    assert emulator.text == "röt"


def test_a_narrower_window_breaks_rows_and_keeps_the_cursor() -> None:
    emulator = seen("abcdefgh\r\nxy")
    emulator.resize(5, 4)
    assert emulator.lines == ["abcde", "fgh", "xy"]
    emulator.feed(b"\x1b[2A\rZ")
    assert emulator.lines == ["Zbcde", "fgh", "xy"]


def test_wide_characters_take_two_cells() -> None:
    assert seen("日本語日本語").lines == ["日本語日本", "語"]
    assert seen("日本\b\b!").lines == ["日!"]


@pytest.mark.parametrize(
    ("codes", "lines"),
    [
        ("\x1b[2A\r\x1b[L", ["a", "b", "", "c", "d"]),
        ("\x1b[2A\r\x1b[2Lx", ["a", "b", "x", "", "c"]),
        ("\x1b[2A\r\x1b[9M", ["a", "b"]),
        ("\x1b[1A\r\x1b[M", ["a", "b", "c", "e"]),
    ],
)
def test_rows_are_inserted_and_deleted_inside_the_window(
    codes: str, lines: list[str]
) -> None:
    screen = Emulator(10, 3)
    screen.feed(b"a\r\nb\r\nc\r\nd\r\ne" + codes.encode())
    assert screen.text.split("\n") == lines

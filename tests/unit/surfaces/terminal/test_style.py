"""Colour only where it is wanted; nothing in a value can drive the terminal."""

import io

import pytest

from hermes.surfaces.terminal.style import (
    FAIL,
    OK,
    Style,
    columns,
    hanging,
    printable,
    wants_color,
)


class Terminal(io.StringIO):
    def __init__(self, *, tty: bool) -> None:
        super().__init__()
        self.tty = tty

    # pyrefly: ignore[missing-override-decorator]
    def isatty(self) -> bool:
        return self.tty


@pytest.mark.parametrize(
    ("tty", "environ", "color", "wanted"),
    [
        (True, {}, "auto", True),
        (False, {}, "auto", False),
        (True, {"NO_COLOR": "1"}, "auto", False),
        (True, {"NO_COLOR": ""}, "auto", True),
        (True, {"TERM": "dumb"}, "auto", False),
        (True, {}, "never", False),
        (False, {"NO_COLOR": "1"}, "always", True),
    ],
)
def test_colour_follows_the_setting_then_the_terminal(
    *, tty: bool, environ: dict[str, str], color: str, wanted: bool
) -> None:
    assert wants_color(Terminal(tty=tty), environ, color) is wanted


def test_a_style_that_is_off_changes_nothing() -> None:
    off, on = Style(enabled=False), Style(enabled=True)
    assert [
        off.bold("x"),
        off.dim("x"),
        off.red("x"),
        off.green("x"),
        off.yellow("x"),
        off.status(OK),
    ] == [
        *"xxxxx",
        "ok  ",
    ]
    assert on.status(FAIL) == "\x1b[31mfail\x1b[0m"
    assert on.bold("") == ""


def test_control_characters_become_visible() -> None:
    assert (
        printable("plain ✓ 天气\n\x1b[31mred\x07\r\u202e")
        == "plain ✓ 天气\n\\x1b[31mred\\x07\\r\\u202e"
    )


def test_columns_line_up() -> None:
    assert columns([("a", "bbb", ""), ("aaa", "b", "c")]) == [
        "  a    bbb",
        "  aaa  b    c",
    ]


def test_long_text_is_broken_between_words_only_in_a_terminal() -> None:
    text = "word " * 30
    broken = hanging(text, Terminal(tty=True), 10).split("\n")
    assert len(broken) == 3
    assert all(len(line) <= 80 for line in broken)
    assert all(line.startswith(" " * 10 + "word") for line in broken[1:])
    assert hanging(text, Terminal(tty=False), 10) == text


def test_one_long_cell_does_not_widen_the_other_rows() -> None:
    assert (
        columns([("a", "x" * 300, "file"), ("b", "yy", "file")])[1] == "  b  yy  file"
    )

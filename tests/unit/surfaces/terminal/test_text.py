"""Text of `hermes sessions`: harmless, and never wider than the screen."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.surfaces.terminal.text import (
    ago,
    clean,
    count,
    cut,
    moment,
    money,
    one_line,
    table,
    width,
    wrap,
)

_DAY = 86400.0


def test_escapes_and_control_characters_are_made_visible() -> None:
    assert clean("a\x1b[31mb\x07\x9b\u202e") == r"a\x1b[31mb\x07\x9b\u202e"


def test_line_breaks_stay_and_tabs_become_spaces() -> None:
    assert clean("a\r\n\tb") == "a\n    b"


def test_joined_emoji_stay_whole() -> None:
    assert clean("👩\u200d🚀\x00") == "👩\u200d🚀\\x00"


def test_wide_characters_take_two_cells_and_combining_ones_none() -> None:
    assert [width(text) for text in ("abc", "中文", "e\u0301", "🚀")] == [3, 4, 1, 2]


@pytest.mark.parametrize(
    ("text", "columns", "expected"),
    [
        ("abc", 3, "abc"),
        ("abcd", 3, "ab…"),
        ("中文字", 5, "中文…"),
        ("中文字", 4, "中…"),
        ("ab", 1, "…"),
        ("ab", 0, ""),
    ],
)
def test_a_cut_text_fits_and_says_that_it_was_cut(
    text: str, columns: int, expected: str
) -> None:
    assert cut(text, columns) == expected


def test_lines_break_at_spaces_keep_their_indentation_and_break_long_words() -> None:
    assert list(wrap("  one two three", 9)) == ["  one two", "three"]
    assert list(wrap("abcdefgh", 3)) == ["abc", "def", "gh"]
    assert list(wrap("中文字符", 5)) == ["中文", "字符"]
    assert list(wrap("a\n\nb", 5)) == ["a", "", "b"]
    assert list(wrap("甲、Google、乙", 8)) == ["甲、", "Google、", "乙"]
    assert list(wrap("甲乙丙、丁", 6)) == ["甲乙", "丙、丁"]
    assert list(wrap("甲乙（丙丁）", 6)) == ["甲乙", "（丙", "丁）"]


@given(st.text(alphabet="ab 中é🚀\u0301\n"), st.integers(2, 30))
def test_wrapped_lines_fit_and_hold_every_visible_character(
    text: str, columns: int
) -> None:
    lines = list(wrap(text, columns))
    assert all(width(line) <= columns for line in lines)
    assert "".join("".join(lines).split()) == "".join(text.split())


def test_a_megabyte_on_one_line_is_wrapped_in_linear_time() -> None:
    assert sum(map(len, wrap("x" * 1_000_000, 80))) == 1_000_000


def test_columns_of_a_table_line_up_in_cells() -> None:
    assert table([("中", "1"), ("abcd", "20")], right=(1,)) == ["中     1", "abcd  20"]


@pytest.mark.parametrize(
    ("passed", "expected"),
    [(0, "just now"), (90, "1 min ago"), (7300, "2 h ago"), (3.5 * _DAY, "3 d ago")],
)
def test_recent_times_are_told_by_their_distance(passed: float, expected: str) -> None:
    assert ago(1_800_000_000.0 - passed, 1_800_000_000.0) == expected


def test_old_times_are_told_by_their_day() -> None:
    assert ago(1_700_000_000.0, 1_800_000_000.0).startswith("2023-11-1")


def test_a_time_that_no_calendar_knows_is_a_question_mark() -> None:
    assert moment(1e300) == "?"


def test_amounts_are_short_and_never_rounded_to_nothing() -> None:
    assert [money(0.0), money(0.001), money(1234.5)] == ["", "<$0.01", "$1,234.50"]
    assert [count(1, "row"), count(2000, "row")] == ["1 row", "2,000 rows"]


def test_one_line_holds_no_line_breaks() -> None:
    assert one_line("a\n  b\r\nc") == "a b c"

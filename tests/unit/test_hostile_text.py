"""Text that was made to be slow is read in one pass. A pattern that tries it in every way would run into the time limit."""

import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.app.typed_part import typed_part
from hermes.core.calls import fenced
from hermes.media.spoken_text import SpokenStream, sentences
from hermes.providers.embedded.native_model import written_call
from hermes.surfaces.gateway.adapters.text_formats import (
    matrix_html,
    styled_ranges,
    telegram_html,
)
from hermes.surfaces.gateway.message_split import split
from hermes.surfaces.terminal.markdown.blocks import Blocks
from hermes.surfaces.terminal.markdown.inline import parse
from hermes.surfaces.terminal.spoken_text import SpokenText
from hermes.tools.escapes import clean
from hermes.tools.files.gitignore import glob_regex
from hermes.tools.policy.inline_code import judge_code

_CHARS = 100_000
_STYLES = (
    (r"\*\*(?=\S)(.+?)(?<=\S)\*\*", "b"),
    (r"(?<!\w)__(?=\S)(.+?)(?<=\S)__(?!\w)", "b"),
    (r"~~(?=\S)(.+?)(?<=\S)~~", "s"),
    (r"(?<![\w*])\*(?=[^\s*])(.+?)(?<=[^\s*])\*(?![\w*])", "i"),
    (r"(?<!\w)_(?=[^\s_])(.+?)(?<=[^\s_])_(?!\w)", "i"),
)
"""What a pair of marks is, one pattern for each."""


@pytest.mark.parametrize("unit", ["[", "![", "![a](http://", "*a ", "_a ", "***a"])
@pytest.mark.parametrize("shown", [telegram_html, matrix_html])
def test_marks_that_are_never_closed_stay_in_a_chat(
    shown: Callable[[str], str], unit: str
) -> None:
    text = (unit * (_CHARS // len(unit))).strip()
    assert re.sub(r"</?[bi]>|\*", "", shown(text)) == text.replace("*", "")


@given(st.text(alphabet="*_~a .", max_size=30))
def test_pairs_of_marks_are_those_of_the_patterns(line: str) -> None:
    expected = f"x{line}x"
    for pattern, tag in _STYLES:
        expected = re.sub(pattern, rf"<{tag}>\1</{tag}>", expected)
    tags = re.findall(r"</?[bis]>", expected)
    if all(one[1] != "/" and f"</{one[1:]}" == two for one, two in _in_pairs(tags)):
        assert telegram_html(f"x{line}x") == expected


def _in_pairs(tags: list[str]) -> list[tuple[str, str]]:
    return list(zip(tags[::2], tags[1::2], strict=False))


def test_many_styled_parts_keep_their_places() -> None:
    text, ranges = styled_ranges("*a* " * 5_000)
    assert text.split() == ["a"] * 5_000
    assert [one.start for one in ranges] == list(range(0, 10_000, 2))


def test_a_line_of_carriage_returns_is_empty() -> None:
    assert clean("\r" * _CHARS) == ""
    assert clean("old\rnew\n" + "\r" * _CHARS + "last") == "new\nlast"


def test_blanks_after_an_angle_bracket_are_kept() -> None:
    text = "<" + " " * _CHARS
    assert text in fenced(text, "a page")
    assert "<" + " " * _CHARS + "/untrusted" not in fenced(text + "/untrusted", "x")


def test_a_run_of_marks_is_no_fence_and_no_code() -> None:
    assert "".join(split("`" * 20_000, 4_000)) == "`" * 20_000
    assert parse("`" * 8_000) == [("`" * 8_000, "")]


@pytest.mark.parametrize("unit", ["_a ", "*a ", "__a ", "~~a ", "**a "])
def test_emphasis_in_the_terminal_ends_within_2000_characters(unit: str) -> None:
    mark = unit[: unit.index("a")]
    far = unit * 60_000  # openers, only the last of which are near enough
    shown = "".join(run for run, _ in parse(f"{far}b{mark}"))
    assert shown.startswith(far[:-2_100])
    assert not shown.endswith(mark)


def test_a_long_table_is_one_block() -> None:
    blocks = Blocks()
    (table,) = [*blocks.feed("|a|\n|-|\n" + "|b\n" * 60_000), *blocks.end()]
    assert (table.kind, len(table.lines)) == ("table", 60_002)


def test_a_sentence_that_closes_nothing_is_read_aloud_after_all() -> None:
    stream = SpokenStream()
    found = [one for _ in range(2_000) for one in stream.feed("(A sentence. ")]
    assert len(" ".join([*found, *stream.finish()])) > 23_000


@pytest.mark.parametrize("unit", ["*", "`", "*`"])
def test_a_run_of_marks_is_read_once_for_screen_readers(unit: str) -> None:
    reader = SpokenText()
    shown = reader.feed("a " + unit * _CHARS + "b") + reader.end()
    assert (shown[:2], shown[-1], shown.count("`")) == ("a ", "b", 0)


def test_blanks_in_a_heading_are_read_once() -> None:
    blocks = Blocks()
    (block,) = [*blocks.feed("# a" + " " * 7_000 + "b\n"), *blocks.end()]
    assert block.kind == "heading"
    assert block.lines[0].split() == ["a", "b"]


@pytest.mark.parametrize(
    ("line", "heading"), [("# a #", "a"), ("# a#", "a#"), ("## a ##  ", "a"), ("#", "")]
)
def test_marks_may_end_a_heading(line: str, heading: str) -> None:
    blocks = Blocks()
    assert [*blocks.feed(line + "\n"), *blocks.end()][0].lines == (heading,)


def test_a_glob_of_many_stars_gives_up_at_once() -> None:
    pattern = re.compile(glob_regex("*a" * 30 + "b"))
    assert pattern.fullmatch("a" * 200) is None
    assert pattern.fullmatch("a" * 200 + "b")
    assert len(glob_regex("[" * 10_000)) == 20_000


def test_text_that_is_no_call_is_left_alone() -> None:
    assert written_call("\n" * _CHARS, ["read_file"]) is None
    assert written_call("\n```json\n" + '{"name": "a"}' + "\n```\n", ["a"])


def test_attachments_that_are_never_closed_are_typed_text() -> None:
    text = '\n\n<skill name="a">\nb' * 5_000
    assert typed_part(text) == text
    assert typed_part(f'c\n\n<skill name="a">\nb\n</skill>{text}') == f"c{text}"


def test_code_that_calls_a_name_made_of_parts_is_seen_among_brackets() -> None:
    hidden = judge_code("node", "[" * 10_000 + "]; global['ev' + 'al']('1')")
    assert hidden == judge_code("node", "global['ev' + 'al']('1')")
    assert hidden != judge_code("node", "[" * 10_000)


def test_blank_lines_between_sentences_are_read_once() -> None:
    assert list(sentences("One. " + "\n " * (_CHARS // 2) + "Two.")) == ["One. Two."]


@given(st.text(alphabet="[]!/ab*?", max_size=30))
def test_classes_of_a_glob_are_those_of_the_pattern(glob: str) -> None:
    classes = re.findall(r"\[!?[^/][^\]/]{0,255}+\]", glob)
    expected = [f"[{one[1:].replace('!', '^', 1)}" for one in classes]
    assert all(one in glob_regex(glob) for one in expected)

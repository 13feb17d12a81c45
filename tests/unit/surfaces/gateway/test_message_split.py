"""Long texts in several messages: everything arrives, nothing is too long, code blocks stay whole or are reopened."""

import re

from hypothesis import given
from hypothesis import strategies as st

from hermes.surfaces.gateway.adapter import utf16
from hermes.surfaces.gateway.message_split import open_fence, split

_LINE = st.one_of(
    st.text(alphabet="ab *_`#-", max_size=60),
    st.sampled_from(
        [
            "```python",
            "```",
            "~~~",
            "    indented",
            "",
            "",
            "日本語のテキスト",
            "🙂🙃🙂",
            "x" * 90,
        ]
    ),
)
_TEXTS = st.lists(_LINE, max_size=40).map("\n".join)


def visible(text: str) -> str:
    """The text without the marks of code blocks and without blanks."""
    lines = [
        line
        for line in text.split("\n")
        if not re.match(r"^ {0,3}(`{3,}|~{3,})[^`]*$", line)
    ]
    return "".join("".join(lines).split())


@given(_TEXTS, st.integers(40, 300))
def test_no_piece_is_too_long_or_empty(text: str, most: int) -> None:
    assert all(
        0 < utf16(piece) <= most and piece.strip() for piece in split(text, most, utf16)
    )


@given(_TEXTS, st.integers(40, 300))
def test_everything_arrives_in_order(text: str, most: int) -> None:
    assert visible("\n".join(split(text, most))) == visible(text)


@given(_TEXTS, st.integers(40, 300))
def test_every_code_block_that_is_cut_is_closed_in_its_piece(
    text: str, most: int
) -> None:
    pieces = split(text, most)
    assert all(not open_fence(piece) for piece in pieces[:-1])


def test_a_text_that_fits_stays_as_it_is() -> None:
    assert split("one\n\n```\ncode\n```\ntwo", 100) == ["one\n\n```\ncode\n```\ntwo"]
    assert split("", 100) == []
    assert split(" \n\n ", 100) == []


def test_it_is_cut_between_paragraphs_rather_than_inside_one() -> None:
    text = f"{'a' * 30}\n\n{'b' * 30}\n\n{'c' * 30}"
    assert split(text, 70) == [f"{'a' * 30}\n\n{'b' * 30}", "c" * 30]


def test_a_code_block_goes_on_with_its_language() -> None:
    code = "\n".join(f"line {number}" for number in range(20))
    first, *others = split(f"before\n```python\n{code}\n```\nafter", 80)
    assert first.startswith("before\n```python\n")
    assert first.endswith("\n```")
    assert all(piece.startswith("```python\n") for piece in others[:-1])
    assert others[-1].endswith("```\nafter")


def test_words_stay_whole_where_that_is_possible() -> None:
    assert all(set(piece.split()) == {"word"} for piece in split("word " * 100, 33))

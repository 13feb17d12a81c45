"""Markdown as it is read aloud."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hermes.media.spoken_text import SpokenStream, sentences, spoken

_WORD = st.text("abcdefghijklmnopqrstuvwxyzäß", min_size=1, max_size=8)
_MARKDOWN = st.lists(
    st.one_of(
        _WORD,
        st.sampled_from(
            (
                *("`", "```\n", "**", "_", "[", "](", ")", "# ", "- ", "\n", " "),
                *("|", "|-|", "https://", "a.b/c", "<b>", "<!--", "-->", ". "),
                *("1. ", "> ", "~~~", "😀"),
            )
        ),
    ),
    max_size=30,
).map("".join)


@pytest.mark.parametrize(
    ("markdown", "said"),
    [
        ("# Result\nIt **works** on `main`.", "Result.\nIt works on main."),
        ("See [the guide](https://x.org/a_(b)).", "See the guide."),
        ("At https://user@docs.example.org:80/a?b#c.", "At docs.example.org"),
        ("Run this:\n```sh\nrm -rf *\n```\nDone.", "Run this:\nDone."),
        ("Then ```` ```\n````", "Then"),
        ("- one\n- [x] two\n2) three", "one.\ntwo.\nthree."),
        ("| a | b |\n|---|:-:|\n| 1 | 2 |", "a, b.\n1, 2."),
        ("> quoted\n\n---\n\nsnake_case _stays_ 😀", "quoted.\nsnake_case stays"),
        ("![a cat](cat.png) here[^1]", "a cat here"),
        ("~~~\nan unclosed block", ""),
    ],
)
def test_markdown_is_spoken_sensibly(markdown: str, said: str) -> None:
    assert spoken(markdown) == said


@given(_MARKDOWN)
@example("ht`tps://x.org")
@example("**\n*")
def test_what_is_spoken_has_no_marks_and_is_stable(markdown: str) -> None:
    said = spoken(markdown)
    assert "://" not in said
    assert not set("`*~|<") & set(said) - {"<"}
    assert spoken(said) == said


@given(st.lists(_WORD, min_size=1, max_size=20))
def test_plain_words_are_unchanged(words: list[str]) -> None:
    text = " ".join(words)
    assert spoken(text) == text


@given(st.text("abc ,.!?\n。", max_size=400), st.integers(1, 60))
def test_sentences_lose_no_word_and_are_short(text: str, most: int) -> None:
    found = list(sentences(text, most))
    assert all(0 < len(one) <= most for one in found)
    assert "".join("".join(found).split()) == "".join(text.split())


def test_sentences_end_where_people_end_them() -> None:
    text = "Dr. Smith paid 3.50 dollars for it. That is e.g. a sentence too! Is it?\nA line of its own"
    assert list(sentences(text)) == [
        "Dr. Smith paid 3.50 dollars for it.",
        "That is e.g. a sentence too!",
        "Is it? A line of its own",
    ]


def test_sentences_are_found_while_a_text_is_written() -> None:
    text = (
        "Hello there, this is one. And [a link](https://x.example/a. b) follows. Yes.\n"
        "```python\nprint('no. never.')\n```\n- an item of a list\n\nDr. Who ends it"
    )
    stream = SpokenStream()
    found = [one for letter in text for one in stream.feed(letter)]
    assert found[0] == "Hello there, this is one."
    assert not any("never" in one for one in found)
    found += stream.finish()
    assert found == list(sentences(spoken(text)))


def test_the_first_sentence_does_not_wait_for_the_second() -> None:
    stream = SpokenStream()
    assert stream.feed("This is the first sentence. And") == [
        "This is the first sentence."
    ]
    assert stream.feed(" so on") == []
    assert stream.finish() == ["And so on"]


def test_a_long_line_without_a_blank_does_not_wait_for_its_end() -> None:
    stream = SpokenStream()
    assert "".join(stream.feed("a" * 2_100)) == "a" * 2_100
    assert stream.feed("=" * 2_100) == stream.finish() == []

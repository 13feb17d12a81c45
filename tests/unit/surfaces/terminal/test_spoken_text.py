"""Text for screen readers."""

import pytest

from hermes.surfaces.terminal.spoken_text import SpokenText


def spoken(text: str, size: int) -> str:
    reader = SpokenText()
    parts = [text[at : at + size] for at in range(0, len(text), size)]
    return "".join(map(reader.feed, parts)) + reader.end()


@pytest.mark.parametrize("size", [1, 2, 3, 5, 1_000])
@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("The **parser** strips", "The parser strips"),
        ("# Title\n\n### Part 1\ntext", "Title\n\nPart 1\ntext"),
        ("run `make ** test` now", "run make ** test now"),
        ("2 * 3 = 6, and *", "2 * 3 = 6, and *"),
        ("issue #12, C# too", "issue #12, C# too"),
        ("a\n```sh\n# **x** `y`\n```\n**b**", "a\n```sh\n# **x** `y`\n```\nb"),
        ("a stray ` here\n**b**", "a stray  here\nb"),
    ],
    ids=["bold", "headings", "code", "star", "number", "block", "stray"],
)
def test_marks_are_left_out_however_the_text_arrives(
    written: str, shown: str, size: int
) -> None:
    assert spoken(written, size) == shown


def test_nothing_but_the_start_of_a_mark_waits() -> None:
    reader = SpokenText()
    assert reader.feed("some words") == "some words"
    assert reader.feed(" and *") == " and "
    assert reader.feed("*more") == "more"

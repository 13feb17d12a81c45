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
        ("2**10, src/**/*.py, **/*.md", "2**10, src/**/*.py, **/*.md"),
        ("f(**kwargs) in src/** here", "f(**kwargs) in src/** here"),
        ("- **A:** b, **`c`**, ***d***", "- A: b, c, *d*"),
        ("这是**粗体**文字", "这是粗体文字"),
        ("~~~\n**x**\n```\n# y\n~~~~ \n**b**", "~~~\n**x**\n```\n# y\n~~~~ \nb"),
        (
            "````md\n```\n**x**\n```\n# y\n````\n**b**",
            "````md\n```\n**x**\n```\n# y\n````\nb",
        ),
        ("```\n```x\n**y**\n```\n**b**", "```\n```x\n**y**\n```\nb"),
    ],
    ids=[
        *("bold", "headings", "code", "star", "number", "block", "stray", "power"),
        *("options", "item", "no spaces", "tildes", "nested", "info"),
    ],
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

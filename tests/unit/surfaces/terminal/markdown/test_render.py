"""How Markdown looks in a terminal."""

import gc
import sys
from collections.abc import Callable

import pytest

from hermes.surfaces.terminal.markdown.inline import parse
from hermes.surfaces.terminal.markdown.render import Markdown
from hermes.surfaces.terminal.markdown.syntax import Highlighter
from hermes.surfaces.terminal.styled_text import Run, plain


def shown(
    text: str, columns: int = 40, *, colours: bool = True, ascii_only: bool = False
) -> list[str]:
    markdown = Markdown(colours=colours, ascii_only=ascii_only)
    return [
        plain(row) for row in (*markdown.feed(text, columns), *markdown.end(columns))
    ]


@pytest.mark.parametrize(
    ("text", "runs"),
    [
        ("a **b** c", [("a ", ""), ("b", "1"), (" c", "")]),
        ("**b *i* b**", [("b ", "1"), ("i", "1;3"), (" b", "1")]),
        ("`**x**`", [("**x**", "36")]),
        ("`` a`b ``", [("a`b", "36")]),
        ("~~old~~", [("old", "9")]),
        ("~~~old~~~ and ~~~~", [("~~~old~~~ and ~~~~", "")]),
        ("[site](https://x.y)", [("site", "4"), (" (https://x.y)", "2")]),
        ("<https://x.y>", [("https://x.y", "4")]),
        ("snake_case_name", [("snake_case_name", "")]),
        ("2 * 3 * 4 and 2*3*4", [("2 * 3 * 4 and 2*3*4", "")]),
        (r"\*not\*", [("*", ""), ("not", ""), ("*", "")]),
        ("**open", [("**open", "")]),
    ],
)
def test_inline(text: str, runs: list[Run]) -> None:
    assert parse(text) == runs


def test_without_colours_headings_and_code_keep_their_marks() -> None:
    assert shown("## Head\nuse `x`", colours=False) == ["## Head", "use `x`"]


def test_text_is_broken_between_words_and_lists_hang() -> None:
    assert shown("- one two three four", 12) == ["• one two", "  three four"]
    assert shown("12. one two three", 11) == ["12. one two", "    three"]


def test_several_blank_lines_are_one() -> None:
    assert shown("a\n\n\n\nb\n\n") == ["a", "", "b"]


TABLE = "| name | what |\n|---|---:|\n| alpha | the first of all |\n| b | `x|y` |\n"


def test_a_table_is_aligned() -> None:
    assert shown(TABLE) == [
        " name  │             what",
        "───────┼─────────────────",
        " alpha │ the first of all",
        " b     │              x|y",
    ]


def test_a_narrow_table_breaks_its_cells() -> None:
    assert shown(TABLE, 20)[2:] == [
        " alpha │   the first",
        "       │      of all",
        " b     │         x|y",
    ]


def test_a_table_without_room_becomes_records() -> None:
    wide = (
        "|a|b|c|d|\n|-|-|-|-|\n|one one one|two two two|three three|four four four|\n"
    )
    assert shown(wide, 20) == [
        "a: one one one",
        "b: two two two",
        "c: three three",
        "d: four four four",
    ]


def test_ascii_only() -> None:
    assert all(
        line.isascii()
        for line in shown(
            TABLE + "\n- x\n\n> y\n\n---\n```py\n1\n```\n", ascii_only=True
        )
    )


def test_code_is_coloured_by_what_came_before_it() -> None:
    code = Highlighter("python")
    assert code.line("def f(): pass")[0] == ("def", "35")
    assert code.line("x = '''")[-1][1] == "32"
    assert code.line("def") == (("def", "32"),)


@pytest.mark.parametrize("last", ["x = f(1)", "x = 'text'", "# words", '"""words'])
def test_a_line_of_code_takes_as_little_behind_many_lines_as_behind_few(
    last: str,
) -> None:
    code = Highlighter("python")
    code.line("class A:")

    def taken() -> int:
        return calls_of(lambda: code.line(f"    {last}"))

    first = max(taken() for _ in range(4))
    assert max(taken() for _ in range(60)) <= first


@pytest.mark.parametrize(
    ("language", "lines", "look"),
    [
        ("python", ['"""', "def"], "32"),
        ("c", ["/* a", "int"], "2"),
        ("rust", ["/* a", "let"], "2"),
        ("js", ["x = `", "let"], "32"),
    ],
)
def test_a_string_or_comment_goes_on_in_the_next_line(
    language: str, lines: list[str], look: str
) -> None:
    code = Highlighter(language)
    rows = [code.line(line) for line in lines]
    assert rows[-1] == ((lines[-1], look),)


def test_code_of_an_unknown_language_is_plain() -> None:
    assert Highlighter("nonsense").line("def f():") == (("def f():", ""),)


def test_a_line_of_code_is_never_broken() -> None:
    assert shown("```\n" + "x" * 100 + "\n```", 20)[1] == "x" * 100


def test_the_rest_of_a_paragraph_follows_the_width_of_the_window() -> None:
    markdown = Markdown(colours=True, ascii_only=False)
    rows = markdown.feed("one two three four five six seven", 10)
    rows += markdown.feed(" eight nine ten eleven", 14)
    rows += markdown.feed(" twelve **thirteen** fourteen", 20)
    rows += markdown.end(20)
    assert [plain(row) for row in rows] == [
        "one two",
        "three four",
        "five six",
        "seven eight",
        "nine ten",
        "eleven twelve",
        "thirteen fourteen",
    ]


@pytest.mark.parametrize("columns", [12, 30, 80])
def test_a_table_that_grows_looks_as_one_that_was_there_at_once(columns: int) -> None:
    lines = [
        "| name | **n** |",
        "|---|--:|",
        *(f"| row {n} {'wide ' * (n % 7)} | `{n}` |" for n in range(40)),
    ]
    text = "\n".join(lines) + "\n"
    growing = Markdown(colours=True, ascii_only=False)
    for at in range(0, len(text), 5):
        growing.feed(text[at : at + 5], columns)
        fresh = Markdown(colours=True, ascii_only=False)
        fresh.feed(text[: at + 5], columns)
        whole = fresh.rest(columns)
        assert growing.rest(columns) == whole
        end = growing.rest(columns, 8)
        assert end[-8:] == whole[-8:]
    assert [plain(row) for row in growing.end(columns)] == shown(text, columns)


@pytest.mark.parametrize("size", [7, 30, 61])
def test_a_table_in_pieces_of_several_lines_is_not_drawn_from_half_a_row(
    size: int,
) -> None:
    text = "| a | b |\n|---|---|\n" + "".join(
        f"| {n} | {n * 11} |\n" for n in range(30)
    )
    markdown = Markdown(colours=True, ascii_only=False)
    rows: list[str] = []
    for at in range(0, len(text), size):
        rows += [plain(row) for row in markdown.feed(text[at : at + size], 40)]
        markdown.rest(40, 20)
    rows += [plain(row) for row in markdown.end(40)]
    assert rows == shown(text)


def test_a_second_table_is_not_taken_for_the_first() -> None:
    markdown = Markdown(colours=True, ascii_only=False)
    for piece in (
        "| a | b |\n|---|---|\n| 1 | 2 |\n| 3 |",
        " 4 |\n\n| a | b |\n|---|---|\n| 5 | 6 |\n| 7",
    ):
        markdown.feed(piece, 40)
        rows = [plain(row) for row in markdown.rest(40)]
    assert rows[-2:] == [" 5 │ 6", " 7 │"]
    assert all("1" not in row for row in rows)


LINES_OF = {
    "paragraph": ("", "some more words and `code`, **bold** too, for a paragraph. "),
    "item": ("- ", "some more words and `code`, **bold** too, for an item. "),
    "bold paragraph": ("**Note:** ", "some more words for it. "),
    "table": ("| name | text |\n|---|---|\n", "| row | what is said of a row |\n"),
    "code": ("```python\n", "value = call(1, 'text')  # a comment\n"),
    "quote": ("", "> a line that is quoted here\n"),
    "quote of one line": ("> ", "some more words and `code` for a quote. "),
    "line of code": ("```\n", "one line of code, such as minified JavaScript; "),
    "open mark": ("**Note: ", "some more words after a mark that nobody closes. "),
}


def calls_of(action: Callable[[], object]) -> int:
    """How many functions an action calls: what it takes, whatever the machine does beside it."""
    calls = 0

    def count(frame: object, kind: str, argument: object) -> None:
        nonlocal calls
        calls += kind in ("call", "c_call")

    gc.disable()  # it calls finalizers of whatever was left
    sys.setprofile(count)
    try:
        action()
    finally:
        sys.setprofile(None)
        gc.enable()
    return calls


def steps(markdown: Markdown, pieces: list[str]) -> int:
    """How many functions are called to draw some tokens."""

    def draw() -> None:
        for piece in pieces:
            markdown.feed(piece, 99)
            markdown.rest(99, 30)

    return calls_of(draw)


@pytest.mark.parametrize("kind", LINES_OF)
def test_a_token_takes_as_little_in_a_long_block_as_in_a_short_one(kind: str) -> None:
    head, line = LINES_OF[kind]

    def taken(size: int) -> int:
        markdown = Markdown(colours=True, ascii_only=False)
        text = head + line * (size // len(line))
        for at in range(0, len(text), 100):
            markdown.feed(text[at : at + 100], 99)
        markdown.rest(99, 30)
        more = line * 20
        return steps(markdown, [more[at : at + 4] for at in range(0, 400, 4)])

    assert taken(7_000) < 1.6 * taken(2_500)


def test_a_line_that_a_lexer_changes_stays_as_it_was_written() -> None:
    code = Highlighter("terraform")
    for line in ("<<EOF", "=begin", "x", "EOF", "y"):
        assert "".join(text for text, _ in code.line(line)) == line


def test_code_is_plain_and_unfinished_until_its_lexer_is_loaded() -> None:
    loaded: set[str] = set()
    markdown = Markdown(colours=True, ascii_only=False, is_loaded=loaded.__contains__)
    final = markdown.feed("text\n\n```python\nx = 1\n```\n\nmore words and ", 40)
    shown = ["", "─── python", "x = 1", "───", "", "more words and"]
    assert [plain(row) for row in final] == ["text"]
    assert [plain(row) for row in markdown.rest(40)] == shown
    loaded.add("python")
    final = markdown.feed("others\n", 40)
    assert [plain(row) for row in final] == shown[:4]
    assert len(final[2]) > 1
    assert [plain(row) for row in markdown.end(40)] == ["", "more words and others"]


def test_the_end_of_a_text_waits_for_no_lexer() -> None:
    markdown = Markdown(colours=True, ascii_only=False, is_loaded=lambda _: False)
    markdown.feed("```python\nx = 1\n", 40)
    rows = [plain(row) for row in markdown.end(40)]
    assert rows == ["─── python", "x = 1", "───"]

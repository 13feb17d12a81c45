"""Cutting Markdown into blocks: what they are, and that it never matters how the text was cut on its way."""

from hypothesis import example, given
from hypothesis import strategies as st

from hermes.surfaces.terminal.markdown.blocks import Block, Blocks
from hermes.surfaces.terminal.markdown.render import Markdown
from hermes.surfaces.terminal.styled_text import Row, plain

PIECES = (
    "|```|```python|~~~|---|***|# Head|- item|  - deep|1. one|> said|**bold** and `code`|x = '''|\tindented|日本語 text"
    "|ends  |\\*no\\*|\r"
)
LINES = st.lists(
    st.one_of(
        st.sampled_from([*PIECES.split("|"), "a | b", "|a|b|", "|-|-:|"]),
        st.text(max_size=40),
    ),
    max_size=25,
)


def cut(text: str, sizes: list[int]) -> list[str]:
    """`text` in pieces of these sizes, over and over."""
    pieces: list[str] = []
    at = 0
    while at < len(text):
        size = sizes[len(pieces) % len(sizes)]
        pieces.append(text[at : at + size])
        at += size
    return pieces


def drawn(pieces: list[str], columns: int) -> list[Row]:
    """The rows that are left on the screen when all has come."""
    markdown = Markdown(colours=True, ascii_only=False)
    rows: list[Row] = []
    for piece in pieces:
        rows += markdown.feed(piece, columns)
        markdown.rest(columns)  # drawing what is unfinished changes nothing
    return rows + markdown.end(columns)


def drawn_at_once(text: str, columns: int) -> list[Row]:
    return Markdown(colours=True, ascii_only=False).whole(text, columns)


@given(LINES, st.lists(st.integers(1, 50), min_size=1, max_size=8), st.integers(8, 100))
def test_any_chunking_leaves_the_same_screen(
    lines: list[str], sizes: list[int], columns: int
) -> None:
    text = "\n".join(lines)
    assert drawn(cut(text, sizes), columns) == drawn([text], columns)
    assert drawn([text], columns) == drawn_at_once(text, columns)


SIGNS = (
    "**",
    "*",
    "`",
    "``",
    "_",
    "__",
    "[a](b)",
    "[",
    "](",
    ")",
    "~~",
    "~",
    "<",
    "<https://x.y>",
    "!",
    "![",
    "\\",
)
WORDS = (
    "word",
    "longer-word",
    "x",
    "a_b",
    " ",
    " ",
    " ",
    "\n",
    "  \n",
    "\n\n",
    "\n- ",
    "-",
    "|",
    "日本",
    "\r",
)
PROSE = st.lists(st.sampled_from([*SIGNS, *WORDS]), max_size=80).map("".join)


@example("longer-word and more words**|\n- ", [1], 8)
@example("word\n- longer-word|", [1], 8)
@given(PROSE, st.lists(st.integers(1, 9), min_size=1, max_size=5), st.integers(8, 30))
def test_any_chunking_of_prose_leaves_the_same_screen(
    text: str, sizes: list[int], columns: int
) -> None:
    assert drawn(cut(text, sizes), columns) == drawn([text], columns)
    assert drawn([text], columns) == drawn_at_once(text, columns)


def test_the_rows_of_a_paragraph_are_for_good_before_it_has_ended() -> None:
    markdown = Markdown(colours=True, ascii_only=False)
    assert [plain(row) for row in markdown.feed("one two three four five six", 10)] == [
        "one two",
        "three four",
    ]
    assert [plain(row) for row in markdown.rest(10)] == ["five six"]
    assert [plain(row) for row in markdown.feed(" **seven eight nine ten", 10)] == []
    assert [plain(row) for row in markdown.feed(" eleven** end", 10)] == [
        "five six",
        "seven",
        "eight nine",
        "ten eleven",
    ]


@given(LINES, st.integers(20, 100))
def test_rows_fit_the_screen_and_can_not_drive_it(
    lines: list[str], columns: int
) -> None:
    from hermes.surfaces.terminal.text import width

    inside_code = False
    markdown = Markdown(colours=True, ascii_only=False)
    for row in [*markdown.feed("\n".join(lines), columns), *markdown.end(columns)]:
        text = plain(row)
        inside_code = inside_code or text.startswith("───")
        assert all(char.isprintable() or char in "\u200c\u200d" for char in text)
        assert inside_code or width(text) <= columns


def test_any_chunking_of_a_very_long_line_leaves_the_same_screen() -> None:
    text = "word " * 5_000 + "\n" + "x" * 20_000
    assert drawn(cut(text, [997]), 80) == drawn([text], 80)


def blocks(text: str) -> list[Block]:
    cutter = Blocks()
    return [*cutter.feed(text), *cutter.end()]


def test_what_blocks_there_are() -> None:
    text = "# Title\nSome\ntext\n\n- one\n  more\n- two\n> said\n```py\ncode\n```\n---\n|a|b|\n|-|-|\n|1|2|\n"
    assert blocks(text) == [
        Block("heading", ("Title",), head="#"),
        Block("text", ("Some", "text")),
        Block("blank"),
        Block("item", ("one", "more"), head="-"),
        Block("item", ("two",), head="-"),
        Block("quote", ("said",)),
        Block("open", head="py"),
        Block("code", ("code",)),
        Block("close"),
        Block("rule"),
        Block("table", ("|a|b|", "|-|-|", "|1|2|")),
    ]


def test_a_line_of_code_has_ended_with_its_line() -> None:
    cutter = Blocks()
    assert cutter.feed("```\nfirst\nsec") == [Block("open"), Block("code", ("first",))]
    assert cutter.rest() == [Block("code", ("sec",)), Block("close")]
    assert cutter.feed("ond\n") == [Block("code", ("second",))]


def test_markdown_inside_code_is_code() -> None:
    assert [block.kind for block in blocks("````\n```\n# no\n````\n# yes")] == [
        "open",
        "code",
        "code",
        "close",
        "heading",
    ]


def test_a_paragraph_is_text_until_something_else_begins() -> None:
    cutter = Blocks()
    assert cutter.feed("one\ntwo") == []
    assert cutter.rest() == [Block("text", ("one", "two"))]
    assert cutter.feed("\n\n") == [Block("text", ("one", "two")), Block("blank")]

"""How the result of a command looks on a terminal."""

from hermes.commands.views import (
    Column,
    DiffBlock,
    Line,
    MarkdownBlock,
    Record,
    Span,
    TableRow,
    line,
    table,
)
from hermes.surfaces.terminal.render import draw_blocks
from hermes.surfaces.terminal.style import Style
from hermes.surfaces.terminal.text import TextScreen

PLAIN = TextScreen(40 + 30, Style(enabled=False))
NARROW = TextScreen(30, Style(enabled=False))
COLOUR = TextScreen(70, Style(enabled=True))
ROWS = table(
    ("ID", Column("SIZE", right=True), "TITLE"),
    [("a1", "5", "short"), TableRow(("b22", "1,000", "x" * 100), "dim")],
    narrow=((0, 1), (2,)),
)


def test_a_table_is_aligned_and_ends_where_the_screen_does() -> None:
    head, first, second = draw_blocks([ROWS], PLAIN)
    assert head == "ID    SIZE  TITLE"
    assert first == "a1       5  short"
    assert len(second) == PLAIN.columns
    assert second.endswith("…")


def test_a_narrow_screen_stacks_the_columns_that_the_table_names() -> None:
    lines = list(draw_blocks([ROWS], NARROW))
    assert lines[:3] == ["a1  5", "  short", "b22  1,000"]
    assert max(map(len, lines)) <= NARROW.columns


def test_a_column_that_shrinks_makes_room_for_the_others() -> None:
    shrinking = table((Column("A", shrinks=True), "B"), [("y" * 90, "all of this")])
    (_, row) = draw_blocks([shrinking], PLAIN)
    assert row.endswith("…  all of this")
    assert len(row) == PLAIN.columns


def test_nothing_in_a_value_drives_the_terminal() -> None:
    evil = "\x1b[31mred"
    blocks = [
        line(evil),
        Record((("name", evil),)),
        table(("A",), [(evil,)]),
        DiffBlock(f"+{evil}"),
    ]
    assert not any("\x1b" in text for text in draw_blocks(blocks, PLAIN))


def test_looks_are_colours_and_empty_values_are_left_out() -> None:
    text = list(draw_blocks([Line((Span("ok", "good"), Span(" fine")))], COLOUR))
    assert text == ["\x1b[32mok\x1b[0m fine"]
    assert list(draw_blocks([Record((("a", "1"), ("b", "")))], COLOUR)) == ["a  1"]
    diff = list(draw_blocks([DiffBlock("@@ -1 +1 @@\n-a\n+b\n c")], COLOUR))
    assert [one[:5] for one in diff[1:3]] == ["\x1b[31m", "\x1b[32m"]


def test_a_long_line_wraps_between_words_in_the_chat_and_is_left_whole_elsewhere() -> (
    None
):
    text = line("Nothing to compress yet: the conversation is short.")
    chat = TextScreen(30, Style(enabled=False), is_chat=True)
    assert list(draw_blocks([text], chat)) == [
        "Nothing to compress yet: the",
        "conversation is short.",
    ]
    assert len(list(draw_blocks([text], chat._replace(is_chat=False)))) == 1


def test_what_a_model_wrote_is_rendered_in_a_chat_and_left_alone_elsewhere() -> None:
    written = [MarkdownBlock("- **bold** and `code`\x1b[2J")]
    chat = TextScreen(70, Style(enabled=False), is_chat=True)
    assert list(draw_blocks(written, chat)) == ["• bold and `code`\\x1b[2J"]
    assert list(draw_blocks(written, PLAIN)) == ["- **bold** and `code`\\x1b[2J"]


def test_a_long_line_of_several_looks_is_wrapped_between_words_in_a_chat() -> None:
    spans = (
        Span("USER.md", "bold"),
        Span("  /home/u/memories/USER.md, 0 of 3,000", "dim"),
    )
    chat = TextScreen(40, Style(enabled=False), is_chat=True)
    assert list(draw_blocks([Line(spans)], chat)) == [
        "USER.md  /home/u/memories/USER.md, 0 of",
        "3,000",
    ]

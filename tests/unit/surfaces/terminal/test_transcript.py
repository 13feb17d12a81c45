"""How a transcript reads."""

from collections.abc import Iterable

from hermes.schema.event_base import Event
from hermes.schema.events import (
    ApprovalRequested,
    SessionCreated,
    TurnEnded,
    TurnStarted,
)
from hermes.schema.messages import (
    AssistantMessage,
    Image,
    ToolCall,
    ToolFinished,
    Usage,
    UserMessage,
)
from hermes.store.log_row import Row, draft
from hermes.surfaces.terminal.style import Style
from hermes.surfaces.terminal.text import TextScreen, width
from hermes.surfaces.terminal.transcript import listing, transcript

PLAIN = Style(enabled=False)


def rows(*events: Event) -> list[Row]:
    return [
        Row(0, "s", seq, 1, 1_800_000_000.0, *draft(event)[:2], "", draft(event).data)
        for seq, event in enumerate(events, 1)
    ]


def text(events: Iterable[Event], columns: int = 80) -> str:
    return "\n".join(transcript(rows(*events), TextScreen(columns, PLAIN)))


def test_it_says_who_said_what_and_what_a_turn_cost() -> None:
    usage = Usage(input_tokens=1200, output_tokens=30, cost_usd=0.5)
    said = text(
        [
            UserMessage(text="Hi"),
            AssistantMessage(text="Hello!", model="m-1"),
            TurnEnded(reason="done", usage=usage),
        ]
    )
    assert "you  " in said
    assert "  Hi" in said
    assert "hermes  " in said
    assert "m-1" in said
    assert "-- turn ended · 1,200 tokens in, 30 out · $0.50" in said


def test_a_failed_turn_says_why_and_an_unknown_price_is_called_so() -> None:
    said = text(
        [
            TurnEnded(
                reason="failed", detail="no such model", usage=Usage(input_tokens=1)
            )
        ]
    )
    assert "turn failed: no such model" in said
    assert "cost unknown" in said


def test_calls_are_shown_in_words_and_shortened() -> None:
    calls = (
        ToolCall(id="c", name="read_file", arguments='{"path": "a.py"}'),
        ToolCall(id="d", name="terminal", arguments=f'{{"command": "{"x" * 500}"}}'),
    )
    said = text(
        [
            AssistantMessage(tool_calls=calls, finish="tool_calls"),
            ToolFinished(call_id="c", name="read_file", text="print()"),
        ],
        columns=60,
    )
    assert "→ Read a.py" in said
    assert "→ Run xxx" in said
    assert "← Read a.py" in said
    assert "x" * 100 not in said


def test_arguments_that_are_not_json_are_said_to_be_unreadable() -> None:
    call = ToolCall(id="c", name="read_file", arguments='{"broken')
    said = text([AssistantMessage(tool_calls=(call,), finish="tool_calls")])
    assert "→ Read (unreadable arguments)" in said


def test_an_approval_names_the_call_and_not_all_that_it_writes() -> None:
    asked = ApprovalRequested(
        call_id="c",
        name="write_file",
        arguments='{"path": "a.py", "content": "x = 1"}',
        summary="write_file a.py new content: x = 1",
        reason="it changes a file",
    )
    assert "-- approval requested: Write a.py: it changes a file" in text([asked])


def test_of_attached_text_only_the_size_is_shown() -> None:
    said = text([UserMessage(text='/init\n\n<command name="init">\nLook.\n</command>')])
    assert "  /init\n  [and 40 characters of attached text]" in said
    assert "Look." not in said


def test_a_long_result_says_how_much_of_it_is_hidden() -> None:
    said = text(
        [
            ToolFinished(
                call_id="c", name="run", text="\n".join(f"line {n}" for n in range(100))
            )
        ]
    )
    assert "line 7" in said
    assert "line 8" not in said
    assert "… 734 more characters (--json shows all)" in said


def test_a_failed_tool_is_marked() -> None:
    assert "← run failed" in text(
        [ToolFinished(call_id="c", name="run", text="no", ok=False)]
    )


def test_rows_that_say_nothing_to_a_person_are_left_out() -> None:
    assert text([SessionCreated(), TurnStarted()]) == ""


def test_pictures_are_named() -> None:
    assert "[picture a.png]" in text(
        [UserMessage(text="", images=(Image(source="a.png", media_type="image/png"),))]
    )


def test_nothing_in_a_message_drives_the_terminal() -> None:
    evil = "\x1b]0;owned\x07"
    call = ToolCall(id="c", name=evil, arguments=evil)
    message = AssistantMessage(
        text=evil, reasoning=evil, model=evil, tool_calls=(call,)
    )
    events = [
        UserMessage(text=evil),
        message,
        ToolFinished(call_id="c", name=evil, text=evil),
    ]
    screen = TextScreen(80, PLAIN)
    printed = [*transcript(rows(*events), screen), *listing(rows(*events), screen)]
    assert all(line.isprintable() for line in printed)


def test_no_line_is_wider_than_the_screen() -> None:
    wide = "解析器の修正 " * 30
    call = ToolCall(id="c", name=wide, arguments='{"' + wide + '": 1}')
    message = AssistantMessage(
        text=wide, reasoning=wide, tool_calls=(call,), finish="length"
    )
    events = [
        UserMessage(text=wide),
        message,
        ToolFinished(call_id="c", name=wide, text=wide, ok=False),
    ]
    for columns in (40, 80):
        screen = TextScreen(columns, PLAIN)
        printed = [*transcript(rows(*events), screen), *listing(rows(*events), screen)]
        assert max(map(width, printed)) <= columns

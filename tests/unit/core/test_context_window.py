"""A conversation that fills the window is made smaller: for free first, then by a summary, or not at all and said."""

from typing import Any

import pytest
from tests.unit.core.test_turn import Bench

from hermes.core.budget import Cap, TurnBudget
from hermes.core.compaction import compact
from hermes.core.context_window import ContextLimits, ContextWindow, choose_trim, trim
from hermes.core.history import ConversationHistory
from hermes.errors import ModelError
from hermes.schema.event_base import Event
from hermes.schema.events import (
    CompactionFailed,
    PictureDescribed,
    SessionCompacted,
    SessionTrimmed,
    TurnStarted,
)
from hermes.schema.messages import (
    AssistantMessage,
    Image,
    Message,
    ToolCall,
    ToolFinished,
    Usage,
    UserMessage,
)
from hermes.schema.model import ModelRequest
from hermes.testing import FakeClock, Reply, ScriptedModel

SUMMARY = "## Goal\nEverything that matters, kept in a few words for later."


def called(name: str, result: str, tokens: int = 0) -> list[Message]:
    usage = Usage(input_tokens=tokens) if tokens else None
    call = ToolCall(id=name, name="read_file", arguments="{}")
    return [
        AssistantMessage(tool_calls=(call,), usage=usage),
        ToolFinished(call_id=name, name="read_file", text=result),
    ]


def talk(*parts: list[Message], tokens: int = 900) -> ModelRequest:
    latest = [
        UserMessage(text="go on"),
        AssistantMessage(text="yes", usage=Usage(input_tokens=tokens)),
    ]
    messages = [
        UserMessage(text="begin"),
        *(message for part in parts for message in part),
        *latest,
    ]
    return ModelRequest(system=("s",), messages=tuple(messages))


def room(
    *replies: Any, window: int = 1_000, clock: FakeClock | None = None
) -> ContextWindow:
    model = ScriptedModel(*replies)
    return ContextWindow(
        lambda session, messages, cut: compact(model, messages, cut),
        ContextLimits(window, 0.8, 1, 2),
        clock or FakeClock(),
    )


def test_what_fits_is_left_alone() -> None:
    assert not room().is_full("s", talk(called("a", "x" * 5_000), tokens=700))
    assert room().is_full("s", talk(called("a", "x" * 5_000), tokens=900))


async def test_long_old_results_become_pointers_before_anything_is_summarised() -> None:
    request = talk(called("a", "x" * 5_000), called("b", "short"))
    rows = await room().make("s", request)
    assert rows == [SessionTrimmed(call_ids=("a",), freed=5_000)]
    after = trim(request.messages, rows[0])  # type: ignore[arg-type]
    assert [
        message.text[:9] for message in after if isinstance(message, ToolFinished)
    ] == ["[removed ", "short"]
    assert all(
        message.usage is None
        for message in after
        if isinstance(message, AssistantMessage) and message.text
    )


async def test_when_that_is_not_enough_the_middle_is_summarised() -> None:
    request = talk(
        called("a", "short"), called("b", "short too"), called("c", "and this")
    )
    (row,) = await room(Reply(text=SUMMARY)).make("s", request)
    assert isinstance(row, SessionCompacted)
    assert (row.head, row.tail) == (1, 2)


async def test_a_failed_summary_removes_nothing_is_said_and_not_tried_again_at_once() -> (
    None
):
    clock = FakeClock()
    maker = room(Reply(text=""), Reply(text=SUMMARY), clock=clock)
    request = talk(called("a", "short"), called("b", "short too"))
    (row,) = await maker.make("s", request)
    assert isinstance(row, CompactionFailed)
    assert not maker.is_full("s", request)
    assert maker.is_full("another", request)
    clock.advance(60)
    assert maker.is_full("s", request)
    (row,) = await maker.make("s", request)
    assert isinstance(row, SessionCompacted)


async def test_a_provider_that_says_too_long_is_believed() -> None:
    (row,) = await room(Reply(text=SUMMARY)).make(
        "s", talk(called("a", "x"), called("b", "y"), tokens=10), forced=True
    )
    assert isinstance(row, SessionCompacted)


def test_a_result_that_was_repeated_later_is_kept_once() -> None:
    long = "y" * 3_000
    messages = [*called("a", long), *called("b", long)]
    assert choose_trim(messages, last=10).call_ids == ("a",)
    assert (
        choose_trim(trim(messages, choose_trim(messages, last=10)), last=10).call_ids
        == ()
    )


def test_the_history_of_the_same_rows_is_the_same() -> None:
    rows: list[Event] = [
        UserMessage(text="begin"),
        TurnStarted(inputs=(1,)),
        *called("a", "z" * 3_000),
    ]
    rows += [SessionTrimmed(call_ids=("a",), freed=3_000)]
    one, two = ConversationHistory(), ConversationHistory()
    for history in (one, two):
        for seq, row in enumerate(rows, 1):
            history.add(seq, row, "t")
    assert one.messages == two.messages
    assert one.messages[-1].text.startswith("[removed")


@pytest.mark.parametrize("made", [True, False])
async def test_a_turn_asks_again_once_room_was_made(made: bool) -> None:
    class Engine:
        def is_full(self, session: str, request: ModelRequest) -> bool:
            return False

        async def make(
            self, session: str, request: ModelRequest, *, forced: bool = False
        ) -> list[Event]:
            if not forced:
                return []
            return (
                [SessionTrimmed(call_ids=())]
                if made
                else [CompactionFailed(detail="no")]
            )

    too_long = ModelError("too long", reason="too_long", compress=True)
    bench = Bench(ScriptedModel(Reply(error=too_long), "then this"), context=Engine())
    ended = await bench.run()
    assert ended.reason == ("done" if made else "failed")


async def test_room_is_not_made_beyond_a_cap() -> None:
    asked: list[str] = []

    class Engine:
        def is_full(self, session: str, request: ModelRequest) -> bool:
            return True

        async def make(
            self, session: str, request: ModelRequest, *, forced: bool = False
        ) -> list[Event]:
            asked.append(session)
            return []

    bench = Bench(
        ScriptedModel("never said"),
        context=Engine(),
        budget=TurnBudget([Cap("turn", "tokens", 20)]),
    )
    ended = await bench.run(
        "a question of several words, more than the cap has room for"
    )
    assert ended.reason == "budget"
    assert asked == []


PICTURE = Image(source="/p/shot.png", media_type="image/png")


def test_old_pictures_become_pointers_and_new_ones_stay() -> None:
    shown = ToolFinished(
        call_id="v",
        name="vision_analyze",
        text="[shot.png: png, 4 x 3]",
        images=(PICTURE,),
    )
    messages = [
        UserMessage(text="what is this?", images=(PICTURE,)),
        AssistantMessage(
            tool_calls=(ToolCall(id="v", name="vision_analyze", arguments="{}"),)
        ),
        shown,
        UserMessage(text="and now?", images=(PICTURE,)),
        AssistantMessage(text="the same"),
    ]
    row = choose_trim(messages, last=2)
    assert (row.call_ids, row.pictures) == (("v",), 1)
    assert row.freed > 5_000
    after = trim(messages, row)
    assert [len(getattr(message, "images", ())) for message in after] == [0, 0, 0, 1, 0]
    assert (
        after[0].text == "what is this?\n\n[pictures removed to make room: /p/shot.png]"
    )
    assert (
        after[2].text
        == "[shot.png: png, 4 x 3]\n\n[pictures removed to make room: /p/shot.png]"
    )
    again = choose_trim(after, last=2)
    assert (again.call_ids, again.pictures) == ((), 0)


def test_a_description_stays_with_its_picture_in_every_message() -> None:
    history = ConversationHistory()
    history.add(1, UserMessage(text="look", images=(PICTURE,)))
    history.add(2, TurnStarted(inputs=(1,)), "t")
    history.add(3, PictureDescribed(source="/p/shot.png", text="a boat"))
    (message,) = history.messages
    assert isinstance(message, UserMessage)
    assert message.images[0].description == "a boat"
    assert message.text == "look"

"""Making room keeps what must stay: the head, the tail, calls with their results, the user's last words."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.core.compaction import (
    MARK,
    CompactionCut,
    NotCompacted,
    choose_cut,
    compact,
    compacted,
)
from hermes.core.context_usage import measure
from hermes.core.history import Beginning, ConversationHistory
from hermes.core.prompt import PROJECT_HEAD
from hermes.schema.events import (
    SessionCompacted,
    SessionPrompted,
    TurnEnded,
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
from hermes.testing import Reply, ScriptedModel

SUMMARY = (
    "## Goal\nBuild a boat that floats, as the user asked.\n## Done\nThe keel is laid."
)


def exchange(number: int, calls: int) -> list[Message]:
    """A user's words, perhaps calls with their results, and an answer."""
    ids = [f"c{number}-{place}" for place in range(calls)]
    called: list[Message] = []
    if ids:
        called = [
            AssistantMessage(
                tool_calls=tuple(
                    ToolCall(id=name, name="say", arguments="{}") for name in ids
                )
            ),
            *(ToolFinished(call_id=name, name="say", text="x") for name in ids),
        ]
    return [
        UserMessage(text=f"question {number}"),
        *called,
        AssistantMessage(text=f"answer {number}"),
    ]


conversations = st.lists(st.integers(0, 4), min_size=1, max_size=12).map(
    lambda sizes: [
        message
        for number, calls in enumerate(sizes)
        for message in exchange(number, calls)
    ]
)


@given(conversations, st.integers(0, 8), st.integers(1, 12))
def test_a_cut_never_parts_a_call_from_its_result_and_keeps_the_users_last_words(
    messages: list[Message], first: int, last: int
) -> None:
    try:
        cut = choose_cut(messages, first=first, last=last)
    except NotCompacted:
        return
    kept = [
        *messages[: cut.head],
        *messages[cut.kept - 1 : cut.kept],
        *messages[len(messages) - cut.tail :],
    ]
    calls = [
        call.id
        for message in kept
        if isinstance(message, AssistantMessage)
        for call in message.tool_calls
    ]
    results = [message.call_id for message in kept if isinstance(message, ToolFinished)]
    assert calls == results
    assert messages[len(messages) - cut.tail] is not None
    latest = [message for message in messages if isinstance(message, UserMessage)][-1]
    assert latest in kept
    assert cut.head >= min(first, len(messages))
    assert cut.tail >= min(last, len(messages) - cut.head)
    assert cut.head + cut.tail <= len(messages) - 2


@pytest.mark.parametrize("before", [0, 2])
def test_one_long_turn_is_compressed_too_and_keeps_what_the_user_asked_for(
    before: int,
) -> None:
    messages = [message for number in range(before) for message in exchange(number, 0)]
    messages.append(UserMessage(text="sweep the house"))
    for number in range(100):
        messages += exchange(number, 1)[1:-1]
    cut = choose_cut(messages, first=3, last=20)
    row = asyncio.run(compact(ScriptedModel(Reply(text=SUMMARY)), messages, cut))
    assert row.after < row.before
    history = ConversationHistory()
    history.messages = messages
    history.turns = [Beginning(1, "t1", before * 2, frozenset())]
    history.add(1, row)
    assert len(history.messages) <= 26
    assert [
        message for message in history.messages if message.text == "sweep the house"
    ] == [messages[before * 2]]
    assert history.messages[-20:] == messages[-20:]
    assert history.turns == []


def test_turns_behind_the_kept_words_can_still_be_taken_back() -> None:
    messages = [*exchange(0, 0), *exchange(1, 2), *exchange(2, 0)]
    row = SessionCompacted(summary=SUMMARY, head=1, tail=2, kept=3)
    history = ConversationHistory()
    history.messages = messages
    history.turns = [Beginning(9, "t2", len(messages) - 2, frozenset())]
    history.add(10, row)
    assert history.messages[history.turns[0].messages].text == "question 2"


def test_a_short_conversation_is_left_alone() -> None:
    with pytest.raises(NotCompacted, match="nothing to compress"):
        choose_cut(exchange(1, 1), first=3, last=20)


def test_the_summary_is_made_of_the_middle_and_brings_older_notes_up_to_date() -> None:
    old = UserMessage(text=f"{MARK}## Goal\nA raft.", origin="hermes")
    messages = [*exchange(1, 0), old, *exchange(2, 1), *exchange(3, 0)]
    model = ScriptedModel(Reply(text=SUMMARY))
    row = asyncio.run(compact(model, messages, CompactionCut(2, 2)))
    asked = model.requests[0].messages[0].text
    assert "<notes from before>\n## Goal\nA raft." in asked
    assert "question 2" in asked
    assert "question 1" not in asked
    assert "user: question 3" not in asked
    assert asked.endswith("(The user writes like this: 'question 3')")
    assert row.summary == SUMMARY
    assert row.after < row.before + 100


@pytest.mark.parametrize("said", ["", "ok", "x" * 30_000])
def test_a_summary_that_is_none_removes_nothing(said: str) -> None:
    messages = [message for number in range(4) for message in exchange(number, 0)]
    with pytest.raises(NotCompacted) as caught:
        asyncio.run(
            compact(ScriptedModel(Reply(text=said)), messages, CompactionCut(2, 2))
        )
    assert "Nothing was removed" in caught.value.hint


def test_the_history_shows_the_summary_in_place_of_the_middle_and_forgets_old_counts() -> (
    None
):
    history = ConversationHistory()
    history.add(1, SessionPrompted(system=("be brief",)))
    seq = 1
    for number in range(5):
        seq += 1
        history.add(seq, UserMessage(text=f"question {number}"))
        history.add(seq + 1, TurnStarted(inputs=(seq,)), f"t{number}")
        reply = AssistantMessage(
            text=f"answer {number}", usage=Usage(input_tokens=9_000 if number else 100)
        )
        history.add(seq + 2, reply)
        history.add(seq + 3, TurnEnded(reason="done"))
        seq += 3
    assert measure(history, 10_000).used == 9_000
    history.add(seq + 1, SessionCompacted(summary=SUMMARY, head=2, tail=4))
    texts = [message.text for message in history.messages]
    assert texts == [
        "question 0",
        "answer 0",
        MARK + SUMMARY,
        "question 3",
        "answer 3",
        "question 4",
        "answer 4",
    ]
    assert measure(history, 10_000).used < 1_000
    assert [turn.turn for turn in history.turns] == ["t3", "t4"]
    assert [turn.messages for turn in history.turns] == [3, 5]


def test_what_is_compacted_twice_keeps_one_summary() -> None:
    messages: list[Message] = [
        message for number in range(4) for message in exchange(number, 0)
    ]
    once = compacted(messages, SessionCompacted(summary="first", head=2, tail=4))
    twice = compacted(once, SessionCompacted(summary="second", head=2, tail=2))
    assert [message.text for message in twice if message.text.startswith(MARK)] == [
        f"{MARK}second"
    ]


def test_what_does_not_fit_the_summarising_model_is_read_in_pieces_that_bring_the_notes_up_to_date() -> (
    None
):
    messages = [
        UserMessage(text=f"wish {number}: " + "a boat " * 100) for number in range(30)
    ]
    model = ScriptedModel(
        *(Reply(text=f"{SUMMARY} Part {number}.") for number in range(3))
    )
    row = asyncio.run(compact(model, messages, CompactionCut(0, 2), window=9_000))
    asked = [request.messages[0].text for request in model.requests]
    assert len(asked) == 3
    assert all(f"wish {number}:" in "".join(asked) for number in range(28))
    assert [
        f"Part {number - 1}.\n</notes>" in text for number, text in enumerate(asked)
    ] == [False, True, True]
    assert row.summary == f"{SUMMARY} Part 2."
    assert row.usage == Usage(input_tokens=30, output_tokens=15, cost_usd=0.0)


def test_a_conversation_far_too_long_for_the_summarising_model_is_left_alone() -> None:
    messages = [UserMessage(text="a boat " * 1_000) for number in range(30)]
    with pytest.raises(NotCompacted, match="too long for the model"):
        asyncio.run(
            compact(ScriptedModel(), messages, CompactionCut(0, 2), window=2_000)
        )


def test_keys_are_in_neither_the_question_nor_the_summary() -> None:
    key = "sk-proj-" + "a1B2c3D4" * 4
    messages = [
        UserMessage(text=f"use {key} please"),
        *exchange(1, 0),
        UserMessage(text=f"{key} again"),
    ]
    model = ScriptedModel(Reply(text=f"{SUMMARY}\nThe key is {key}."))
    row = asyncio.run(compact(model, messages, CompactionCut(0, 1)))
    assert key not in str(model.requests)
    assert key not in row.summary
    assert "The key is ********." in row.summary


def test_the_window_is_shown_by_what_fills_it_and_where_room_will_be_made() -> None:
    history = ConversationHistory()
    system = ("who", f"{PROJECT_HEAD}\ntabs", "Memory: boats", "today")
    history.add(1, SessionPrompted(system=system))
    picture = Image(source="/a.png", media_type="image/png")
    history.messages = [
        UserMessage(text=f"{MARK}{SUMMARY}", origin="hermes"),
        UserMessage(text="look", images=(picture, picture)),
        *exchange(1, 1)[1:],
    ]
    context = measure(history, 10_000, 0.8)
    counts = {part.name: part.count for part in context.parts}
    assert counts == {
        "instructions": 2,
        "project notes": 1,
        "memory": 1,
        "tools": 0,
        "your words": 1,
        "replies": 2,
        "tool results": 1,
        "summary": 1,
        "pictures": 2,
    }
    assert (context.window, context.full) == (10_000, 8_000)
    assert context.used == sum(part.tokens for part in context.parts)

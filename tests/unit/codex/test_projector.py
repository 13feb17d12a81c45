"""What codex tells, as events: in order, once, and the same every time."""

import itertools
from typing import Any

import hypothesis
import msgspec
import pytest
from hypothesis import strategies as st

from hermes.codex.projector import CodexInput, Projector, UsageTracker
from hermes.codex.wire import CodexNotification
from hermes.core.history import ConversationHistory
from hermes.schema.event_base import Event
from hermes.schema.events import (
    AuxiliaryCalled,
    MessageDelta,
    ModelRetried,
    ReasoningDelta,
    Steered,
    ToolProgress,
    ToolStarted,
)
from hermes.schema.messages import AssistantMessage, ToolFinished, UserMessage


def notice(method: str, **params: Any) -> CodexNotification:
    return CodexNotification(method, msgspec.Raw(msgspec.json.encode(params)))


def started(**item: Any) -> CodexNotification:
    return notice("item/started", turnId="t", item=item)


def completed(**item: Any) -> CodexNotification:
    return notice("item/completed", turnId="t", item=item)


def words(text: str, number: str = "m") -> CodexNotification:
    return completed(type="agentMessage", id=number, text=text)


def run(number: str, *, done: bool = False, **more: Any) -> CodexNotification:
    item = {
        "type": "commandExecution",
        "id": number,
        "command": f"/bin/bash -lc 'echo {number}'",
        "cwd": "/w",
        **more,
    }
    if not done:
        return started(status="inProgress", **item)
    return completed(
        **{"status": "completed", "exitCode": 0, "aggregatedOutput": number, **item}
    )


def used(number: int, turn: str = "t") -> CodexNotification:
    usage = {"last": {"inputTokens": number, "outputTokens": 1}}
    return notice("thread/tokenUsage/updated", turnId=turn, tokenUsage=usage)


def ended(status: str = "completed", **turn: Any) -> CodexNotification:
    return notice("turn/completed", turn={"id": "t", "status": status, **turn})


def project(*notices: CodexNotification) -> tuple[Projector, list[Event]]:
    projector = Projector("t", cwd="/w", model="m-1")
    return projector, [event for one in notices for event in projector.feed(one)]


def test_thinking_is_kept_with_the_next_words() -> None:
    thought = completed(type="reasoning", id="r", summary=["First.", "Second."])
    _, events = project(thought, words("Hello."), used(7))
    (message,) = events
    assert isinstance(message, AssistantMessage)
    assert (message.reasoning, message.text, message.model) == (
        "First.\n\nSecond.",
        "Hello.",
        "m-1",
    )
    assert message.usage is not None
    assert message.usage.input_tokens == 7


@hypothesis.given(st.lists(st.integers(0, 36), max_size=6))
def test_thinking_that_a_model_left_in_its_text_is_no_text(cuts: list[int]) -> None:
    text = "Yes.\n<think>hm, so</think>\nI look at it."
    edges = [0, *sorted(cuts), len(text)]
    deltas = [
        notice("item/agentMessage/delta", turnId="t", itemId="m", delta=text[start:end])
        for start, end in itertools.pairwise(edges)
    ]
    _, events = project(
        started(type="agentMessage", id="m"), *deltas, words(text), used(7)
    )
    shown = [one.text for one in events if isinstance(one, MessageDelta)]
    thought = [one.text for one in events if isinstance(one, ReasoningDelta)]
    message = events[-1]
    assert isinstance(message, AssistantMessage)
    assert "".join(shown) == message.text == "Yes.\nI look at it."
    assert "".join(thought) == message.reasoning == "hm, so"


def test_tags_of_openai_s_own_models_are_text() -> None:
    projector = Projector("t", has_tags=False)
    projector.feed(words("<think>an example</think>"))
    (message,) = projector.close()
    assert isinstance(message, AssistantMessage)
    assert message.text == "<think>an example</think>"


def test_words_before_a_call_are_in_its_message_and_the_intent_follows() -> None:
    _, events = project(words("I look."), run("c1"), run("c1", done=True))
    message, intent, result = events
    assert isinstance(message, AssistantMessage)
    assert isinstance(intent, ToolStarted)
    assert isinstance(result, ToolFinished)
    assert message.text == "I look."
    assert [call.id for call in message.tool_calls] == ["c1"] == [intent.call_id]
    assert message.tool_calls[0].arguments == '{"command":"echo c1","cwd":"/w"}'
    assert (result.text, result.ok) == ("c1", True)


def test_a_call_that_said_nothing_is_paid_for_apart() -> None:
    _, events = project(run("c1"), run("c1", done=True), used(5))
    assert isinstance(events[-1], AuxiliaryCalled)
    assert events[-1].task == "codex"


def test_what_words_took_belongs_to_them_also_when_a_command_ends_late() -> None:
    projector, events = project(run("c1"), used(5), words("Done."), used(9))
    assert [
        event.usage.input_tokens
        for event in events
        if isinstance(event, AuxiliaryCalled) and event.usage
    ] == [5]
    late = [*projector.finish("c1", "c1", 0), *projector.close()]
    (result, message) = late
    assert isinstance(result, ToolFinished)
    assert isinstance(message, AssistantMessage)
    assert message.usage is not None
    assert (result.text, message.text, message.usage.input_tokens) == ("c1", "Done.", 9)


def test_a_call_that_is_reported_again_is_counted_once_also_in_the_next_turn() -> None:
    def total(number: int, turn: str) -> CodexNotification:
        usage = {
            "last": {"inputTokens": 7, "outputTokens": 1},
            "total": {"inputTokens": number, "outputTokens": 1},
        }
        return notice("thread/tokenUsage/updated", turnId=turn, tokenUsage=usage)

    meter = UsageTracker()
    first, second = Projector("t", meter=meter), Projector("u", meter=meter)
    for number in (7, 7, 14, 14):
        first.feed(total(number, "t"))
    for number in (14, 21):
        second.feed(total(number, "u"))
    assert (len(first.usages), len(second.usages)) == (2, 1)


def test_calls_side_by_side_are_told_one_after_the_other() -> None:
    projector, events = project(
        run("a"), run("b"), run("b", done=True), run("a", done=True)
    )
    kinds = [(type(event).__name__, getattr(event, "call_id", "")) for event in events]
    assert kinds == [
        ("AssistantMessage", ""),
        ("ToolStarted", "a"),
        ("ToolStarted", "b"),
        ("ToolFinished", "a"),
        ("AssistantMessage", ""),
        ("ToolFinished", "b"),
    ]
    assert projector.calls == 2


def test_deltas_are_shown_and_two_messages_do_not_run_together() -> None:
    def delta(
        text: str, item: str, method: str = "item/agentMessage/delta"
    ) -> CodexNotification:
        return notice(method, turnId="t", itemId=item, delta=text)

    first = [
        started(type="agentMessage", id="m1", text=""),
        delta("He", "m1"),
        words("Hey", "m1"),
    ]
    second = [
        started(type="agentMessage", id="m2", text=""),
        delta("you", "m2"),
        words("you", "m2"),
    ]
    other = [
        delta("hm", "r", "item/reasoning/summaryTextDelta"),
        delta("out", "c", "item/commandExecution/outputDelta"),
    ]
    projector, events = project(*first, *second, *other, ended())
    assert events == [
        MessageDelta(text="He"),
        MessageDelta(text="\n\n"),
        MessageDelta(text="you"),
        ReasoningDelta(text="hm"),
        ToolProgress(call_id="c", text="out"),
    ]
    (message,) = projector.close()
    assert isinstance(message, AssistantMessage)
    assert message.text == "Hey\n\nyou"
    assert projector.final_text == "you"


def test_what_is_open_at_an_interrupt_is_closed_and_what_was_streamed_is_kept() -> None:
    projector, _ = project(
        run("a"),
        notice("item/agentMessage/delta", turnId="t", itemId="m", delta="half a"),
        ended("interrupted"),
    )
    result, message = projector.close(finish="interrupted")
    assert isinstance(result, ToolFinished)
    assert isinstance(message, AssistantMessage)
    assert (result.ok, message.text, message.finish) == (False, "half a", "interrupted")


def test_a_stream_that_is_tried_again_is_void() -> None:
    again = notice(
        "error", turnId="t", willRetry=True, error={"message": "Reconnecting... 1/2"}
    )
    projector, events = project(
        started(type="agentMessage", id="m", text=""),
        notice("item/agentMessage/delta", turnId="t", itemId="m", delta="lost"),
        again,
        words("kept", "m2"),
        ended(),
    )
    assert isinstance(events[-1], ModelRetried)
    (message,) = projector.close(finish="interrupted")
    assert isinstance(message, AssistantMessage)
    assert message.text == "kept"


def given(name: str, seq: int | None = None) -> CodexInput:
    return CodexInput(({"type": "text", "text": name},), name, seq)


@pytest.mark.parametrize("has_names", [True, False], ids=["by name", "by text"])
def test_a_steer_enters_where_the_model_took_it_in_and_the_first_words_do_not(
    has_names: bool,
) -> None:
    delivered = {
        "first": given("first"),
        "later": given("later", 9),
        "last": given("last", 10),
    }
    projector = Projector("t")
    projector.delivered |= delivered
    names = list(projector.delivered)
    said = [
        completed(
            type="userMessage",
            id=name,
            content=[{"text": name}],
            **({"clientId": name} if has_names else {}),
        )
        for name in names
    ]
    events = [event for one in said for event in projector.feed(one)]
    assert events == [Steered(inputs=(9,)), Steered(inputs=(10,))]
    assert projector.delivered == {}


def test_words_of_somebody_else_are_kept_but_not_answered_again() -> None:
    _, events = project(
        completed(
            type="userMessage",
            id="u",
            content=[{"type": "text", "text": "from elsewhere"}],
        )
    )
    assert events == [UserMessage(text="from elsewhere", origin="hermes")]


@pytest.mark.parametrize(
    "mark", ["<turn_aborted>", "<turn_aborted/>", "<turn_aborted />"]
)
@pytest.mark.parametrize("before", ["", "I had begun. "])
def test_turn_aborted_is_an_end_wherever_it_is_said(before: str, mark: str) -> None:
    text = f"{before}{mark}\nThe user interrupted."
    items: list[dict[str, Any]] = [
        {"type": "agentMessage", "text": text},
        {"type": "userMessage", "content": [{"text": text}]},
        {"type": "somethingNew", "text": text},
    ]
    for item in items:
        projector, events = project(completed(id="x", **item))
        assert projector.ending is not None
        assert (projector.ending.status, projector.ending.is_marker) == (
            "interrupted",
            True,
        )
        assert events == []
    projector, _ = project(completed(id="x", **items[0]))
    kept = projector.close(finish="interrupted")
    assert [event.text for event in kept if isinstance(event, AssistantMessage)] == (
        [before.strip()] if before else []
    )


def test_a_user_who_writes_of_turn_aborted_does_not_end_the_turn() -> None:
    projector = Projector("t")
    projector.delivered["q"] = CodexInput(
        ({"type": "text", "text": "what is <turn_aborted/>?"},), "q"
    )
    projector.feed(
        completed(
            type="userMessage", id="u", content=[{"text": "what is <turn_aborted/>?"}]
        )
    )
    projector.feed(
        completed(
            type="commandExecution",
            id="c",
            command="cat x",
            aggregatedOutput="<turn_aborted/>",
        )
    )
    assert projector.ending is None


def test_a_command_whose_output_an_older_codex_leaves_out_waits_for_it() -> None:
    projector = Projector("t", cwd="/w", whole_output=False)
    silent = run("c1", done=True, aggregatedOutput=None)
    (message, started) = [
        event for one in (run("c1"), silent) for event in projector.feed(one)
    ]
    assert isinstance(message, AssistantMessage)
    assert isinstance(started, ToolStarted)
    assert [command.id for command in projector.without_output] == ["c1"]
    (result,) = projector.finish("c1", "one\n", 0)
    assert isinstance(result, ToolFinished)
    assert (result.text, result.ok) == ("one\n", True)
    assert projector.finish("c1", "again", 0) == []


def test_an_output_that_is_never_found_is_not_passed_off_as_none() -> None:
    projector = Projector("t", cwd="/w", whole_output=False)
    projector.feed(run("c1", done=True, aggregatedOutput=None, exitCode=3))
    (result,) = projector.close()
    assert isinstance(result, ToolFinished)
    assert (result.text, result.ok) == (
        "(codex did not report its output)\n[exit code 3]",
        False,
    )


def test_other_items_are_a_note_and_never_a_call() -> None:
    search = completed(type="webSearch", id="w", query="tea")
    unknown = completed(type="somethingNew", id="n", tool="x")
    projector, events = project(search, unknown, words("Done."), used(1))
    (message,) = events
    assert isinstance(message, AssistantMessage)
    assert (
        message.text
        == "[codex searched the web: tea]\n\n[codex: somethingNew]\n\nDone."
    )
    assert message.tool_calls == ()
    assert projector.final_text == "Done."


def test_an_item_whose_shape_has_changed_is_a_note_too() -> None:
    _, events = project(
        completed(type="commandExecution", id="c", command={"argv": ["ls"]}),
        words("x"),
        used(1),
    )
    (message,) = events
    assert isinstance(message, AssistantMessage)
    assert message.text == "[codex: commandExecution]\n\nx"


def test_what_cannot_be_read_is_counted() -> None:
    projector, events = project(
        CodexNotification("item/started", msgspec.Raw(b"[1]")),
        notice("item/started", turnId="t", item=3),
    )
    assert events == []
    assert projector.odd == 2


def test_other_turns_do_not_concern_it() -> None:
    late = notice(
        "item/completed",
        turnId="old",
        item={"type": "agentMessage", "id": "x", "text": "old"},
    )
    projector, events = project(
        late,
        used(5, "old"),
        notice("turn/completed", turn={"id": "old", "status": "failed"}),
    )
    assert events == []
    assert projector.ending is None


def test_names_of_calls() -> None:
    tool = {
        "type": "mcpToolCall",
        "id": "1",
        "server": "lab",
        "tool": "look",
        "arguments": {"b": 1, "a": 2},
    }
    result = {
        "content": [{"type": "text", "text": "found"}, {"type": "image", "data": "x"}]
    }
    dynamic = {"type": "dynamicToolCall", "id": "2", "tool": "host", "success": False}
    _, events = project(
        completed(**tool, status="completed", result=result),
        completed(**dynamic, contentItems=[{"type": "inputText", "text": "no"}]),
    )
    calls = [
        call
        for event in events
        if isinstance(event, AssistantMessage)
        for call in event.tool_calls
    ]
    results = [
        (event.text, event.ok) for event in events if isinstance(event, ToolFinished)
    ]
    assert [(call.name, call.arguments) for call in calls] == [
        ("mcp.lab.look", '{"a":2,"b":1}'),
        ("host", "{}"),
    ]
    assert results == [("found\n[image]", True), ("no", False)]


def test_an_answer_that_only_the_end_tells_is_not_lost() -> None:
    projector, _ = project(
        ended(items=[{"type": "agentMessage", "id": "m9", "text": "late"}])
    )
    assert projector.final_text == "late"


steps = st.lists(
    st.one_of(
        st.builds(words, st.text("ab", max_size=3), st.sampled_from(["m1", "m2"])),
        st.builds(run, st.sampled_from("abcd"), done=st.booleans()),
        st.builds(lambda: completed(type="reasoning", id="r", summary=["hm"])),
        st.builds(lambda: completed(type="webSearch", id="w", query="q")),
        st.builds(used, st.integers(1, 9)),
    ),
    max_size=14,
)


@hypothesis.given(steps, st.sampled_from(["completed", "interrupted", "failed"]))
def test_whatever_happens_roles_alternate_and_every_call_has_one_result(
    notices: list[CodexNotification], status: str
) -> None:
    projector, events = project(*notices, ended(status))
    events += projector.close(finish="interrupted")
    again, repeated = project(*notices, ended(status))
    repeated += again.close(finish="interrupted")
    assert [msgspec.json.encode(event) for event in events] == [
        msgspec.json.encode(event) for event in repeated
    ]
    history = ConversationHistory()
    for number, event in enumerate(events, 1):
        history.add(number, event)
    assert history.open_calls == {}
    begun = [event.call_id for event in events if isinstance(event, ToolStarted)]
    assert sorted(begun) == sorted(
        event.call_id for event in events if isinstance(event, ToolFinished)
    )
    for before, after in zip(history.messages, history.messages[1:], strict=False):
        assert not (
            isinstance(before, AssistantMessage)
            and before.tool_calls
            and not isinstance(after, ToolFinished)
        )

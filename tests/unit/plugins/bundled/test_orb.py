"""The orb's state machine: what it says of a run, of several at once, and of those who died without a word."""

import pytest

from hermes.plugins.bundled.orb.dashboard.orb import LASTS, Mood, Orb


def _states(*events: tuple[str, dict[str, object]], session: str = "s") -> list[str]:
    """The state after each event."""
    orb = Orb()
    found: list[str] = []
    for number, (kind, fields) in enumerate(events):
        orb.take({"type": kind, "session_id": session, **fields}, float(number))
        mood = orb.mood(float(number))
        found.append(f"tool {mood.tool}" if mood.state == "tool" else mood.state)
    return found


def test_a_turn_from_the_first_word_to_the_last() -> None:
    assert _states(
        ("agent.message.user", {"text": "do it"}),
        ("agent.turn.started", {}),
        ("agent.reasoning.delta", {"text": "hm"}),
        ("agent.message.delta", {"text": "I will"}),
        ("agent.message.assistant", {"tool_calls": [{}]}),
        ("agent.tool.started", {"call_id": "1", "name": "terminal"}),
        ("agent.approval.requested", {"call_id": "1", "name": "terminal"}),
        ("agent.approval.answered", {"call_id": "1", "answer": "once"}),
        ("agent.tool.progress", {"call_id": "1"}),
        ("agent.tool.finished", {"call_id": "1", "name": "terminal"}),
        ("agent.message.delta", {"text": "Done."}),
        ("agent.message.assistant", {"text": "Done."}),
        ("agent.turn.ended", {"reason": "done"}),
    ) == [
        *("listening", "thinking", "thinking", "speaking", "thinking", "tool terminal", "waiting", "tool terminal"),
        *("tool terminal", "thinking", "speaking", "speaking", "idle"),
    ]  # fmt: skip


def test_what_a_terminal_shows() -> None:
    assert _states(
        ("tui.message.start", {}),
        ("tui.reasoning.delta", {"text": "hm"}),
        ("tui.tool.generating", {"name": "read_file"}),
        ("tui.tool.start", {"name": "read_file"}),
        ("tui.tool.complete", {"name": "read_file"}),
        ("tui.message.delta", {"text": "It says"}),
        ("tui.message.complete", {}),
        ("tui.error", {"message": "no"}),
    ) == [
        "thinking",
        "thinking",
        "thinking",
        "tool read_file",
        "thinking",
        "speaking",
        "idle",
        "error",
    ]


def test_what_a_gateway_says() -> None:
    assert _states(
        ("gateway.startup", {"platform": "telegram"}),
        ("gateway.command.status", {"platform": "telegram"}),
        ("gateway.agent.start", {"platform": "telegram"}),
        ("gateway.agent.step", {"tool_names": ["web_search"]}),
        ("gateway.agent.step", {"tool_names": []}),
        ("gateway.agent.end", {"reason": "failed"}),
    ) == ["idle", "listening", "thinking", "tool web_search", "speaking", "error"]


def test_a_gateway_s_step_and_the_calls_themselves_are_not_counted_twice() -> None:
    assert _states(
        ("gateway.agent.step", {"tool_names": ["one"]}),
        ("agent.tool.started", {"call_id": "1", "name": "one"}),
        ("agent.tool.finished", {"call_id": "1", "name": "one"}),
    ) == ["tool one", "tool one", "thinking"]


def test_of_two_tools_the_one_that_still_runs_is_shown() -> None:
    assert _states(
        ("agent.tool.started", {"call_id": "1", "name": "one"}),
        ("agent.tool.started", {"call_id": "2", "name": "two"}),
        ("agent.tool.finished", {"call_id": "2", "name": "two"}),
        ("agent.tool.finished", {"call_id": "1", "name": "one"}),
    ) == ["tool one", "tool two", "tool one", "thinking"]


@pytest.mark.parametrize(
    ("reason", "state"),
    [("done", "idle"), ("interrupted", "idle"), ("failed", "error"), ("crashed", "error"), ("refused", "error"),
     ("budget", "error")],
)  # fmt: skip
def test_how_a_turn_ends(reason: str, state: str) -> None:
    assert _states(
        ("agent.turn.started", {}), ("agent.turn.ended", {"reason": reason})
    ) == ["thinking", state]


@pytest.mark.parametrize(
    "kind",
    [
        "agent.auxiliary.called",
        "agent.learning.proposed",
        "tui.unheard.of",
        "agent.interrupt.requested",
    ],
)
def test_what_says_nothing_about_it_changes_nothing(kind: str) -> None:
    assert _states(("agent.message.delta", {}), (kind, {})) == ["speaking", "speaking"]


def test_of_several_sessions_the_one_that_matters_most_is_shown() -> None:
    orb = Orb()
    orb.take({"type": "agent.turn.started", "session_id": "a"}, 1.0)
    orb.take(
        {"type": "gateway.agent.start", "session_id": "b", "platform": "telegram"}, 2.0
    )
    assert orb.mood(2.0) == Mood("thinking", "", "telegram", "b", 2)
    orb.take({"type": "agent.question.asked", "session_id": "a", "call_id": "q"}, 3.0)
    orb.take({"type": "agent.message.delta", "session_id": "b"}, 4.0)
    assert orb.mood(4.0) == Mood("waiting", "", "", "a", 2)
    orb.take({"type": "agent.turn.ended", "session_id": "a", "reason": "done"}, 5.0)
    assert orb.mood(5.0) == Mood("speaking", "", "telegram", "b", 1)


@pytest.mark.parametrize(
    "kind",
    ["agent.turn.started", "agent.message.delta", "agent.tool.started", "tui.error"],
)
def test_nobody_is_believed_for_ever(kind: str) -> None:
    orb = Orb()
    orb.take({"type": kind, "session_id": "a", "name": "x"}, 0.0)
    lasts = LASTS[orb.mood(0.0).state]
    assert orb.until(0.0) == lasts
    assert orb.mood(lasts).busy == 1
    assert orb.mood(lasts + 0.1) == Mood()
    assert orb.until(lasts + 0.1) is None


def test_sessions_without_end_take_no_memory_without_end() -> None:
    orb = Orb()
    for number in range(1000):
        orb.take({"type": "agent.turn.started", "session_id": str(number)}, 1.0)
    assert orb.mood(1.0).busy == 256


def test_events_without_a_session_are_one_of_their_own() -> None:
    orb = Orb()
    orb.take({"type": "gateway.agent.start"}, 1.0)
    assert orb.mood(1.0) == Mood("thinking", "", "", "gateway", 1)

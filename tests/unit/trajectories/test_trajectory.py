"""Trajectories from rows of a log: whole, in order, without what was undone; and in each format."""

import re
from typing import Any, NamedTuple

import msgspec
import pytest

from hermes.schema.event_base import Event
from hermes.schema.events import (
    SessionCreated,
    SessionPrompted,
    SessionScored,
    SessionTrimmed,
    SessionUndone,
    TurnEnded,
    TurnStarted,
)
from hermes.schema.messages import (
    AssistantMessage,
    ToolCall,
    ToolFinished,
    Usage,
    UserMessage,
)
from hermes.schema.tool_spec import ToolSpec
from hermes.trajectories.atif import atif
from hermes.trajectories.compression import compressed
from hermes.trajectories.formats import ExportChoice, encoded
from hermes.trajectories.openai_messages import openai_messages, session_file
from hermes.trajectories.sharegpt import sharegpt
from hermes.trajectories.statistics import statistics_of
from hermes.trajectories.trajectory import Trajectory, read_trajectory

TOOL = ToolSpec(
    name="terminal", description="Runs a command.", parameters={"type": "object"}
)


class LoggedRow(NamedTuple):
    seq: int
    ts: float
    turn: str
    event: Event | None
    session: str = "s1"


def rows(*events: Event, turn: str = "t1") -> list[LoggedRow]:
    return [
        LoggedRow(seq, 1_800_000_000.0 + seq, turn, event)
        for seq, event in enumerate(events, 1)
    ]


def reply(
    text: str, *calls: tuple[str, str], reasoning: str = "", cost: float | None = 0.25
) -> AssistantMessage:
    return AssistantMessage(
        text=text,
        reasoning=reasoning,
        tool_calls=tuple(
            ToolCall(id=one, name="terminal", arguments=arguments)
            for one, arguments in calls
        ),
        finish="tool_calls" if calls else "stop",
        model="fake-1",
        usage=Usage(input_tokens=100, output_tokens=10, cost_usd=cost),
    )


def result(call: str, text: str, *, ok: bool = True) -> ToolFinished:
    return ToolFinished(call_id=call, name="terminal", text=text, ok=ok)


WORK = (
    SessionCreated(surface="batch"),
    SessionPrompted(system=("You are Hermes.", "Today."), tools=(TOOL,)),
    UserMessage(text="count the files"),
    TurnStarted(inputs=(3,)),
    reply("", ("a", '{"command":"ls"}'), ("b", "not json"), reasoning="look first"),
    result("b", '{"n": 2}', ok=False),
    result("a", "x y"),
    reply("There are 2."),
    TurnEnded(reason="done"),
    SessionScored(score=0.5, by="user"),
)


@pytest.fixture
def work() -> Trajectory:
    return read_trajectory(rows(*WORK))


def test_a_trajectory_has_everything_in_the_order_the_model_saw_it(
    work: Trajectory,
) -> None:
    said = [one.message for one in work.messages]
    assert said == [WORK[2], WORK[4], WORK[6], WORK[5], WORK[7]]
    assert [one.ts - 1_800_000_000 for one in work.messages] == [3, 5, 7, 6, 8]
    assert (work.session, work.surface, work.model) == ("s1", "batch", "fake-1")
    assert (work.is_finished, work.has_reasoning, work.score) == (True, True, 0.5)
    assert work.usage == Usage(input_tokens=200, output_tokens=20, cost_usd=0.5)


def test_what_was_shortened_for_the_model_is_whole_and_what_was_undone_is_not() -> None:
    trimmed = SessionTrimmed(call_ids=("a",))
    found = read_trajectory(rows(*WORK, trimmed))
    assert "x y" in [one.text for one in found.results]
    undone = read_trajectory(rows(*WORK, SessionUndone(since=4, turns=("t1",))))
    assert undone.messages == ()


def test_a_turn_that_died_after_its_answer_counts_as_finished() -> None:
    assert read_trajectory(rows(*WORK[:8])).is_finished
    crashed = read_trajectory(rows(*WORK[:8], TurnEnded(reason="crashed")))
    assert crashed.is_finished
    assert not read_trajectory(rows(*WORK[:7], TurnEnded(reason="crashed"))).is_finished


def test_sharegpt_has_the_shape_of_the_original(work: Trajectory) -> None:
    document = sharegpt(work)
    turns = document["conversations"]
    assert [one["from"] for one in turns] == ["system", "human", "gpt", "tool", "gpt"]
    tools = re.search(r"<tools>\n(.*)\n</tools>", turns[0]["value"])
    assert tools is not None
    assert msgspec.json.decode(tools[1]) == [
        {
            "name": "terminal",
            "description": "Runs a command.",
            "parameters": {"type": "object"},
            "required": None,
        }
    ]
    assert turns[2]["value"] == (
        "<think>\nlook first\n</think>\n"
        '<tool_call>\n{"name":"terminal","arguments":{"command":"ls"}}\n</tool_call>\n'
        '<tool_call>\n{"name":"terminal","arguments":{"_raw":"not json"}}\n</tool_call>'
    )
    assert turns[3]["value"] == (
        '<tool_response>\n{"tool_call_id":"a","name":"terminal","content":"x y"}\n</tool_response>\n'
        '<tool_response>\n{"tool_call_id":"b","name":"terminal","content":{"n":2}}\n</tool_response>'
    )
    assert turns[4]["value"] == "<think>\n\n</think>\nThere are 2."
    assert (document["completed"], document["model"]) == (True, "fake-1")
    assert document["timestamp"] == "2027-01-15T08:00:10.000Z"


def test_openai_messages_keep_arguments_as_the_model_wrote_them(
    work: Trajectory,
) -> None:
    document = openai_messages(work)
    roles = [one["role"] for one in document["messages"]]
    assert roles == ["system", "user", "assistant", "tool", "tool", "assistant"]
    calls = document["messages"][2]["tool_calls"]
    assert calls[1]["function"] == {"name": "terminal", "arguments": "not json"}
    assert document["messages"][2]["reasoning_content"] == "look first"
    assert document["messages"][3]["tool_call_id"] == "a"
    assert document["tools"][0]["function"]["name"] == "terminal"
    assert document["metadata"]["score"] == 0.5


def test_a_session_file_counts_its_messages(work: Trajectory) -> None:
    document = session_file(work)
    assert document["message_count"] == len(document["messages"]) == 5
    assert document["system_prompt"] == "You are Hermes.\n\nToday."
    assert document["platform"] == "batch"


# What the specification of ATIF 1.5 allows; anything else is an error there.
_ATIF_ROOT = {"schema_version", "session_id", "agent", "steps", "notes", "final_metrics", "extra"}  # fmt: skip
_OF_AGENTS = {"model_name", "reasoning_content", "tool_calls", "metrics"}
_ATIF_STEP = {"step_id", "timestamp", "source", "message", "observation"} | _OF_AGENTS


def check_atif(document: dict[str, Any]) -> None:
    """What validators of the format check."""
    assert set(document) <= _ATIF_ROOT
    assert document["schema_version"] == "ATIF-v1.5"
    for number, step in enumerate(document["steps"], 1):
        assert step["step_id"] == number
        assert set(step) <= _ATIF_STEP
        assert step["source"] in {"system", "user", "agent"}
        assert isinstance(step["message"], str)
        if step["source"] != "agent":
            assert not set(step) & _OF_AGENTS
        calls = {one["tool_call_id"] for one in step.get("tool_calls", ())}
        for one in step.get("observation", {}).get("results", ()):
            assert one["source_call_id"] in {None, *calls}
        for call in step.get("tool_calls", ()):
            assert isinstance(call["arguments"], dict)


def test_atif_steps_hold_the_results_of_their_calls(work: Trajectory) -> None:
    document = atif(work)
    check_atif(document)
    sources = [one["source"] for one in document["steps"]]
    assert sources == ["system", "user", "agent", "agent"]
    step = document["steps"][2]
    assert step["metrics"]["cost_usd"] == 0.25
    assert step["timestamp"] == "2027-01-15T08:00:05.000Z"
    assert step["observation"]["results"] == [
        {"source_call_id": "a", "content": "x y"},
        {"source_call_id": "b", "content": '{"n": 2}'},
    ]
    assert document["final_metrics"]["total_prompt_tokens"] == 200
    assert document["final_metrics"]["total_steps"] == 4


def test_an_unknown_price_is_left_out_rather_than_called_zero() -> None:
    answer = reply("hi", cost=None)
    found = read_trajectory(
        rows(UserMessage(text="x"), TurnStarted(inputs=(1,)), answer)
    )
    assert "total_cost_usd" not in atif(found)["final_metrics"]
    assert statistics_of([found]).unpriced == 1


@pytest.mark.parametrize(
    ("choice", "why"),
    [
        (ExportChoice(finished=True), None),
        (ExportChoice(min_score=0.5), None),
        (ExportChoice(min_score=0.6), "with a score below 0.6"),
        (ExportChoice(max_tokens=10), "too long for 10 tokens"),
    ],
)
def test_filters_say_why_they_leave_a_trajectory_out(
    work: Trajectory, choice: ExportChoice, why: str | None
) -> None:
    taken = choice.selected(work)
    assert taken == (work if why is None else why)


def long_work() -> Trajectory:
    events: list[Event] = [UserMessage(text="task"), TurnStarted(inputs=(1,))]
    for number in range(20):
        events += [
            reply(f"step {number}", (f"c{number}", "{}")),
            result(f"c{number}", f"{number} " + "word " * 400),
        ]
    return read_trajectory(rows(*events, reply("finished"), TurnEnded(reason="done")))


@pytest.mark.parametrize("most", [8_000, 4_000, 3_000])
def test_compression_keeps_the_ends_and_every_result_with_its_call(most: int) -> None:
    whole = long_work()
    short = compressed(whole, most)
    assert short is not None
    assert short.tokens <= most < whole.tokens
    assert short.messages[:3] == whole.messages[:3]
    assert short.messages[-4:] == whole.messages[-4:]
    calls = [call.id for one in short.replies for call in one.tool_calls]
    assert [one.call_id for one in short.results] == calls
    check_atif(atif(short))


def test_compression_says_what_it_left_out() -> None:
    short = compressed(long_work(), 3_000)
    assert short is not None
    notes = [one.message.text for one in short.messages if "left out here" in one.message.text]  # fmt: skip
    assert len(notes) == 1
    assert "terminal (" in notes[0]
    assert compressed(long_work(), 300) is None


def test_statistics_count_calls_failures_and_reasoning(work: Trajectory) -> None:
    found = statistics_of([work, work])
    assert found.endings == {"done": 2}
    assert (found.replies, found.replies_with_reasoning) == (4, 2)
    (tool,) = found.tools
    assert (tool.name, tool.calls, tool.failures) == ("terminal", 4, 2)
    assert (found.cost_usd, found.mean_score) == (1.0, 0.5)


def test_every_format_is_one_line_of_json(work: Trajectory) -> None:
    for line in (encoded(work, "sharegpt"), encoded(work, "openai"), encoded(work, "atif")):  # fmt: skip
        assert "\n" not in line
        assert msgspec.json.decode(line)

"""A tool call on one line."""

from typing import Any

import pytest

from hermes.surfaces.terminal.call_words import call_words
from hermes.surfaces.terminal.style import Style
from hermes.surfaces.terminal.tool_line import (
    ASCII_MARKS,
    Marks,
    RunningCalls,
    marks_for,
)

PLAIN = Style(enabled=False)


def line(arguments: str, *, columns: int = 80, **result: Any) -> str:
    calls = RunningCalls()
    calls.on_event(
        {
            "type": "agent.tool.started",
            "call_id": "c",
            "name": "terminal",
            "arguments": arguments,
            "ts": 1.0,
        }
    )
    finished = {
        "type": "agent.tool.finished",
        "call_id": "c",
        "name": "terminal",
        "ts": 3.5,
        **result,
    }
    return calls.finish(finished, PLAIN, Marks(), columns)


def test_it_shows_the_arguments_and_the_time() -> None:
    assert line('{"command": "make test", "timeout": 5}') == "✓ Run make test 2.5 s"


def test_a_failure_shows_its_first_words() -> None:
    assert (
        line('{"command": "make"}', ok=False, text="exit code 2\nmore")
        == "✗ Run make 2.5 s · exit code 2 more"
    )


def test_arguments_of_many_lines_and_broken_ones_stay_on_one_line() -> None:
    assert line('{"command": "a\\nb", "content": "long"}') == "✓ Run a … 2.5 s"
    assert line("{broken\x1b[2J") == "✓ Run (unreadable arguments) 2.5 s"


@pytest.mark.parametrize("columns", [20, 40, 80])
def test_it_fits_the_screen(columns: int) -> None:
    arguments = '{"command": "' + "x" * 500 + '"}'
    assert len(line(arguments, columns=columns)) <= columns
    failed = line(arguments, columns=columns, ok=False, text="y" * 500)
    assert all(len(one) <= columns for one in failed.split("\n"))


def test_waiting_for_an_answer_does_not_count() -> None:
    calls = RunningCalls()
    calls.on_event(
        {
            "type": "agent.tool.started",
            "call_id": "c",
            "name": "t",
            "arguments": "{}",
            "ts": 1.0,
        }
    )
    assert calls.running() == "t"
    calls.on_event(
        {
            "type": "agent.approval.answered",
            "call_id": "c",
            "answer": "once",
            "ts": 61.0,
        }
    )
    finished = {"type": "agent.tool.finished", "call_id": "c", "name": "t", "ts": 61.2}
    assert calls.finish(finished, PLAIN, Marks(), 80) == "✓ t 200 ms"
    assert calls.running() == ""


def test_a_terminal_without_unicode_gets_ascii() -> None:
    assert marks_for("ascii") == marks_for(None) == ASCII_MARKS
    assert marks_for("UTF-8") == Marks()


def test_a_command_that_failed_says_how_it_ended_and_what_it_said_last() -> None:
    calls = RunningCalls()
    calls.on_event(
        {
            "type": "agent.tool.started",
            "call_id": "c",
            "name": "terminal",
            "arguments": "{}",
            "ts": 1.0,
        }
    )
    text = "one\ntwo\nthree\nfour\n[exit code 2; now in /x]"
    done = {
        "type": "agent.tool.finished",
        "call_id": "c",
        "name": "terminal",
        "ok": False,
        "text": text,
        "ts": 2.0,
    }
    shown = calls.finish(done, Style(enabled=False), Marks(), 80).split("\n")
    assert shown == [
        "✗ Run 1.0 s · exit code 2",
        "  │ two",
        "  │ three",
        "  │ four",
    ]


def test_a_reason_that_does_not_fit_beside_the_call_is_whole_below_it() -> None:
    reason = "Not run: this would delete everything, and is never allowed."
    calls = RunningCalls()
    for name, text in (("write_file", reason), ("write_file", "word " * 100)):
        event = {"call_id": "c", "name": name, "ts": 1.0, "ok": False, "text": text}
        calls.on_event(
            {
                "type": "agent.tool.started",
                "call_id": "c",
                "name": name,
                "arguments": '{"path": "a.txt", "content": ""}',
                "ts": 0.0,
            }
        )
        shown = calls.finish(event, PLAIN, Marks(), 40).split("\n")
        assert shown[0] == "✗ Write a.txt 1.0 s"
        said = " ".join(line.removeprefix("  │ ") for line in shown[1:])
        assert said == reason or (len(shown) == 5 and said.endswith("…"))
        assert all(len(line) < 40 for line in shown)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("mcp.hermes.web_search", "Search the web for tea"),
        ("mcp.lab.look", "lab: look tea"),
        ("mcp__lab__look", "lab: look tea"),
    ],
)
def test_a_tool_of_another_engine_or_server_is_named_in_words(
    name: str, words: str
) -> None:
    assert call_words(name, '{"query": "tea"}').label == words

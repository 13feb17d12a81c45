"""The rows of a tool call."""

from hermes.core.fence import fenced
from hermes.surfaces.terminal.styled_text import plain
from hermes.surfaces.terminal.tool_line import Marks
from hermes.surfaces.tui.tool_cards import ToolCards


def rows(text: str) -> list[str]:
    cards = ToolCards(Marks(), "")
    call = {"call_id": "c", "name": "terminal", "ts": 1.0}
    started = {"type": "agent.tool.started", "arguments": '{"command": "date"}'}
    cards.on_event(started | call)
    finished = {"type": "agent.tool.finished", "text": text, "ok": True}
    return [plain(row) for row in cards.finish(finished | call, 80)]


def test_output_from_outside_is_shown_without_its_fence() -> None:
    assert rows(fenced("today\n[exit code 0]", "network"))[1:] == ["  │ today"]
    assert rows(fenced("(no output) [exit code 0]", "network"))[1:] == []


def test_a_call_that_did_not_start_is_shown_in_words() -> None:
    cards = ToolCards(Marks(), "")
    call = {"id": "c", "name": "present_plan", "arguments": '{"steps": 3}'}
    cards.on_event({"type": "agent.message.assistant", "tool_calls": [call]})
    event = {"call_id": "c", "name": "present_plan", "text": "Not run: a title is missing", "ok": False, "ts": 2.0}  # fmt: skip
    shown = [plain(row) for row in cards.finish(event, 80)]
    assert shown == ["✗ Show the plan Not run: a title is missing"]
    unknown = {**event, "call_id": "d", "name": "no_such_tool"}
    assert plain(next(cards.finish(unknown, 80))).startswith("✗ no_such_tool ")

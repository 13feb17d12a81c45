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

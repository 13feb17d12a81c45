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


def test_a_question_is_not_repeated_below_the_answer_that_is_on_the_screen() -> None:
    call = {"call_id": "c", "name": "ask_user", "ts": 1.0}
    started = {"type": "agent.tool.started", "arguments": '{"question": "Which?"}'}
    finished = {"type": "agent.tool.finished", "text": "red", "ok": True}
    answered = {"type": "agent.question.answered", "text": "red"}
    for by, shown in (("cli", ""), ("nobody", "✓ Ask Which? 0 ms  │ red")):
        cards = ToolCards(Marks(), "")
        for one in (started, answered | {"by": by}):
            cards.on_event(one | call)
        rows = cards.finish(finished | call, 80)
        assert "".join(map(plain, rows)) == shown


def test_advice_to_the_model_is_not_shown_below_a_failed_call() -> None:
    call = {"call_id": "c", "name": "edit_file", "ts": 1.0}
    started = {"type": "agent.tool.started", "arguments": '{"path": "a.py"}'}
    text = "Not run: It is there twice. Nothing was changed. Set replace_all."
    finished = {"type": "agent.tool.finished", "text": text, "ok": False}
    cards = ToolCards(Marks(), "")
    cards.on_event(started | call)
    shown = [plain(row) for row in cards.finish(finished | call, 80)]
    assert shown == [
        "✗ Edit a.py 0 ms · Not run: It is there twice. Nothing was changed."
    ]
    details = map(plain, cards.details.rows(80, Marks()))
    assert any("Set replace_all." in row for row in details)


def test_a_no_is_not_repeated_beside_the_call() -> None:
    call = {"call_id": "c", "name": "terminal", "ts": 1.0}
    started = {"type": "agent.tool.started", "arguments": '{"command": "date"}'}
    text = "Not run: the user said no: not today"
    finished = {"type": "agent.tool.finished", "text": text, "ok": False}
    denied = {"type": "agent.approval.answered", "answer": "deny"}
    for by, reason in (("cli", ""), ("policy", f" · {text}")):
        cards = ToolCards(Marks(), "")
        for one in (started, denied | {"by": by}):
            cards.on_event(one | call)
        rows = cards.finish(finished | call, 80)
        assert "".join(map(plain, rows)) == f"✗ Run date 0 ms{reason}"


def test_lines_that_the_tool_left_out_count_as_hidden() -> None:
    note = "[3,780 lines, 18,901 of 48,894 bytes left out here; all of it is in /x]"
    shown = rows(f"1\n2\n{note}\n3783\n3784\n3785\n3786\n[exit code 0]")
    assert shown[1:] == ["  │ … 3,783 more lines", "  │ 3784", "  │ 3785", "  │ 3786"]

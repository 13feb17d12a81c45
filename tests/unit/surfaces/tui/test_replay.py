"""The end of a conversation, shown again."""

import pytest
from tests.unit.surfaces.tui.test_session_view import FakeScreen, event

from hermes.surfaces.tui.replay import ReplayScreen, replay


def played(replies: int, *, echoes: bool = False) -> ReplayScreen:
    screen = ReplayScreen(FakeScreen(echoes=echoes))
    for number in range(replies):
        screen.line(f"> question {number}\n")
        screen.write(f"**answer** {number}\n\nand a `second` paragraph")
    screen.end_reply()
    return screen


@pytest.mark.parametrize("echoes", [False, True])
def test_the_last_lines_are_the_end_of_all_lines(echoes: bool) -> None:
    screen = played(8, echoes=echoes)
    everything, is_cut = screen.last_lines(1_000)
    assert not is_cut
    assert everything[:2] == ["> question 0", ""]
    assert len(everything) == 8 * 5
    for most in range(1, len(everything)):
        assert screen.last_lines(most) == (everything[-most:], True)
    assert screen.last_lines(len(everything)) == (everything, False)


def test_a_question_is_shown_with_its_answer() -> None:
    call = {"call_id": "q", "name": "ask_user"}
    events = (
        event("turn.started"),
        event("tool.started", **call, arguments='{"question": "Which?"}'),
        event("question.asked", **call, text="Which?", options=["red"]),
        event("question.answered", **call, text="red", by="cli"),
        event("tool.finished", **call, text="red", ok=True),
        event("turn.ended", reason="done"),
    )
    screen = FakeScreen()
    replay(events, "s", screen)
    assert "? Which?\nYou: red\n" in screen.text
    assert "Ask Which?" not in screen.text

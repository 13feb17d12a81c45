"""What a chat shows of a session that somebody comes back to, on a real database."""

import subprocess
import sys
from pathlib import Path

from tests.unit.surfaces.tui.test_session_view import FakeScreen

from hermes.app import App, build
from hermes.app.undo import Rewind, shadows_of
from hermes.events import Bus
from hermes.schema.events import SessionCreated, TurnEnded, TurnStarted
from hermes.schema.messages import AssistantMessage, ToolFinished, UserMessage
from hermes.settings import Home, Settings
from hermes.surfaces.tui.past import show_past


def say(app: App, session: str, text: str, answer: str, *, results: int = 0) -> None:
    (asked,) = app.record(session, UserMessage(text=text))
    turn = app.ids.turn()
    app.record(session, TurnStarted(inputs=(asked.seq,)), turn=turn)
    for number in range(results):
        app.record(
            session,
            ToolFinished(call_id=str(number), name="x", text="", ok=True),
            turn=turn,
        )
    app.record(
        session, AssistantMessage(text=answer), TurnEnded(reason="done"), turn=turn
    )


def recalled(app: App, session: str) -> str:
    screen = FakeScreen(echoes=True)
    assert not show_past(app, session, screen).open_rows
    return screen.text


def test_what_was_undone_stays_undone(tmp_path: Path) -> None:
    with build(Settings(), Home(tmp_path), bus=Bus()) as app:
        session = app.begin(SessionCreated(surface="test", cwd=str(tmp_path))).session
        say(app, session, "first question", "first answer")
        say(app, session, "second question", "second answer", results=250)
        rewind = Rewind(app, shadows_of(app))
        rewind.undo(session)
        shown = recalled(app, session)
        assert "first question" in shown
        assert "first answer" in shown
        assert "second" not in shown
        rewind.redo(session)
        assert "second answer" in recalled(app, session)
        rewind.undo(session, turns=2)
        assert recalled(app, session).strip() == ""


def test_how_the_last_turn_ended_is_shown_and_nothing_that_hermes_told_the_model(
    tmp_path: Path,
) -> None:
    with build(Settings(), Home(tmp_path), bus=Bus()) as app:
        session = app.begin(SessionCreated(surface="test", cwd=str(tmp_path))).session
        (asked,) = app.record(session, UserMessage(text="a long task"))
        app.record(
            session,
            TurnStarted(inputs=(asked.seq,)),
            UserMessage(text="no more calls will run", origin="hermes"),
            AssistantMessage(text="half of it is done"),
            TurnEnded(reason="budget", detail="stopped after 4 steps"),
            turn=app.ids.turn(),
        )
        shown = recalled(app, session)
        assert "a long task" in shown
        assert "half of it is done" in shown
        assert "Stopped after 4 steps" in shown
        assert "no more calls" not in shown


def test_the_past_is_shown_without_the_live_screen_and_the_agent() -> None:
    shown = "hermes.surfaces.tui.past, hermes.surfaces.terminal.markdown.render"
    later = "'prompt_toolkit', 'hermes.app.agent', 'hermes.tools', 'pygments'"
    code = f"import sys, {shown}; print([name for name in ({later}) if name in sys.modules])"
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert ran.stdout.strip() == "[]"

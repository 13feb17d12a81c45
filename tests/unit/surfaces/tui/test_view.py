"""What a chat shows of a session's events."""

from typing import Any

import pytest

from hermes.surfaces.terminal.style import Style
from hermes.surfaces.terminal.toolline import Marks
from hermes.surfaces.tui.commands import SLASHES, find_slash
from hermes.surfaces.tui.view import ChatView


class FakeScreen:
    """Implements the `Screen` port; keeps what was shown."""

    def __init__(self, *, echoes: bool = False, columns: int = 80) -> None:
        self.style = Style(enabled=False)
        self.marks = Marks()
        self.echoes = echoes
        self.columns = columns
        self.text = ""
        self.now = ""
        self.is_whole = True

    def write(self, text: str) -> None:
        self.is_whole = False
        self.text += text

    def line(self, text: str = "") -> None:
        self.text += ("\n" if self.text and not self.text.endswith("\n") else "") + text + "\n"

    def whole(self) -> None:
        self.is_whole = True

    def status(self, text: str) -> None:
        self.now = text

    def ask(self, label: str) -> None:
        self.now = label

    async def read(self) -> str | None:
        return None

    def leave(self) -> None:
        self.now = "left"


def event(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": f"agent.{kind}", "session_id": "s", "ts": 10.0, **fields}


def viewed(*events: dict[str, Any], screen: FakeScreen | None = None) -> FakeScreen:
    screen = screen or FakeScreen()
    view = ChatView(screen, "s")
    for one in events:
        view.see(one)
    return screen


SAID = event("message.user", text="hello\nyou", seq=2)
STARTED = event("turn.started", inputs=[2])
ENDED = event("turn.ended", reason="done", ts=11.5, usage={"input_tokens": 1000, "output_tokens": 20, "cost_usd": 0.5})


def test_a_whole_turn() -> None:
    screen = viewed(
        SAID,
        STARTED,
        event("tool.started", call_id="c", name="read_file", arguments='{"path": "a.py"}'),
        event("tool.finished", call_id="c", name="read_file", ts=10.2),
        event("message.delta", text="It is "),
        event("message.delta", text="short."),
        event("message.assistant", text="It is short."),
        ENDED,
    )
    assert screen.text == ("› hello\n  you\n✓ read_file a.py 200 ms\nIt is short.\n1.5 s · 1,020 tokens · $0.50\n\n")
    assert screen.now == ""


def test_the_status_says_what_goes_on() -> None:
    screen = viewed(SAID, STARTED)
    assert screen.now == "… thinking"
    started = event("tool.started", call_id="c", name="terminal", arguments='{"command": "make"}')
    assert viewed(SAID, STARTED, started).now == "… terminal make"
    assert viewed(SAID, STARTED, event("message.user", text="more", seq=5)).now == "… thinking · 1 waiting"
    streaming = (SAID, STARTED, event("message.user", text="more", seq=5), event("message.delta", text="x"))
    assert viewed(*streaming).now == "… 1 waiting"


def test_a_screen_that_echoes_shows_nothing_twice() -> None:
    assert "hello" not in viewed(SAID, STARTED, screen=FakeScreen(echoes=True)).text


def test_an_answer_that_was_not_streamed_is_shown_whole() -> None:
    assert viewed(STARTED, event("message.assistant", text="At once.")).text == "At once."


DELTA = event("message.delta", text="half a wo")


@pytest.mark.parametrize(
    "last", [event("message.assistant", text="half a wo"), event("model.retried", reason="server"), ENDED]
)
def test_the_screen_is_told_when_what_was_written_is_whole(last: dict[str, Any]) -> None:
    assert not viewed(STARTED, DELTA).is_whole
    assert viewed(STARTED, DELTA, last).is_whole


def test_troubles_are_said() -> None:
    screen = viewed(
        STARTED,
        event("model.retried", reason="server", detail="500 from the service", delay=2.0),
        event("reply.rejected", reason="empty", detail="the model answered with nothing"),
        event("turn.ended", reason="failed", detail="gave up", ts=12.0),
    )
    assert "Trying again in 2.0 s: 500 from the service" in screen.text
    assert "The reply could not be used: the model answered with nothing" in screen.text
    assert "It failed. gave up" in screen.text


def test_nudges_and_other_sessions_are_not_shown() -> None:
    nudge = event("message.user", text="go on", seq=3, origin="hermes")
    other = {**event("message.delta", text="elsewhere"), "session_id": "t"}
    screen = viewed(nudge, event("turn.started", inputs=[3]), other)
    assert screen.text == ""


def test_slash_commands_are_found_by_name_or_beginning() -> None:
    names = [slash.name for slash in SLASHES]
    assert len(names) == len(set(names))
    assert {"help", "new", "resume", "sessions", "title", "model", "cost", "status", "stop", "quit"} <= set(names)
    assert [slash.name if (slash := find_slash(name)) else None for name in ("help", "q", "s", "")] == [
        "help",
        "quit",
        None,
        None,
    ]

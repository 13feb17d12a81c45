"""What a one-shot run shows while it goes on."""

import io
import sys
from typing import Any, cast

import pytest

from hermes.app.agent import Agent
from hermes.surfaces.cli.ask_screen import AskScreen


class Tty(io.StringIO):
    # pyrefly: ignore[missing-override-decorator]
    def isatty(self) -> bool:
        return True


def shown(
    monkeypatch: pytest.MonkeyPatch, err: io.StringIO, *events: dict[str, Any]
) -> tuple[bool, str]:
    """Whether it streams, and what a terminal on stdout shows."""
    out = Tty()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    screen = AskScreen(cast("Agent", None), "s")
    for event in events:
        screen.on_event({"session_id": "s", "ts": 1.0, **event})
    screen.finish()
    return screen.streams, out.getvalue()


RETRIED = (
    {"type": "agent.message.delta", "text": "PARTIAL"},
    {"type": "agent.model.retried", "reason": "server"},
    {"type": "agent.message.delta", "text": "WHOLE"},
)
CALLED = (
    {"type": "agent.message.delta", "text": "Let me look."},
    {
        "type": "agent.tool.started",
        "call_id": "c",
        "name": "terminal",
        "arguments": "{}",
    },
    {"type": "agent.message.delta", "text": "There."},
)


def test_a_reply_that_begins_anew_begins_a_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert shown(monkeypatch, Tty(), *RETRIED) == (True, "PARTIAL\nWHOLE\n")


def test_words_before_a_call_have_a_line_of_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert shown(monkeypatch, Tty(), *CALLED) == (True, "Let me look.\nThere.\n")


@pytest.mark.parametrize("events", [RETRIED, CALLED])
def test_nothing_is_streamed_where_stderr_is_no_terminal(
    monkeypatch: pytest.MonkeyPatch, events: tuple[dict[str, Any], ...]
) -> None:
    assert shown(monkeypatch, io.StringIO(), *events) == (False, "")

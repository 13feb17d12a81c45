"""What a one-shot run shows while it goes on."""

import io
import sys
from typing import Any, cast

import pytest

from hermes.app.agent import Agent
from hermes.surfaces.cli.ask_screen import AskScreen
from hermes.testing.emulator import Emulator


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
    return screen.streams, seen(out.getvalue())


def seen(written: str) -> str:
    """What is on a terminal after this output."""
    terminal = Emulator(80, 24)
    terminal.feed(written.replace("\n", "\r\n").encode())
    return terminal.text


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
    assert shown(monkeypatch, Tty(), *RETRIED) == (True, "PARTIAL\nWHOLE")


def test_words_before_a_call_have_a_line_of_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert shown(monkeypatch, Tty(), *CALLED) == (True, "Let me look.\nThere.")


@pytest.mark.parametrize("events", [RETRIED, CALLED])
def test_nothing_is_streamed_where_stderr_is_no_terminal(
    monkeypatch: pytest.MonkeyPatch, events: tuple[dict[str, Any], ...]
) -> None:
    assert shown(monkeypatch, io.StringIO(), *events) == (False, "")


MARKDOWN = "# Head\n\nSome **bold** words.\n\n- one\n- two\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"


def deltas(text: str, size: int) -> list[dict[str, Any]]:
    return [
        {"type": "agent.message.delta", "text": text[at : at + size]}
        for at in range(0, len(text), size)
    ]


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_markdown_is_rendered_on_a_terminal_while_it_is_written(
    monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    _, text = shown(monkeypatch, Tty(), *deltas(MARKDOWN, size))
    assert "# Head" not in text
    assert "Head\n\nSome bold words.\n\n- one\n- two\n" in text
    assert "| 1 |" not in text
    assert text.count("one") == 1


def test_a_dumb_terminal_gets_the_text_as_it_was_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TERM", "dumb")
    assert shown(monkeypatch, Tty(), *deltas(MARKDOWN, 7))[1] == MARKDOWN.rstrip()


def test_an_answer_into_a_pipe_is_the_bare_text(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    out = io.StringIO()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    AskScreen(cast("Agent", None), "s").print_answer("# Head\n\n\tcode")
    assert out.getvalue() == "# Head\n\n\tcode\n"

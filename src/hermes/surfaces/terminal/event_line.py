"""Formats an event as one line."""

from collections.abc import Mapping
from typing import Any

import msgspec

from hermes.schema.event_base import ENVELOPE_FIELDS
from hermes.surfaces.terminal.text import TextScreen, cut, moment, one_line

_MAX_LINE_CELLS = 200  # of a line written to a file
_MAX_VALUE_CELLS = 80
_encode = msgspec.json.Encoder().encode


class EventLines:
    """Formats events as lines."""

    def __init__(self, screen: TextScreen, *, dated: bool = False) -> None:
        self._screen = screen
        self._form = "%Y-%m-%d %H:%M:%S" if dated else "%H:%M:%S"

    def line(self, event: Mapping[str, Any], process: str = "") -> str:
        style = self._screen.style
        topic, ts = one_line(str(event.get("type", "?"))), event.get("ts", 0.0)
        when = (
            moment(ts, self._form) + f".{int(ts * 1000) % 1000:03}"
            if isinstance(ts, (int, float))
            else "?"
        )
        who = f" {process}" if process else ""
        session = str(event.get("session_id", ""))[-8:]
        head = f"{when}{who} {topic}{f' {session}' if session else ''}"
        room = (
            (self._screen.columns if style.enabled else _MAX_LINE_CELLS) - len(head) - 1
        )
        rest = cut(_fields(event), max(room, 10))
        head = f"{style.dim(when + who)} {_painted(style, topic)}"
        return f"{head} {style.dim(session)} {rest}".rstrip()


def _painted(style: Any, topic: str) -> str:
    if topic == "gap" or topic.endswith(
        (".error", ".failed", "_failed", ".rejected", ".retried")
    ):
        return style.red(topic)
    if topic.startswith("agent.tool."):
        return style.cyan(topic)
    if topic.startswith(("agent.approval.", "agent.question.")):
        return style.yellow(topic)
    return (
        style.green(topic) if topic.startswith("agent.message.") else style.bold(topic)
    )


def _fields(event: Mapping[str, Any]) -> str:
    return " ".join(
        f"{one_line(name)}={_value(value)}"
        for name, value in event.items()
        if name not in ENVELOPE_FIELDS
    )


def _value(value: Any) -> str:
    text = value if isinstance(value, str) else _encode(value).decode()
    return cut(one_line(text), _MAX_VALUE_CELLS) or '""'

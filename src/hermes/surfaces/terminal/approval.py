"""Questions about tool calls, as a person reads and answers them."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal, TypeAlias

from hermes.surfaces.terminal.style import Style
from hermes.surfaces.terminal.text import clean, wrap

Word: TypeAlias = Literal["once", "session", "deny"]

CHOICES = "Allow? y (once), s (this session), n (no)"

_WORDS: Mapping[str, Word] = {
    "y": "once",
    "yes": "once",
    "once": "once",
    "s": "session",
    "session": "session",
    "n": "deny",
    "no": "deny",
    "deny": "deny",
}
_MOST_LINES = 40
_PATIENCE = 0.03  # seconds: a remembered answer comes by itself, and its question is never shown


class Questions:
    """The open questions of one session; the first of them is put to the person."""

    def __init__(self, show: Callable[[Mapping[str, Any] | None], None]) -> None:
        self._show = show
        self._open: dict[str, Mapping[str, Any]] = {}
        self._shown = ""

    @property
    def current(self) -> Mapping[str, Any] | None:
        """The question that the next line answers."""
        return self._open.get(self._shown)

    def see(self, event: Mapping[str, Any]) -> None:
        """Takes notice of questions, and of answers from anywhere."""
        match event["type"]:
            case "agent.approval.requested":
                self._open[event["call_id"]] = event
                asyncio.get_running_loop().call_later(_PATIENCE, self._put_next)
            case "agent.approval.answered" | "agent.tool.finished":
                self._close(event["call_id"])
            case "agent.turn.ended":
                for call_id in list(self._open):
                    self._close(call_id)
            case _:
                pass

    async def take(self, line: str, answer: Callable[[str, Word], Awaitable[bool]]) -> bool:
        """Uses a line as the answer to the current question; False when it is not clearly one."""
        word = read_answer(line)
        if word is None or self.current is None:
            return False
        await answer(self._shown, word)
        return True

    def _close(self, call_id: str) -> None:
        self._open.pop(call_id, None)
        if call_id == self._shown:
            self._shown = ""
            self._show(None)
            self._put_next()

    def _put_next(self) -> None:
        if not self._shown and self._open:
            self._shown = next(iter(self._open))
            self._show(self._open[self._shown])


def lines_of(request: Mapping[str, Any], style: Style, columns: int) -> list[str]:
    """What will happen, whole; only a summary longer than a screen or two is cut, and says so."""
    heading = style.yellow(f"Hermes wants to use {clean(request['name'])}:")
    summary = list(wrap(clean(request.get("summary") or request["arguments"]), max(columns - 2, 20)))
    shown = [f"  {line}" for line in summary[:_MOST_LINES]]
    if len(summary) > _MOST_LINES:
        shown.append(style.dim(f"  ... {len(summary) - _MOST_LINES} more lines; all of it is in the session"))
    reason = clean(request.get("reason", ""))
    return [heading, *shown, *(style.dim(f"  ({line})") for line in wrap(reason, columns - 4) if reason)]


def read_answer(text: str) -> Word | None:
    """What a person typed; None for anything that is not clearly an answer."""
    return _WORDS.get(text.strip().lower())

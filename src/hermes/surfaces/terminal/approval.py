"""Questions to a person: may this call run, what a tool wants to know. How they read, and what counts as an answer."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

from hermes.surfaces.terminal.style import Style
from hermes.surfaces.terminal.text import clean, wrap

Word: TypeAlias = Literal["once", "session", "always", "deny"]

CHOICES = "Allow? y (once), s (this session), a (always exactly this), n (no)"
AGAIN = "Please answer y, s, a or n; after n you may tell the model why."

ASKED = frozenset(
    ("agent.approval.requested", "agent.approval.answered", "agent.question.asked", "agent.question.answered")
)
"""What a surface has to know of child agents: it is the one that can answer them."""

_WORDS: Mapping[str, Word] = {
    "y": "once",
    "yes": "once",
    "once": "once",
    "s": "session",
    "session": "session",
    "a": "always",
    "always": "always",
    "n": "deny",
    "no": "deny",
    "deny": "deny",
}
_NO_BECAUSE = re.compile(r"(?:n|no)[,:;.]?\s+(\S.*)", re.IGNORECASE | re.DOTALL)
_REACHES = {
    "network": "It may use the network.",
    "machine": "It runs outside the sandbox: it can reach your files and the network.",
}
_MOST_LINES = 40
_PATIENCE = 0.03  # seconds: a remembered answer comes by itself, and its question is never shown


class Given(NamedTuple):
    """An answer: a word about a call, with what the model should hear about a no; or the words a tool asked for."""

    call_id: str
    word: Word | None
    text: str = ""
    session: str = ""
    """The session that asked; a child of the one that is shown may."""


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
            case "agent.approval.requested" | "agent.question.asked":
                self._open[event["call_id"]] = event
                asyncio.get_running_loop().call_later(_PATIENCE, self._put_next)
            case "agent.approval.answered" | "agent.question.answered" | "agent.tool.finished":
                self._close(event["call_id"])
            case "agent.turn.ended":
                for call_id in list(self._open):
                    self._close(call_id)
            case _:
                pass

    async def take(self, line: str, give: Callable[[Given], Awaitable[bool]]) -> bool:
        """Uses a line as the answer to the current question; False when it is not clearly one."""
        request = self.current
        given = None if request is None else read_given(request, line)
        if request is None or given is None:
            return False
        await give(given._replace(session=request.get("session_id", "")))
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
    if request["type"] == "agent.question.asked":
        return _question(request, style, columns)
    heading = style.yellow(f"Hermes wants to use {clean(request['name'])}:")
    text = clean(request.get("summary") or request["arguments"])
    paint = _diff_paint(style, on="@@ " in text)
    summary = [(line, row) for line in text.split("\n") for row in wrap(line, max(columns - 2, 20))]
    shown = [f"  {paint(line, row)}" for line, row in summary[:_MOST_LINES]]
    if len(summary) > _MOST_LINES:
        shown.append(style.dim(f"  ... {len(summary) - _MOST_LINES} more lines; all of it is in the session"))
    remarks = [f"({request['reason']})"] if request.get("reason") else []
    remarks += [_REACHES[request["reach"]]] if request.get("reach") in _REACHES else []
    return [heading, *shown, *(style.dim(f"  {line}") for text in remarks for line in wrap(clean(text), columns - 2))]


def label_for(request: Mapping[str, Any], columns: int) -> str:
    """What stands before the answer."""
    if request["type"] == "agent.question.asked":
        return "Your answer"
    return CHOICES if columns >= 72 else "Allow? y/s/a/n"


def again(request: Mapping[str, Any]) -> str:
    """What to say to a line that was no answer."""
    return "Please type an answer." if request["type"] == "agent.question.asked" else AGAIN


def read_given(request: Mapping[str, Any], line: str) -> Given | None:
    """What a person typed; None for anything that is not clearly an answer."""
    text = line.strip()
    if request["type"] == "agent.question.asked":
        options = request.get("options") or ()
        chosen = options[int(text) - 1] if text.isdecimal() and 1 <= int(text) <= len(options) else text
        return Given(request["call_id"], None, chosen) if text else None
    word = _WORDS.get(text.lower())
    if word is not None:
        return Given(request["call_id"], word)
    found = _NO_BECAUSE.fullmatch(text)
    return Given(request["call_id"], "deny", found[1]) if found else None


def _question(request: Mapping[str, Any], style: Style, columns: int) -> list[str]:
    first, *more = wrap(clean(request["text"]), columns - 2)
    options = [f"  {number}. {clean(option)}" for number, option in enumerate(request.get("options") or (), 1)]
    return [
        style.yellow(f"? {first}"),
        *(style.yellow(f"  {line}") for line in more),
        *(row for option in options for row in wrap(option, columns)),
    ]


def _diff_paint(style: Style, *, on: bool) -> Callable[[str, str], str]:
    """Paints a row by the line of a diff that it is part of."""
    paints = {"+": style.green, "-": style.red, "@": style.cyan} if on else {}
    return lambda line, row: paints.get(line[:1], str)(row)

"""Questions to a person: may this call run, what a tool wants to know. How they read, and what counts as an answer."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

from hermes.core.answers import approval_hash
from hermes.core.arguments import arguments_by_name
from hermes.surfaces.terminal.style import Style
from hermes.surfaces.terminal.text import clean, count, one_line, width, wrap
from hermes.surfaces.terminal.tool_line import patched_files

Word: TypeAlias = Literal["once", "session", "always", "deny"]

_CHOICES = {
    "y": "once",
    "s": "this session",
    "a": "always exactly this",
    "n": "no",
    "v": "view",
}
_EXACTLY = "again this session"

QUESTION_EVENTS = frozenset(
    (
        "agent.approval.requested",
        "agent.approval.answered",
        "agent.question.asked",
        "agent.question.answered",
    )
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
_MAX_SUMMARY_LINES = 40
_TAIL_LINES = 8  # of them from the end
_MAX_NAMED_FILES = 5  # files of a patch
_CUT_SUMMARY_CHARS = 20_000  # characters from which on a summary may not be all
_REMEMBERED_ANSWER_WAIT_S = 0.03  # seconds: a remembered answer comes by itself, and its question is never shown
KEY_GRACE_S = (
    0.3  # seconds that a question is on the screen before a key can be meant for it
)


class PersonAnswer(NamedTuple):
    """An answer: a word about a call, with what the model should hear about a no; or the words a tool asked for."""

    call_id: str
    word: Word | None
    text: str = ""
    session: str = ""
    """The session that asked; a child of the one that is shown may."""
    shown: str = ""
    """Hash of the request that was on the screen."""


class Questions:
    """The open questions of one session; the first of them is put to the person.

    `show` gets it at once, `listen` when an answer counts: what is typed before that was meant for something else.
    """

    def __init__(
        self,
        show: Callable[[Mapping[str, Any] | None], None],
        listen: Callable[[Mapping[str, Any]], None] = lambda _: None,
        *,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self._show = show
        self._listen = listen
        self._clock = clock or (lambda: asyncio.get_running_loop().time())
        self._open: dict[
            tuple[str, str], Mapping[str, Any]
        ] = {}  # by session and call: children count for themselves
        self._shown = ("", "")
        self._since = 0.0

    @property
    def current(self) -> Mapping[str, Any] | None:
        """The question that the next line answers."""
        return self._open.get(self._shown)

    def on_event(self, event: Mapping[str, Any]) -> None:
        """Takes notice of questions, and of answers from anywhere."""
        match event["type"]:
            case "agent.approval.requested" | "agent.question.asked":
                key = _key(event)
                if key == self._shown and not _is_same(event, self._open[key]):
                    self._close(
                        key
                    )  # it is asked anew, and not as it stands on the screen
                self._open[key] = event
                asyncio.get_running_loop().call_later(
                    _REMEMBERED_ANSWER_WAIT_S, self._put_next
                )
            case (
                "agent.approval.answered"
                | "agent.question.answered"
                | "agent.tool.finished"
            ):
                self._close(_key(event))
            case "agent.turn.ended":
                for key in [
                    key for key in self._open if key[0] == event.get("session_id", "")
                ]:
                    self._close(key)
            case _:
                pass

    async def take(
        self,
        line: str,
        give: Callable[[PersonAnswer], Awaitable[bool]],
        *,
        typed_at: float | None = None,
    ) -> bool:
        """Uses a line as the answer to the current question; False when it is not clearly one, or came too early."""
        request = self.current
        given = None if request is None else parse_answer(request, line)
        if request is None or given is None or self.is_early(typed_at):
            return False
        shown = approval_hash(request) if given.word is not None else ""
        await give(given._replace(session=request.get("session_id", ""), shown=shown))
        return True

    def is_early(self, typed_at: float | None) -> bool:
        """Whether a line was sent (in the loop's time; None from a pipe) before anybody can have read the question."""
        return typed_at is not None and typed_at < self._since + KEY_GRACE_S

    def _close(self, key: tuple[str, str]) -> None:
        self._open.pop(key, None)
        if key == self._shown:
            self._shown = ("", "")
            self._show(None)
            self._put_next()

    def _put_next(self) -> None:
        if self._shown not in self._open and self._open:
            self._shown = next(iter(self._open))
            self._since = self._clock()
            self._show(self._open[self._shown])
            asyncio.get_running_loop().call_later(KEY_GRACE_S, self._begin, self._shown)

    def _begin(self, key: tuple[str, str]) -> None:
        if key == self._shown and (request := self.current) is not None:
            self._listen(request)


def _is_same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two events put the same question: it reads the same on the screen."""
    if one["type"] != other["type"]:
        return False
    if one["type"] == "agent.approval.requested":
        return approval_hash(one) == approval_hash(other)
    return (one["text"], list(one.get("options") or ())) == (
        other["text"],
        list(other.get("options") or ()),
    )


def _key(event: Mapping[str, Any]) -> tuple[str, str]:
    """Ids of calls are unique within their session only."""
    return event.get("session_id", ""), event["call_id"]


def question_lines(
    request: Mapping[str, Any], style: Style, columns: int, *, whole: bool = False
) -> list[str]:
    """What will happen; only a summary longer than a screen or two is cut, and says so."""
    if request["type"] == "agent.question.asked":
        return _question(request, style, columns)
    heading = wrap(
        f"Hermes wants to use {clean(request['name'])}{_files(request)}:", columns
    )
    text = _told(request, whole=whole)
    paint = _diff_paint(style, on="@@" in text or _patch(request) != "")
    summary = [
        (line, row)
        for line in text.split("\n")
        for row in wrap(line, max(columns - 2, 20))
    ]
    rows = [f"  {paint(line, row)}" for line, row in summary]
    shown = rows
    if (
        not whole and len(rows) > _MAX_SUMMARY_LINES
    ):  # the end is shown too: what matters must not hide behind what does not
        left = style.dim(
            f"  ... {count(len(rows) - _MAX_SUMMARY_LINES, 'more line')}; v shows all of it"
        )
        shown = [*rows[: _MAX_SUMMARY_LINES - _TAIL_LINES], left, *rows[-_TAIL_LINES:]]
    remarks = [f"({request['reason']})"] if request.get("reason") else []
    remarks += [_REACHES[request["reach"]]] if request.get("reach") in _REACHES else []
    remarks += (
        [f"s allows for this session: {scope}"] if (scope := _scope(request)) else []
    )
    return [
        *map(style.yellow, heading),
        *shown,
        *(
            style.dim(f"  {line}")
            for text in remarks
            for line in wrap(clean(text), columns - 2)
        ),
    ]


def label_for(request: Mapping[str, Any], columns: int) -> str:
    """What stands before the answer."""
    if request["type"] == "agent.question.asked":
        return "A number or your own words" if request.get("options") else "Your answer"
    keys = _keys(request, columns)
    words = _CHOICES if _scope(request) else _CHOICES | {"s": _EXACTLY}
    full = f"Allow? {', '.join(f'{key} ({words[key]})' for key in keys)}"
    return full if width(full) <= columns - 4 else f"Allow? {'/'.join(keys)}"


def again(request: Mapping[str, Any]) -> str:
    """What to say to a line that was no answer."""
    if request["type"] == "agent.question.asked":
        options = request.get("options")
        return (
            f"Please type a number from 1 to {len(options)}, or your own words."
            if options
            else "Please answer."
        )
    keys = [
        key
        for key in _CHOICES
        if key != "v" and (key in "yn" or request.get("memorable", True))
    ]
    only = "" if request.get("memorable", True) else " It is asked each time."
    return f"Please answer {', '.join(keys[:-1])} or n; after n you may tell the model why.{only}"


def wants_all(request: Mapping[str, Any], line: str) -> bool:
    """Whether a line asks to see all of what will happen."""
    return request["type"] == "agent.approval.requested" and line.strip().lower() in {
        "v",
        "view",
    }


def is_approval_answer(request: Mapping[str, Any], line: str) -> bool:
    """Whether a line is one of the words that a call is allowed or forbidden with."""
    return (
        request["type"] == "agent.approval.requested"
        and parse_answer(request, line) is not None
    )


def parse_answer(request: Mapping[str, Any], line: str) -> PersonAnswer | None:
    """What a person typed; None for anything that is not clearly an answer."""
    text = line.strip()
    if request["type"] == "agent.question.asked":
        chosen = _chosen(request.get("options") or (), text)
        return PersonAnswer(request["call_id"], None, chosen) if chosen else None
    word = _WORDS.get(text.lower())
    if word in {"session", "always"} and not request.get("memorable", True):
        return None
    if word is not None:
        return PersonAnswer(request["call_id"], word)
    found = _NO_BECAUSE.fullmatch(text)
    return PersonAnswer(request["call_id"], "deny", found[1]) if found else None


def _chosen(options: Sequence[str], text: str) -> str:
    """The option of that number, or the words; nothing for a number that no option has."""
    if not options or not text.isdecimal() or text in options:
        return text
    return options[int(text) - 1] if 1 <= int(text) <= len(options) else ""


def _keys(request: Mapping[str, Any], columns: int) -> list[str]:
    """The answers that count."""
    rows = sum(1 for _ in wrap(_told(request), max(columns - 3, 20)))
    is_cut = rows > _MAX_SUMMARY_LINES or _told(request) != _told(request, whole=True)
    kept = {
        "y": True,
        "s": request.get("memorable", True),
        "a": request.get("memorable", True),
        "n": True,
        "v": is_cut,
    }
    return [key for key in _CHOICES if kept[key]]


def _told(request: Mapping[str, Any], *, whole: bool = False) -> str:
    """What will happen, as the policy put it."""
    summary = request.get("summary") or request["arguments"]
    if whole and len(summary) >= _CUT_SUMMARY_CHARS:
        summary = f"{summary}\n\nAll of what was asked for:\n{_longest(request)}"
    return clean(summary)


def _scope(request: Mapping[str, Any]) -> str:
    """What the answer for the session covers; empty when that is only this exact call, if anything."""
    return str(request.get("scope") or "") if request.get("memorable", True) else ""


def _patch(request: Mapping[str, Any]) -> str:
    return (
        str(_arguments(request).get("patch", ""))
        if request["name"] == "apply_patch"
        else ""
    )


def _files(request: Mapping[str, Any]) -> str:
    """The files of a patch."""
    names = patched_files(_patch(request))
    more = (
        f" and {len(names) - _MAX_NAMED_FILES} more"
        if len(names) > _MAX_NAMED_FILES
        else ""
    )
    return (
        f" on {', '.join(map(one_line, names[:_MAX_NAMED_FILES]))}{more}"
        if names
        else ""
    )


def _longest(request: Mapping[str, Any]) -> str:
    return max(
        (value for value in _arguments(request).values() if isinstance(value, str)),
        key=len,
        default="",
    )


def _arguments(request: Mapping[str, Any]) -> Mapping[str, Any]:
    return arguments_by_name(request["arguments"])


def _question(request: Mapping[str, Any], style: Style, columns: int) -> list[str]:
    first, *more = wrap(clean(request["text"]), columns - 2)
    options = [
        f"  {number}. {clean(option)}"
        for number, option in enumerate(request.get("options") or (), 1)
    ]
    return [
        style.yellow(f"? {first}"),
        *(style.yellow(f"  {line}") for line in more),
        *(row for option in options for row in wrap(option, columns)),
    ]


def _diff_paint(style: Style, *, on: bool) -> Callable[[str, str], str]:
    """Paints a row by the line of a diff that it is part of."""
    paints = {"+": style.green, "-": style.red, "@": style.cyan} if on else {}
    return lambda line, row: paints.get(line[:1], str)(row)

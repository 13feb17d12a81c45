"""Approvals and questions at a terminal: how they are shown, and how answers are parsed."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from hermes.core.answers import approval_hash
from hermes.core.arguments import arguments_by_name
from hermes.surfaces.terminal.style import Style
from hermes.surfaces.terminal.text import clean, count, one_line, width, wrap
from hermes.surfaces.terminal.tool_line import patched_files

if TYPE_CHECKING:
    from hermes.app.session_service import SessionService

Word: TypeAlias = Literal["once", "session", "always", "deny"]

_CHOICES = {
    "y": "once",
    "s": "until you quit",
    "a": "always this call",
    "n": "no",
    "v": "view",
}
_EXACT_CHOICES = _CHOICES | {"s": "this call until you quit", "a": "always"}

QUESTION_EVENTS = frozenset(
    (
        "agent.approval.requested",
        "agent.approval.answered",
        "agent.question.asked",
        "agent.question.answered",
    )
)
"""Events a surface also handles for child agents, because it answers for them."""

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
_THEN_ENTER = " + Enter"
_REASON_HINT = "After n you can add a reason for the model."
_REACHES = {
    "network": "It may use the network.",
    "machine": "It runs outside the sandbox: it can reach your files and the network.",
}
_MAX_SUMMARY_LINES = 40
_TAIL_LINES = 8  # shown from the end of a long summary
_MAX_PATCH_FILES_NAMED = 5  # of a patch
_CUT_SUMMARY_CHARS = 20_000  # from this length on, the policy may have cut the summary
_REMEMBERED_ANSWER_WAIT_S = (
    0.03  # a remembered answer arrives by then, and its question is never shown
)
KEY_GRACE_S = 0.3  # a key pressed earlier was not meant for the question


class PersonAnswer(NamedTuple):
    """An answer: a decision on a call, with a reason for a denial, or the text a tool asked for."""

    call_id: str
    word: Word | None
    text: str = ""
    session: str = ""
    """The session that asked: the one shown, or a child of it."""
    shown: str = ""
    """The hash of the request that was on the screen."""


class Questions:
    """The open questions of one session, shown one at a time.

    `show` is called at once, `listen` when an answer counts: input before that was meant for
    something else.
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
        self._open: dict[tuple[str, str], Mapping[str, Any]] = {}  # by session and call
        self._shown = ("", "")
        self._since = 0.0

    @property
    def current(self) -> Mapping[str, Any] | None:
        """The question that the next line answers."""
        return self._open.get(self._shown)

    def on_event(self, event: Mapping[str, Any]) -> None:
        """Opens questions, and closes those answered anywhere."""
        match event["type"]:
            case "agent.approval.requested" | "agent.question.asked":
                key = _key(event)
                if key == self._shown and not _is_same(event, self._open[key]):
                    self._close(key)  # asked again with a different text
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
        deliver: Callable[[PersonAnswer], Awaitable[bool]],
        *,
        typed_at: float | None = None,
    ) -> bool:
        """Uses a line as the answer to the current question. Returns False if it is no clear answer
        or came too early.
        """
        request = self.current
        if request is None or self.is_early(typed_at):
            return False
        answer = parse_answer(request, line)
        if answer is None:
            return False
        shown = approval_hash(request) if answer.word is not None else ""
        session = request.get("session_id", "")
        await deliver(answer._replace(session=session, shown=shown))
        return True

    def is_early(self, typed_at: float | None) -> bool:
        """Returns whether a line was sent before anybody can have read the question.

        `typed_at` is in the event loop's time; None for lines from a pipe.
        """
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


async def deliver_answer(
    service: "SessionService", answer: PersonAnswer, session: str
) -> bool:
    """Answers the session, or the child session that asked. Returns False if nothing waits for the
    answer.
    """
    session = answer.session or session
    if answer.word is None:
        return await service.reply(session, answer.call_id, answer.text, by="cli")
    return await service.answer(
        session,
        answer.call_id,
        answer.word,
        by="cli",
        shown=answer.shown,
        reason=answer.text,
    )


def _is_same(first: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Returns whether two events show the same question on the screen."""
    if first["type"] != other["type"]:
        return False
    if first["type"] == "agent.approval.requested":
        return approval_hash(first) == approval_hash(other)
    return (first["text"], list(first.get("options") or ())) == (
        other["text"],
        list(other.get("options") or ()),
    )


def _key(event: Mapping[str, Any]) -> tuple[str, str]:
    """Returns the key of a call. Call ids are unique only within their session."""
    return event.get("session_id", ""), event["call_id"]


def question_lines(
    request: Mapping[str, Any], style: Style, columns: int, *, whole: bool = False
) -> list[str]:
    """Returns the lines of a question. A very long summary is cut, with a note."""
    if request["type"] == "agent.question.asked":
        return _question(request, style, columns)
    heading = wrap(
        f"Hermes wants to use {clean(request['name'])}{_files(request)}:", columns
    )
    remarks = (wrap(clean(text), columns - 2) for text in _remarks(request))
    return [
        *map(style.yellow, heading),
        *_summary_rows(request, style, columns, whole=whole),
        *(style.dim(f"  {line}") for lines in remarks for line in lines),
    ]


def _summary_rows(
    request: Mapping[str, Any], style: Style, columns: int, *, whole: bool
) -> list[str]:
    text = _summary(request, whole=whole)
    paint = _diff_paint(style, on="@@" in text or _patch(request) != "")
    rows: list[str] = []
    for line in text.split("\n"):
        rows += (f"  {paint(line, row)}" for row in wrap(line, max(columns - 2, 20)))
    hidden = len(rows) - _MAX_SUMMARY_LINES
    if whole or hidden <= 0:
        return rows
    note = style.dim(f"  ... {count(hidden, 'more line')}; v shows all")
    # Show the end too: it may hold what matters.
    return [*rows[: _MAX_SUMMARY_LINES - _TAIL_LINES], note, *rows[-_TAIL_LINES:]]


def _remarks(request: Mapping[str, Any]) -> list[str]:
    """Returns why the policy asks, what the call can reach and what `s` would allow."""
    remarks = [f"({request['reason']})"] if request.get("reason") else []
    if request.get("reach") in _REACHES:
        remarks.append(_REACHES[request["reach"]])
    if scope := _scope(request):
        remarks.append(f"s allows until you quit: {scope}")
    return remarks


def label_for(request: Mapping[str, Any], columns: int) -> str:
    """Returns the label before the answer."""
    if request["type"] == "agent.question.asked":
        return (
            "A number or your own answer" if request.get("options") else "Your answer"
        )
    keys = _keys(request, columns)
    words = _CHOICES if _scope(request) else _EXACT_CHOICES
    full = f"Allow? {', '.join(f'{key} ({words[key]})' for key in keys)}"
    short = f"Allow? {'/'.join(keys)}{_THEN_ENTER}"
    labels = (full + _THEN_ENTER, full, short)
    return next((one for one in labels if width(one) <= columns - 4), short)


def again(request: Mapping[str, Any]) -> str:
    """Returns what to say after a line that was no answer."""
    if request["type"] == "agent.question.asked":
        options = request.get("options")
        return (
            f"Please type a number from 1 to {len(options)}, or an answer of your own."
            if options
            else "Please answer."
        )
    if not request.get("memorable", True):
        return f"Please type y or n. {_REASON_HINT} Hermes asks about this call every time."
    return f"Please type y, s, a or n. {_REASON_HINT}"


def wants_all(request: Mapping[str, Any], line: str) -> bool:
    """Returns whether a line asks for the whole summary."""
    return request["type"] == "agent.approval.requested" and line.strip().lower() in {
        "v",
        "view",
    }


def is_approval_answer(request: Mapping[str, Any], line: str) -> bool:
    """Returns whether a line answers an approval."""
    return (
        request["type"] == "agent.approval.requested"
        and parse_answer(request, line) is not None
    )


def parse_answer(request: Mapping[str, Any], line: str) -> PersonAnswer | None:
    """Parses a line. Returns None unless it is clearly an answer."""
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
    """Returns the option with that number, or the text itself; empty for a number without an option."""
    if not options or not text.isdecimal() or text in options:
        return text
    return options[int(text) - 1] if 1 <= int(text) <= len(options) else ""


def _keys(request: Mapping[str, Any], columns: int) -> list[str]:
    """Returns the keys that are offered."""
    rows = sum(1 for _ in wrap(_summary(request), max(columns - 3, 20)))
    is_cut = rows > _MAX_SUMMARY_LINES or _summary(request) != _summary(
        request, whole=True
    )
    keys = ["y", "s", "a", "n"] if request.get("memorable", True) else ["y", "n"]
    return [*keys, "v"] if is_cut else keys


def _summary(request: Mapping[str, Any], *, whole: bool = False) -> str:
    """Returns the summary of what will happen, written by the policy."""
    summary = request.get("summary") or request["arguments"]
    if whole and len(summary) >= _CUT_SUMMARY_CHARS:
        summary = f"{summary}\n\nThe whole request:\n{_longest(request)}"
    return clean(summary)


def _scope(request: Mapping[str, Any]) -> str:
    """Returns what `s` would allow until you quit; empty if only this exact call."""
    return str(request.get("scope") or "") if request.get("memorable", True) else ""


def _patch(request: Mapping[str, Any]) -> str:
    if request["name"] != "apply_patch":
        return ""
    return str(_arguments(request).get("patch", ""))


def _files(request: Mapping[str, Any]) -> str:
    """Names the files of a patch."""
    names = patched_files(_patch(request))
    if not names:
        return ""
    shown = ", ".join(map(one_line, names[:_MAX_PATCH_FILES_NAMED]))
    hidden = len(names) - _MAX_PATCH_FILES_NAMED
    return f" on {shown} and {hidden} more" if hidden > 0 else f" on {shown}"


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
    """Returns a function that colours a row by its line of the diff."""
    paints = {"+": style.green, "-": style.red, "@": style.cyan} if on else {}
    return lambda line, row: paints.get(line[:1], str)(row)

"""Sessions that work for another one: for an agent that delegated a task, or for a person who moved work to the
background.

Their state is computed from the log and the leases, so every surface in every process sees the same. When one ends, a
row in the log of its parent says how; if a process was killed before it could write that row, the next process that
looks writes it.
"""

from collections.abc import Iterator
from typing import Literal, TypeAlias

import msgspec

from hermes.app.app import App
from hermes.app.session_journal import read_history
from hermes.core.answers import Request
from hermes.core.arguments import BadArguments, parse_arguments
from hermes.errors import SessionNotFound
from hermes.primitives.untyped import object_of
from hermes.schema.events import (
    ApprovalAnswered,
    ApprovalRequested,
    QuestionAnswered,
    QuestionAsked,
    ToolStarted,
    TurnEnded,
    TurnStarted,
)
from hermes.schema.goals import ChildAttached, ChildEnded
from hermes.schema.messages import AssistantMessage, ToolFinished, UserMessage
from hermes.schema.shown_reasons import state_in_words
from hermes.store.sessions import SessionInfo
from hermes.text.translation import shown_reason, translator

t = translator(__name__)

BACKGROUND, REVIEW, DELEGATE = "background", "review", "delegate"
ChildState: TypeAlias = Literal[
    "working", "asks you", "cut off", "done", "interrupted", "failed", "crashed",
    "refused", "budget", "not begun",
]  # fmt: skip
_TAIL_ROWS = 400
_MAX_TEXT_CHARS = 400
_VERBS = {
    "terminal": "run",
    "read_file": "read",
    "write_file": "write",
    "edit_file": "edit",
    "search_files": "search for",
}
_MAX_DOING_CHARS = 120


class ChildStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a session that works for another one."""

    id: str
    parent: str
    kind: str
    state: ChildState
    doing: str = ""
    """What it does now, or how it ended."""
    title: str = ""
    turns: int = 0
    tokens: int = 0
    cost_usd: float = 0.0
    began: float = 0.0
    seconds: float = 0.0
    """How long it worked: until now, or until its end."""
    answer: str = ""
    """The beginning of its last answer."""
    ended: int = 0
    """The `seq` of the end of its last turn; 0 while it works."""

    @property
    def runs(self) -> bool:
        """Whether it works, or waits for a person."""
        return self.state in ("working", "asks you")


def has_children(app: App, session: str) -> bool:
    """Whether sessions work or worked for this one. Cheaper than `child_ids`, which reads the whole log."""
    store = app.store
    if store.sessions.children(session):
        return True
    return store.log.latest(session, ChildAttached.topic) is not None


def child_ids(app: App, session: str) -> list[str]:
    """The sessions that work or worked for a session, oldest first."""
    own = [one.id for one in app.store.sessions.children(session)]
    moved = [row.child for row in _rows(app, session) if isinstance(row, ChildAttached)]
    known = app.store.sessions.missing(moved) if moved else set[str]()
    return list(dict.fromkeys((*own, *(one for one in moved if one not in known))))


def running_children(app: App) -> list[tuple[str, str]]:
    """All sessions that work for others now, in any process, with their parents."""
    found: list[tuple[str, str]] = []
    for lease in app.store.leases.held():
        try:
            origin = app.store.sessions.origin(lease.session)
        except SessionNotFound:
            continue
        if origin.kind == "child":
            found.append((lease.session, origin.parent))
    return found


def child_status(app: App, child: str, *, parent: str = "") -> ChildStatus:
    """What a session does. Raises SessionNotFound."""
    info = app.store.sessions.find(child)
    origin = app.store.sessions.origin(info.id)
    runs = app.store.leases.holder(info.id) is not None
    tail = _Tail(app, info)
    now = app.clock.now()
    return ChildStatus(
        id=info.id,
        parent=parent or origin.parent,
        kind=origin.surface if origin.kind == "child" else BACKGROUND,
        state=tail.state(runs=runs),
        doing=tail.doing if runs else tail.how,
        title=info.title or tail.task,
        turns=info.turns,
        tokens=info.tokens,
        cost_usd=info.cost_usd,
        began=tail.began,
        seconds=max(0.0, (now if runs else tail.until or tail.began) - tail.began),
        answer=tail.answer[:_MAX_TEXT_CHARS],
        ended=0 if runs else tail.ended_seq,
    )


def ended_row(status: ChildStatus) -> ChildEnded:
    """The row that tells a parent how its child ended."""
    return ChildEnded(
        child=status.id,
        kind=status.kind,
        reason=status.state,
        detail=status.doing,
        title=status.title,
        text=status.answer,
        cost_usd=status.cost_usd,
        ended=status.ended,
    )


def last_answer(app: App, session: str) -> str:
    """The last words of a session, whole."""
    messages = read_history(app.store, session).messages
    replies = (
        one.text for one in reversed(messages) if isinstance(one, AssistantMessage)
    )
    return next(filter(None, replies), t.logged("(it said nothing)"))


def review_report(app: App, event: ChildEnded) -> str:
    """What a review found, for the chat that asked for it."""
    if event.reason != "done":
        how = t("Review: {how}.", how=state_in_words(event.reason))
        return f"{how} {shown_reason(event.detail)}".rstrip()
    found = last_answer(app, event.child)
    done = t("Review done:")
    return f"{done}\n{found}\n{t('To repair what it found: /review fix')}"


def unreported_ends(app: App, session: str, *children: str) -> list[ChildStatus]:
    """The children of a session, or these of them, that have ended without a row that says so."""
    told = {
        (row.child, row.ended)
        for row in _rows(app, session)
        if isinstance(row, ChildEnded)
    }
    ids = children or child_ids(app, session)
    found = [child_status(app, one, parent=session) for one in ids]
    ended = [one for one in found if one.ended and not one.runs]
    return [one for one in ended if (one.id, one.ended) not in told]


def _rows(app: App, session: str) -> Iterator[ChildAttached | ChildEnded]:
    for row in app.store.log.every_event(session):
        if isinstance(row.event, ChildAttached | ChildEnded):
            yield row.event


class _Tail:
    """The end of a child's log: its last turn."""

    def __init__(self, app: App, info: SessionInfo) -> None:
        self.task = ""
        self.doing = ""
        self.answer = ""
        self.began = info.created
        self.until = 0.0
        self.ended_seq = 0
        self._ended: TurnEnded | None = None
        self._is_open = False
        self._asked: dict[str, Request] = {}
        after = max(0, info.head - _TAIL_ROWS)
        for row in app.store.log.events(info.id, after=after, limit=_TAIL_ROWS):
            match row.event:
                case UserMessage(text=text) if not self.task:
                    self.task = " ".join(text.split())[:_MAX_DOING_CHARS]
                case TurnStarted():
                    self.began, self._is_open, self._ended = row.ts, True, None
                    self.doing = "thinking"
                case TurnEnded() as ended:
                    self.until, self._is_open, self._ended = row.ts, False, ended
                    self.ended_seq = row.seq
                    self._asked.clear()
                case AssistantMessage(text=text):
                    self.answer = text.strip() or self.answer
                case ToolStarted(name=name, arguments=arguments):
                    self.doing = call_in_words(name, arguments)
                case ToolFinished():
                    self.doing = "thinking"
                case (ApprovalRequested() | QuestionAsked()) as asked:
                    self._asked[asked.call_id] = asked
                case ApprovalAnswered(call_id=one) | QuestionAnswered(call_id=one):
                    self._asked.pop(one, None)
                case _:
                    pass

    def state(self, *, runs: bool) -> ChildState:
        if self._ended is not None and not self._is_open:
            return "working" if runs else self._ended.reason
        if runs:
            return "asks you" if self._asked else "working"
        return "cut off" if self._is_open else "not begun"

    @property
    def how(self) -> str:
        """How it ended, if not normally."""
        if self._ended is None:
            return t.logged("its process ended") if self._is_open else ""
        return self._ended.detail


def call_in_words(name: str, arguments: str) -> str:
    """What it does and the first text among its arguments, as in `run make test`."""
    verb = _VERBS.get(name, name.replace("_", " "))
    try:
        values = parse_arguments(arguments)
    except BadArguments:
        return verb
    texts = object_of(values).values()
    first = next((one for one in texts if isinstance(one, str) and one.strip()), "")
    return f"{verb} {' '.join(first.split())}".rstrip()[:_MAX_DOING_CHARS]

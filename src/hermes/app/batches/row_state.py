"""The state of each row, read from the session log: nothing about a row is stored anywhere else."""

from collections.abc import Iterator
from typing import Literal, TypeAlias

import msgspec

from hermes.app.app import App
from hermes.app.batches.batch import Batch, Batches
from hermes.schema.events import InterruptRequested, SessionScored, TurnEnded
from hermes.schema.messages import AssistantMessage
from hermes.store.sessions import SessionInfo
from hermes.text.translation import translator
from hermes.tools.toolsets import BATCH_SURFACE
from hermes.trajectories.trajectory import Trajectory, is_answer, read_trajectory

t = translator(__name__)


RowStatus: TypeAlias = Literal[
    "waiting", "begun", "running", "done", "failed", "refused", "budget", "timed_out", "stopped"
]  # fmt: skip
"""`begun`: it was cut off, and continues when the batch is resumed."""

_IDS_PER_QUERY = 500
_MAX_ATTEMPTS = 99
_RAISE_SETTING = (
    "Raise budget.per_session to continue."  # not translated: core/budget.py says it
)


class RowState(msgspec.Struct, frozen=True, kw_only=True):
    """The newest attempt at a row."""

    number: int
    session: str
    attempt: int = 1
    status: RowStatus = "waiting"
    detail: str = ""
    failure: str = ""
    cost_usd: float = 0.0
    tokens: int = 0
    unpriced_calls: int = 0
    earlier_usd: float = 0.0
    """What earlier attempts at the row have cost."""
    earlier_tokens: int = 0
    score: float | None = None
    began: float = 0.0
    ended: float = 0.0

    @property
    def is_over(self) -> bool:
        """Whether this attempt is over."""
        return self.status not in ("waiting", "begun", "running")

    def needs_work(self, *, retry: bool) -> bool:
        """Whether a resumed batch runs it. A row that failed before it cost anything is tried again by itself."""
        if not self.is_over:
            return True
        if self.status == "done":
            return False
        is_free = not self.tokens and self.status in ("failed", "budget")
        return retry or is_free


def row_states(app: App, batch: Batch) -> list[RowState]:
    """The state of every row, in order."""
    numbers = range(1, batch.rows + 1)
    attempts = dict.fromkeys(numbers, 1)
    if not app.has_log:
        return [RowState(number=one, session=batch.session(one)) for one in numbers]
    looking, states = list(numbers), dict[int, RowState]()
    replace = msgspec.structs.replace
    while looking:
        missing = _missing(app, [batch.session(one, attempts[one]) for one in looking])
        again: list[int] = []
        for number in looking:
            session = batch.session(number, attempts[number])
            if session in missing:
                first = RowState(number=number, session=session)
                states.setdefault(number, first)
                continue
            found = row_state(app, batch, number, attempts[number])
            if before := states.get(number):
                usd = before.earlier_usd + before.cost_usd
                tokens = before.earlier_tokens + before.tokens
                found = replace(found, earlier_usd=usd, earlier_tokens=tokens)
            states[number] = found
            if found.is_over and found.status != "done" and found.attempt < _MAX_ATTEMPTS:  # fmt: skip
                attempts[number] += 1
                again.append(number)
        looking = again
    return [states[number] for number in numbers]


def row_state(app: App, batch: Batch, number: int, attempt: int) -> RowState:
    """The state of an attempt that has a session."""
    session = batch.session(number, attempt)
    info = app.store.sessions.find(session)
    log = app.store.log
    ended = log.latest(session, TurnEnded.topic)
    score = log.latest(session, SessionScored.topic)
    usage = app.store.sessions.usage(session=session)
    status, detail, failure = _status(app, batch, info, ended)
    return RowState(
        number=number,
        session=session,
        attempt=attempt,
        status=status,
        detail=with_own_option(detail, batch),
        failure=failure,
        cost_usd=sum(one.cost_usd for one in usage),
        tokens=sum(one.input_tokens + one.output_tokens for one in usage),
        unpriced_calls=sum(one.unpriced_calls for one in usage),
        score=score.score if isinstance(score, SessionScored) else None,
        began=info.created,
        ended=info.updated,
    )


def _status(
    app: App, batch: Batch, info: SessionInfo, ended: object
) -> tuple[RowStatus, str, str]:
    """The state of a session, why, and the class of a model's failure."""
    log = app.store.log
    if app.store.leases.holder(info.id) is not None:
        return "running", "", ""
    is_cut_off = not isinstance(ended, TurnEnded) or log.has_open_turn(info.id)
    if is_cut_off or ended.reason == "crashed":
        answer = log.latest(info.id, AssistantMessage.topic)
        answered = isinstance(answer, AssistantMessage) and is_answer(answer)
        return ("done" if answered else "begun"), "", ""
    match ended.reason:
        case "interrupted":
            asked = log.latest(info.id, InterruptRequested.topic)
            if not isinstance(asked, InterruptRequested):
                return "begun", "", ""  # the batch was stopped
            timed_out = asked.by == BATCH_SURFACE
            return ("timed_out" if timed_out else "stopped"), ended.detail, ""
        case "budget" if ended.limit == "spending" and batch.options.shares_budget:
            return "begun", ended.detail, ""
        case reason:
            return reason, ended.detail, ended.failure


def with_own_option(detail: str, batch: Batch) -> str:
    """The reason of a row that used up its budget, with the batch's own option to raise it."""
    if not batch.options.row_budget:
        return detail
    advice = t.logged(
        "Give each row more: hermes batch resume {name} --retry --row-budget AMOUNT",
        name=batch.name,
    )
    return detail.replace(_RAISE_SETTING, advice)


def _missing(app: App, sessions: list[str]) -> set[str]:
    found: set[str] = set()
    for start in range(0, len(sessions), _IDS_PER_QUERY):
        found |= app.store.sessions.missing(sessions[start : start + _IDS_PER_QUERY])
    return found


def trajectories(app: App, batch: Batch) -> Iterator[Trajectory]:
    """The newest attempt at each row that has begun, in the order of the dataset."""
    rows = Batches(app.home).rows(batch)
    for state in row_states(app, batch):
        if state.status == "waiting":
            continue
        label: dict[str, str | int] = {"batch": batch.name, "row": state.number}
        if name := rows[state.number - 1].id:
            label["id"] = name
        found = read_trajectory(app.store.log.every_event(state.session))
        if found.messages:
            yield msgspec.structs.replace(found, label=label)

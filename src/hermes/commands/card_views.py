"""What the results of card commands look like."""

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from hermes.app.boards.listing import (
    OPEN_STATUSES,
    BoardListing,
    CardDetails,
    ListedCard,
    RunReport,
)
from hermes.commands.views import (
    Block,
    Column,
    Line,
    Look,
    Record,
    Span,
    TableRow,
    line,
    table,
)
from hermes.schedules.tokens import length
from hermes.schema.boards import BoardHistoryEntry, Card
from hermes.text.formats import ago, first_line, moment, money
from hermes.text.translation import shown_reason, translator

t = translator(__name__)


_LOOKS: Mapping[str, Look] = {
    "running": "good",
    "review": "warn",
    "blocked": "bad",
    "triage": "warn",
    "done": "dim",
    "archived": "dim",
    "completed": "good",
}
_BAD = ("unclosed", "quota", "crashed", "timed_out", "budget", "failed")


class CardChange(msgspec.Struct, frozen=True, kw_only=True):
    """A card that was made or changed."""

    card: Card
    what: str
    why: str = ""
    """Why it does not run now."""

    def view(self, _now: float) -> Iterable[Block]:
        card = self.card
        yield line(
            t(
                "Card {id} ({title}) {what}.",
                id=card.id,
                title=first_line(card.title)[:60],
                what=self.what,
            )
        )
        why = shown_reason(self.why)
        state = f"{card.status}: {why}" if why else card.status
        yield line(t("Status: {state}", state=state), "dim", fit="wrap")


class CardListing(msgspec.Struct, frozen=True, kw_only=True):
    """The cards of a board."""

    listing: BoardListing
    left_out: int = 0

    def document(self) -> BoardListing:
        return self.listing

    def view(self, now: float) -> Iterable[Block]:
        listing = self.listing
        if not listing.cards:
            how = t("hermes kanban create 'what to do' (in a chat: /kanban create ...)")
            where = t("No open cards on the board {slug}.", slug=listing.board.slug)
            yield line(t("{where} Make one: {how}", where=where, how=how), fit="wrap")
            return
        order = {
            status: place
            for place, status in enumerate((*OPEN_STATUSES[::-1], "done", "archived"))
        }
        cards = sorted(listing.cards, key=lambda one: order[one.status])
        rows = [_row(card, now) for card in cards]
        columns = (
            Column(t("CARD")),
            Column(t("STATUS")),
            Column(t("TITLE"), widest=32),
            Column(t("AGENT"), widest=14),
            Column(t("WHY"), shrinks=True),
        )
        yield table(columns, rows, narrow=((0, 1), (2,), (4,)))
        if self.left_out:
            yield line(
                t(
                    "... and {count:,} more card",
                    "... and {count:,} more cards",
                    count=self.left_out,
                ),
                "dim",
            )
        for card in cards:
            if card.asks:
                yield line(
                    t(
                        "{id} asks you something. Answer: {command}",
                        id=card.id,
                        command=f"hermes --resume {card.session}",
                    ),
                    "warn",
                    fit="wrap",
                )
        if not listing.dispatcher and any(one.status == "ready" for one in cards):
            yield line(t("Start the ready cards: hermes kanban run"), "dim", fit="wrap")


def _row(card: ListedCard, now: float) -> TableRow:
    agent = card.reviewer if card.status == "review" and card.reviewer else card.assignee  # fmt: skip
    why = shown_reason(card.why)
    if card.since:
        passed = length(max(1, round(now - card.since)))
        why = t("{why}, for {time}", why=why, time=passed)
    cells = (card.id, card.status, first_line(card.title), agent, first_line(why))
    return TableRow(cells, _LOOKS.get(card.status, ""))


class CardReport(msgspec.Struct, frozen=True, kw_only=True):
    """Everything about a card."""

    details: CardDetails

    def document(self) -> CardDetails:
        return self.details

    def view(self, now: float) -> Iterable[Block]:
        card, details = self.details.card, self.details
        yield line(f"{card.id}  {first_line(card.title)}", "bold")
        why = f": {shown_reason(details.why)}" if details.why else ""
        look = _LOOKS.get(card.status, "")
        yield line(f"  {card.status}{why}", look, fit="wrap")
        session = next((run.session for run in details.runs if not run.ended), "")
        if details.asks and session:
            yield line(
                t("  Answer: hermes --resume {session}", session=session),
                "warn",
                fit="wrap",
            )
        yield Record(tuple(_facts(details, now)), indent=2)
        if card.body:
            yield line(f"\n{card.body}\n")
        if card.result:
            yield line(t("Result: {result}", result=card.result))
        if details.runs:
            yield line(t("Runs"), "bold")
            yield from map(run_line, details.runs)
        for one in details.comments:
            yield line(f"{one.by or 'user'}, {ago(one.ts, now)}: {one.text}")
        for file in details.attachments:
            yield line(
                t(
                    "{id}  {name} ({size:,} bytes)",
                    id=file.id,
                    name=file.name,
                    size=file.size,
                ),
                "dim",
            )


def _facts(details: CardDetails, now: float) -> Iterable[tuple[str, str]]:
    card = details.card
    yield t("board"), card.board
    yield t("assignee"), card.assignee
    yield t("reviewer"), card.reviewer
    yield t("priority"), str(card.priority) if card.priority else ""
    yield t("labels"), ", ".join(card.labels)
    yield t("workspace"), card.workspace or "the board's"
    yield t("branch"), card.branch
    yield t("model"), card.model
    limits = [
        f"at most {card.budget}" if card.budget else "",
        t("shares the budget of {family}", family=card.family) if card.family else "",
        f"{length(card.time_limit)} a run" if card.time_limit else "",
        f"{card.retries} tries" if card.retries else "",
    ]
    yield t("limits"), ", ".join(filter(None, limits))
    yield (
        t("waits for"),
        ", ".join(f"{one.id} ({one.status})" for one in details.parents),
    )
    yield (
        t("needed by"),
        ", ".join(f"{one.id} ({one.status})" for one in details.children),
    )
    yield (
        t("bad endings"),
        t("{number} in a row", number=card.failures) if card.failures else "",
    )
    yield t("made"), t("{when} by {who}", when=ago(card.created, now), who=card.by)


def run_line(run: RunReport) -> Line:
    """A run as one line."""
    ended = run.ended or time.time()
    took = length(max(1, round(ended - run.started)))
    cost = f", {money(run.cost_usd)}" if run.cost_usd else ""
    look: Look = "bad" if run.outcome in _BAD else _LOOKS.get(run.outcome, "")
    told = "; ".join(filter(None, (shown_reason(run.reason), first_line(run.summary))))
    return Line(
        (
            Span(f"  {run.number}. {moment(run.started)}  "),
            Span(run.outcome, look),
            Span(f"  {took}{cost}  {run.agent}  {run.session}"),
            Span(f"  {told}" if told else "", "dim"),
        ),
        "hang",
    )


class CardRuns(msgspec.Struct, frozen=True, kw_only=True):
    """The runs of a card, newest first."""

    card: Card
    runs: list[RunReport]

    def view(self, _now: float) -> Iterable[Block]:
        if not self.runs:
            yield line(t("{id} has not run yet.", id=self.card.id))
        yield from map(run_line, self.runs)


class CardHistory(msgspec.Struct, frozen=True, kw_only=True):
    """What happened, oldest first."""

    events: list[BoardHistoryEntry]

    def view(self, _now: float) -> Iterable[Block]:
        if not self.events:
            yield line(t("Nothing has happened yet."))
        for one in self.events:
            yield line(event_line(one), fit="hang")


def event_line(entry: BoardHistoryEntry) -> str:
    """An event of a board as one line."""
    data = entry.data
    what = entry.topic.removeprefix("kanban.")
    in_words = _EVENTS.get(what, _any_event)(data)
    who = data.get("by") or ""
    by = f"  ({who})" if who and who != f"worker of {data.get('card')}" else ""
    return f"{moment(entry.ts)}  {data.get('card') or data.get('board', '')}  {in_words}{by}"


def _moved(data: Mapping[str, Any]) -> str:
    reason = _short(data.get("reason", ""))
    return f"{data['before']} → {data['after']}{f': {reason}' if reason else ''}"


def _run_started(data: Mapping[str, Any]) -> str:
    session = data.get("session")
    return (
        t(
            "{agent} works on it in session {session}",
            agent=data.get("agent", ""),
            session=session,
        )
        if session
        else "claimed"
    )


def _run_ended(data: Mapping[str, Any]) -> str:
    told = _short(data.get("reason") or data.get("summary") or "")
    return f"run ended: {data['outcome']}{f': {told}' if told else ''}"


def _edited(data: Mapping[str, Any]) -> str:
    fields = data.get("fields") or {}
    return "changed " + ", ".join(f"{name} to {_short(value)!r}" for name, value in fields.items())  # fmt: skip


def _linked(data: Mapping[str, Any]) -> str:
    how = "waits for" if data.get("linked", True) else t("no longer waits for")
    return f"{how} {data['parent']}"


def _any_event(data: Mapping[str, Any]) -> str:
    known = ("board", "card", "by", "id")
    shown = {
        name: value
        for name, value in data.items()
        if name not in known and value not in ("", (), [], {})
    }
    return ", ".join(f"{name}: {_short(value)}" for name, value in shown.items())


_EVENTS: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "card.created": lambda data: f"made: {_short(data.get('title', ''))}",
    "card.moved": _moved,
    "card.edited": _edited,
    "card.linked": _linked,
    "card.commented": lambda data: f"comment: {_short(data.get('text', ''))}",
    "card.attached": lambda data: f"attached {_short(data.get('name', ''))}",
    "run.started": _run_started,
    "run.noted": lambda data: _short(data.get("note", "")),
    "run.ended": _run_ended,
}
"""What happened, in words, by topic."""


def _short(value: Any) -> str:
    return first_line(value if isinstance(value, str) else str(value))[:120]


class BoardStats(msgspec.Struct, frozen=True, kw_only=True):
    """How the boards are doing, and why ready cards wait."""

    boards: dict[str, dict[str, int]]
    running: int
    max_running: int
    dispatcher: str
    """The process that runs cards; empty if none does."""
    outcomes: dict[str, int]
    """How the runs of the last day ended."""
    by_agent: dict[str, int]
    waiting: list[tuple[str, str, str]]
    """Ready cards that don't run, and why: id, title, reason."""
    undelivered: int

    def view(self, _now: float) -> Iterable[Block]:
        who = self.dispatcher or t(
            "none is running, so nothing starts: hermes kanban run"
        )
        yield Record(
            (
                (t("dispatcher"), who),
                (
                    t("running"),
                    t(
                        "{running} of {max_running}",
                        running=self.running,
                        max_running=self.max_running,
                    ),
                ),
                (
                    t("by agent"),
                    ", ".join(
                        f"{name} {number}" for name, number in self.by_agent.items()
                    ),
                ),
                (
                    t("last 24 hours"),
                    ", ".join(
                        f"{number} {name}" for name, number in self.outcomes.items()
                    ),
                ),
                (
                    t("news to deliver"),
                    str(self.undelivered) if self.undelivered else "",
                ),
            )
        )
        for slug, counts in self.boards.items():
            told = ", ".join(
                f"{number} {status}" for status, number in counts.items() if number
            )
            yield line(f"{slug}: {told or 'no cards'}")
        for card, title, why in self.waiting:
            yield line(f"  {card}  {first_line(title)[:40]}: {why}", fit="hang")

"""Cards as commands, the page and workers see them: with what each waits for, and why."""

from collections.abc import Sequence
from typing import Any

import msgspec

from hermes.app.boards.board_service import Boards
from hermes.app.boards.queue_state import ASKING, QueueState
from hermes.schema.boards import (
    Board,
    BoardHistoryEntry,
    Card,
    CardAttachment,
    CardRun,
    CardStatus,
)
from hermes.store.boards import BoardReader
from hermes.text.translation import translator

t = translator(__name__)

OPEN_STATUSES: tuple[CardStatus, ...] = (
    "triage", "todo", "ready", "running", "blocked", "review",
)  # fmt: skip
STATUSES: tuple[CardStatus, ...] = (*OPEN_STATUSES, "done", "archived")
_COMMENT = "kanban.card.commented"


class ListedCard(msgspec.Struct, frozen=True, kw_only=True):
    """A card in a list."""

    id: str
    board: str
    title: str
    status: CardStatus
    why: str
    """Why the card does not run now; for a running card, its worker's last report."""
    priority: int
    labels: tuple[str, ...]
    tenant: str
    assignee: str
    reviewer: str
    due: float
    schedule: str
    created: float
    updated: float
    failures: int
    block_kind: str
    parents: tuple[str, ...]
    children: tuple[str, ...]
    comments: int
    attachments: int
    run: str
    session: str
    """The session that works on it now."""
    since: float
    """When its run started."""
    cost_usd: float
    """What its run has cost so far."""
    asks: bool = False
    """Whether its worker waits for a person's answer."""
    is_held: bool = False
    """Whether it starts only when a person starts it."""


class BoardListing(msgspec.Struct, frozen=True, kw_only=True):
    """A board with its cards."""

    board: Board
    cards: list[ListedCard]
    counts: dict[str, int]
    """How many cards have each status, including those that are not listed."""
    dispatcher: str
    """The process that runs cards; empty if none does."""
    last: int
    """The number of the newest event in the history; later ones change this listing."""


class CardComment(msgspec.Struct, frozen=True, kw_only=True):
    """A comment on a card."""

    id: int
    ts: float
    by: str
    text: str


class RunReport(msgspec.Struct, frozen=True, kw_only=True):
    """A run with what it used."""

    id: str
    number: int
    agent: str
    phase: str
    outcome: str
    reason: str
    summary: str
    session: str
    workspace: str
    started: float
    ended: float
    note: str
    cost_usd: float
    tokens: int


class CardDetails(msgspec.Struct, frozen=True, kw_only=True):
    """Everything about a card."""

    card: Card
    why: str
    asks: bool = False
    is_held: bool = False
    parents: list[ListedCard]
    children: list[ListedCard]
    comments: list[CardComment]
    attachments: list[CardAttachment]
    runs: list[RunReport]
    history: list[BoardHistoryEntry]


def list_board(
    boards: Boards,
    slug: str = "",
    statuses: Sequence[CardStatus] = OPEN_STATUSES,
    limit: int = 0,
) -> BoardListing:
    """Returns a board and its cards, the most important first."""
    board, state = boards.board(slug), boards.state()

    def read(reader: BoardReader) -> BoardListing:
        cards = reader.cards(board.slug, statuses, limit)
        context = ListingContext(reader, state, cards)
        counts: dict[str, int] = dict.fromkeys(STATUSES, 0)
        for where, status, _, number in reader.counts():
            if where == board.slug:
                counts[status] += number
        return BoardListing(
            board=board,
            cards=[context.listed(card) for card in cards],
            counts=counts,
            dispatcher=state.dispatcher,
            last=reader.last_entry(),
        )

    return boards.read(read)


def card_details(boards: Boards, name: str, history: int = 50) -> CardDetails:
    """Everything about a card."""
    found, state = boards.find(name), boards.state()

    def read(reader: BoardReader) -> CardDetails:
        card = reader.card(found.id) or found
        parents = _cards(reader, reader.parents(card.id))
        children = _cards(reader, reader.children(card.id))
        context = ListingContext(reader, state, [card, *parents, *children])
        comments = reader.history(card.id, topic=_COMMENT, limit=1_000)
        return CardDetails(
            card=card,
            why=(why := context.why(card)),
            asks=why == ASKING,
            is_held=context.is_held(card),
            parents=[context.listed(one) for one in parents],
            children=[context.listed(one) for one in children],
            comments=[comment_of(one) for one in comments],
            attachments=reader.attachments(card.id),
            runs=[run_report(reader, run) for run in reader.runs(card.id)],
            history=reader.history(card.id, limit=history),
        )

    return boards.read(read)


def _cards(reader: BoardReader, names: list[str]) -> list[Card]:
    return [card for name in names if (card := reader.card(name)) is not None]


def run_report(reader: BoardReader, run: CardRun) -> RunReport:
    """Returns a run with the usage of its session."""
    cost, tokens = reader.spent([run.session]) if run.session else (0.0, 0)
    fields = {name: getattr(run, name) for name in _RUN_FIELDS}
    return RunReport(**fields, cost_usd=cost, tokens=tokens)


_RUN_FIELDS = (
    "id", "number", "agent", "phase", "outcome", "reason", "summary", "session", "workspace", "started",
    "ended", "note",
)  # fmt: skip


def comment_of(entry: BoardHistoryEntry) -> CardComment:
    """Returns a comment from its event in the history."""
    data: dict[str, Any] = entry.data
    return CardComment(
        id=entry.id,
        ts=entry.ts,
        by=str(data.get("by", "")),
        text=str(data.get("text", "")),
    )


class ListingContext:
    """The data that is looked up once for all cards of a list."""

    def __init__(
        self, reader: BoardReader, state: QueueState, cards: Sequence[Card]
    ) -> None:
        self._state = state
        self._parents: dict[str, list[str]] = {}
        self._children: dict[str, list[str]] = {}
        self._over: set[str] = set()
        ids = [card.id for card in cards]
        for parent, child, status in reader.links(ids):
            self._parents.setdefault(child, []).append(parent)
            self._children.setdefault(parent, []).append(child)
            if status in ("done", "archived"):
                self._over.add(parent)
        self._extras = reader.extras(ids)
        running = {card.id for card in cards if card.run}
        runs = reader.open_runs() if running else []
        self._runs = {run.card: run for run in runs if run.card in running}
        sessions = [run.session for run in self._runs.values() if run.session]
        self._costs = reader.costs(sessions)

    def why(self, card: Card) -> str:
        run = self._runs.get(card.id)
        if run is not None:
            if run.stop:
                return t.logged("is being stopped: {reason}", reason=run.stop)
            return run.note or (
                t.logged("working") if run.session else t.logged("starting")
            )
        return self._state.why(card, self._open_parents(card))

    def is_held(self, card: Card) -> bool:
        return card.status == "todo" and not self._open_parents(card)

    def _open_parents(self, card: Card) -> tuple[str, ...]:
        parents = self._parents.get(card.id, [])
        return tuple(name for name in parents if name not in self._over)

    def listed(self, card: Card) -> ListedCard:
        run = self._runs.get(card.id)
        comments, attachments = self._extras.get(card.id, (0, 0))
        session = run.session if run else ""
        return ListedCard(
            id=card.id,
            board=card.board,
            title=card.title,
            status=card.status,
            why=(why := self.why(card)),
            asks=bool(session) and why == ASKING,
            is_held=self.is_held(card),
            priority=card.priority,
            labels=card.labels,
            tenant=card.tenant,
            assignee=card.assignee,
            reviewer=card.reviewer,
            due=card.due,
            schedule=card.schedule,
            created=card.created,
            updated=card.updated,
            failures=card.failures,
            block_kind=card.block_kind,
            parents=tuple(self._parents.get(card.id, ())),
            children=tuple(self._children.get(card.id, ())),
            comments=comments,
            attachments=attachments,
            run=card.run,
            session=session,
            since=run.started if run else 0.0,
            cost_usd=self._costs.get(session, 0.0),
        )

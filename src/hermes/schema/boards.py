"""Boards as data: boards, cards, the runs of cards, and their events."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, TypeAlias

import msgspec
from msgspec import Meta

from hermes.schema.event_base import Event

CardStatus: TypeAlias = Literal[
    "triage", "todo", "ready", "running", "blocked", "review", "done", "archived"
]
BlockKind: TypeAlias = Literal["dependency", "needs_input", "capability", "transient"]
RunOutcome: TypeAlias = Literal[
    "running",
    "completed",
    "blocked",
    "review",
    "changes",
    "unclosed",
    "quota",
    "crashed",
    "timed_out",
    "budget",
    "failed",
    "stopped",
]
"""How a run ended. `unclosed`: the worker stopped without closing its card."""

PLAIN_AGENT = "hermes"
"""The assignee of a card that no agent file works on."""
KANBAN_SURFACE = "kanban"
"""The surface of sessions that work on a card."""
DEFAULT_BOARD = "default"
MAX_ATTACHMENT_BYTES = 25 * 1024 * 1024


class Board(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A board: cards that belong together."""

    slug: str
    """Its name in commands and addresses."""
    name: str
    created: float
    description: str = ""
    workspace: str = ""
    """The default workspace of its cards."""
    place: str = ""
    """The machine that has the folder of that workspace; empty if every machine may have it."""
    budget: str = ""
    """The most that its runs may use per day (UTC); empty for no limit."""
    max_running: int = 0
    """How many of its cards may run at once; 0 for no limit of its own."""
    removed: bool = False


class Card(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A piece of work on a board."""

    id: str
    board: str
    title: str
    created: float
    status: CardStatus = "todo"
    body: str = ""
    priority: int = 0
    """Cards with a higher number run first."""
    labels: tuple[str, ...] = ()
    tenant: str = ""
    assignee: str = PLAIN_AGENT
    """The name of an agent's file, or `hermes`."""
    reviewer: str = ""
    """The agent that reviews the result; empty for a person."""
    workspace: str = ""
    """`scratch`, `dir:PATH` or `worktree:PATH`; empty for the board's."""
    place: str = ""
    """The machine that has that folder; empty if every machine may have it."""
    awaited: str = ""
    """The machine that, as people were told, the card waits for."""
    branch: str = ""
    """The card's branch, if it has a worktree."""
    model: str = ""
    skills: tuple[str, ...] = ()
    budget: str = ""
    """The most that all its runs, and those of the cards that its workers made, may use: `$2` or `500k tokens`."""
    family: str = ""
    """The card whose workers made it, and whose budget it shares; empty if it has a budget of its own."""
    made: tuple[str, ...] = ()
    """The cards that share its budget."""
    time_limit: float = 0.0
    """Seconds that one run may take; 0 for the setting."""
    retries: int = 0
    """After this many bad endings in a row, the card is blocked; 0 for the setting."""
    due: float = 0.0
    """The card does not start before this time."""
    schedule: str = ""
    """The start time as the person wrote it, or why the card waits."""
    by: str = "user"
    """Who made it: a person's surface, or an agent's card."""
    origin: str = ""
    """The session in which it was made; that session's surfaces show its questions."""
    notify: tuple[str, ...] = ()
    """Chats and sessions that are told when it ends."""
    key: str = ""
    """No two cards have the same key."""
    depth: int = 0
    """The length of the chain of cards made by workers that ends with this one."""
    goal_mode: bool = False
    goal_max_turns: int = 0
    updated: float = 0.0
    started: float = 0.0
    ended: float = 0.0
    run: str = ""
    """The run that is working on it now."""
    after_stop: CardStatus | Literal[""] = ""
    """Its status once the run that was asked to stop has stopped."""
    phase: Literal["", "review"] = ""
    """The status to which it returns after a bad ending or when it is unblocked: ready for work, or for review."""
    failures: int = 0
    """Runs in a row that ended badly, whatever the reason."""
    last_error: str = ""
    block_kind: BlockKind | Literal[""] = ""
    block_reason: str = ""
    block_count: int = 0
    """How many times in a row it was blocked for the same kind of reason; only completing it resets this."""
    worker_blocks: int = 0
    """How many times in a row its workers blocked it, for any reason; a person who unblocks it resets this."""
    review_rounds: int = 0
    result: str = ""
    metadata: dict[str, Any] = {}


class CardRun(msgspec.Struct, frozen=True):
    """One attempt to do a card. The fields are the columns of its table."""

    id: str
    card: str
    board: str
    number: int
    agent: str
    phase: str
    """`work` or `review`."""
    outcome: RunOutcome = "running"
    reason: str = ""
    summary: str = ""
    closing: str = ""
    """JSON that says how the worker closed its card; it takes effect when the worker has ended."""
    session: str = ""
    workspace: str = ""
    owner: str = ""
    """The process that runs it."""
    expires: float = 0.0
    started: float = 0.0
    ended: float = 0.0
    beat: float = 0.0
    note: str = ""
    """The worker's last report on its progress."""
    stop: str = ""
    """Why it was asked to stop."""


class CardAttachment(msgspec.Struct, frozen=True):
    """A file of a card."""

    id: str
    card: str
    name: str
    size: int
    by: str
    added: float


class CardNotice(msgspec.Struct, frozen=True):
    """News of a card for a chat. `delivery` is `waiting` until it arrived."""

    id: str
    card: str
    target: str
    text: str
    made: float
    delivery: str


class BoardHistoryEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the history: an event with its number and time."""

    id: int
    ts: float
    topic: str
    data: dict[str, Any]


class BoardEvent(Event, frozen=True, kw_only=True):
    """The base of what happens on boards. Each is a row of the boards' history, written in the same transaction."""

    durable: ClassVar[bool] = False

    id: Annotated[
        int,
        Meta(
            description="Its number in the history of all boards; an event may arrive twice, this number tells."
        ),
    ] = 0
    board: Annotated[str, Meta(description="The board, by its short name.")]
    by: Annotated[
        str,
        Meta(description="Who did it: a surface, a person, a card's worker, Hermes."),
    ] = ""


class BoardChanged(BoardEvent, frozen=True, kw_only=True):
    """A board was created, changed or removed. Also a row of the boards' history."""

    topic: ClassVar[str] = "kanban.board.changed"
    sensitive: ClassVar[tuple[str, ...]] = ("name",)

    change: Annotated[
        Literal["created", "edited", "removed"], Meta(description="What happened.")
    ]
    name: Annotated[str, Meta(description="Its name.")] = ""


class CardCreated(BoardEvent, frozen=True, kw_only=True):
    """A card was created. Also a row of the boards' history."""

    topic: ClassVar[str] = "kanban.card.created"
    sensitive: ClassVar[tuple[str, ...]] = ("title",)

    card: Annotated[str, Meta(description="Id of the card.")]
    title: Annotated[str, Meta(description="Its title.")] = ""
    status: Annotated[CardStatus, Meta(description="Where it begins.")] = "todo"
    assignee: Annotated[str, Meta(description="Who works on it.")] = PLAIN_AGENT
    parents: Annotated[
        tuple[str, ...], Meta(description="Cards that must be done before.")
    ] = ()


class CardEdited(BoardEvent, frozen=True, kw_only=True):
    """Fields of a card were changed. Also a row of the boards' history."""

    topic: ClassVar[str] = "kanban.card.edited"
    sensitive: ClassVar[tuple[str, ...]] = ("fields",)

    card: Annotated[str, Meta(description="Id of the card.")]
    fields: Annotated[
        dict[str, Any], Meta(description="The new values, by name of the field.")
    ]


class CardMoved(BoardEvent, frozen=True, kw_only=True):
    """A card has another status. Also a row of the boards' history."""

    topic: ClassVar[str] = "kanban.card.moved"
    reasons: ClassVar[tuple[str, ...]] = ("reason",)
    sensitive: ClassVar[tuple[str, ...]] = ("reason",)

    card: Annotated[str, Meta(description="Id of the card.")]
    before: Annotated[CardStatus, Meta(description="Where it was.")]
    after: Annotated[CardStatus, Meta(description="Where it is now.")]
    reason: Annotated[str, Meta(description="Why, in words.")] = ""
    kind: Annotated[
        str,
        Meta(
            description="If it is blocked: dependency, needs_input, capability or transient."
        ),
    ] = ""


class CardsLinked(BoardEvent, frozen=True, kw_only=True):
    """A card must wait for another one, or no longer. Also a row of the boards' history."""

    topic: ClassVar[str] = "kanban.card.linked"

    card: Annotated[str, Meta(description="The card that waits (the child).")]
    parent: Annotated[str, Meta(description="The card that must be done before.")]
    linked: Annotated[bool, Meta(description="False: the link was removed.")] = True


class CardCommented(BoardEvent, frozen=True, kw_only=True):
    """Somebody wrote a comment on a card. Also a row of the boards' history."""

    topic: ClassVar[str] = "kanban.card.commented"
    sensitive: ClassVar[tuple[str, ...]] = ("text",)

    card: Annotated[str, Meta(description="Id of the card.")]
    text: Annotated[str, Meta(description="The comment.")] = ""


class CardAttached(BoardEvent, frozen=True, kw_only=True):
    """A file was attached to a card. Also a row of the boards' history."""

    topic: ClassVar[str] = "kanban.card.attached"
    sensitive: ClassVar[tuple[str, ...]] = ("name",)

    card: Annotated[str, Meta(description="Id of the card.")]
    attachment: Annotated[str, Meta(description="Id of the attachment.")] = ""
    name: Annotated[str, Meta(description="Name of the file.")] = ""
    size: Annotated[int, Meta(description="Bytes.")] = 0


class CardRunStarted(BoardEvent, frozen=True, kw_only=True):
    """A dispatcher claimed a card (without a session yet), or its worker began. Also a row of the boards' history."""

    topic: ClassVar[str] = "kanban.run.started"

    card: Annotated[str, Meta(description="Id of the card.")]
    run: Annotated[str, Meta(description="Id of the run.")]
    agent: Annotated[str, Meta(description="Who works on it.")] = PLAIN_AGENT
    session: Annotated[
        str, Meta(description="Session that does the work; empty when claimed.")
    ] = ""


class CardRunNoted(BoardEvent, frozen=True, kw_only=True):
    """A worker reported its progress, or how it wants its card closed. Also a row of the boards' history."""

    topic: ClassVar[str] = "kanban.run.noted"
    reasons: ClassVar[tuple[str, ...]] = ("note",)
    sensitive: ClassVar[tuple[str, ...]] = ("note",)

    card: Annotated[str, Meta(description="Id of the card.")]
    run: Annotated[str, Meta(description="Id of the run.")]
    note: Annotated[str, Meta(description="What it said.")] = ""


class CardWaiting(BoardEvent, frozen=True, kw_only=True):
    """A ready card waits for a machine on which nothing runs cards. Also a row of the boards' history."""

    topic: ClassVar[str] = "kanban.card.waiting"
    reasons: ClassVar[tuple[str, ...]] = ("reason",)
    sensitive: ClassVar[tuple[str, ...]] = ("reason",)

    card: Annotated[str, Meta(description="Id of the card.")]
    place: Annotated[str, Meta(description="The machine that has its folder.")]
    reason: Annotated[str, Meta(description="Why it waits, and what to do.")] = ""


class CardRunEnded(BoardEvent, frozen=True, kw_only=True):
    """A run of a card ended. Also a row of the boards' history."""

    topic: ClassVar[str] = "kanban.run.ended"
    reasons: ClassVar[tuple[str, ...]] = ("reason",)
    sensitive: ClassVar[tuple[str, ...]] = ("reason", "summary")

    card: Annotated[str, Meta(description="Id of the card.")]
    run: Annotated[str, Meta(description="Id of the run.")]
    outcome: Annotated[RunOutcome, Meta(description="How it ended.")]
    reason: Annotated[str, Meta(description="Why, in words.")] = ""
    summary: Annotated[str, Meta(description="What the worker handed over.")] = ""
    session: Annotated[str, Meta(description="Session that did the work.")] = ""
    failures: Annotated[
        int, Meta(description="Runs in a row that ended badly, with this one.")
    ] = 0


class DispatcherChanged(BoardEvent, frozen=True, kw_only=True):
    """A process began to run cards, or stopped. The role `kanban` says the same."""

    topic: ClassVar[str] = "kanban.dispatcher.changed"

    running: Annotated[bool, Meta(description="Whether it runs cards now.")]
    process: Annotated[str, Meta(description="The process.")] = ""


KANBAN_EVENTS: tuple[type[Event], ...] = (
    BoardChanged,
    CardCreated,
    CardEdited,
    CardMoved,
    CardsLinked,
    CardCommented,
    CardAttached,
    CardWaiting,
    CardRunStarted,
    CardRunNoted,
    CardRunEnded,
    DispatcherChanged,
)

"""What may start now, and why each card that could start does not: limits, budgets, times, parents, no dispatcher."""

import logging
import time
from collections import Counter
from collections.abc import Mapping
from weakref import WeakKeyDictionary

import msgspec

from hermes.app.app import App
from hermes.app.boards.card_budgets import board_spent, in_words
from hermes.core.budget import parse_amount
from hermes.errors import SettingsError
from hermes.schema.boards import Board, Card
from hermes.settings.boards import BoardSettings
from hermes.settings.load import load
from hermes.store.boards import BoardReader, CardPlacement

DISPATCHER_ROLE = "kanban"
"""The role that the process holds which runs cards; on several machines, what the names of their roles begin with."""
ASKING = "waits for your answer"
"""The note of a run that asked a person."""
_NO_DISPATCHER = "no dispatcher is running (hermes kanban run)"
_UNDECIDED = "needs a decision: specify or decompose it, or move it on"
_UNREVIEWED = "waits for a person's review: complete it, or request changes"
log = logging.getLogger("hermes.boards")


def dispatcher_role(place: str) -> str:
    """The role of the process that runs the cards of a machine."""
    return f"{DISPATCHER_ROLE}/{place}" if place else DISPATCHER_ROLE


def dispatcher_place(role: str) -> str:
    """The machine whose cards the holder of a role runs."""
    return role.removeprefix(DISPATCHER_ROLE).removeprefix("/")


def place_of_card(card: Card | CardPlacement, boards: Mapping[str, Board]) -> str:
    """The machine that has the folder of a card; empty if every machine may have it."""
    if card.workspace:
        return card.place
    board = boards.get(card.board)
    return board.place if board else ""


class QueueState(msgspec.Struct, frozen=True, kw_only=True):
    """What decides whether a card can start."""

    settings: BoardSettings
    running: int
    by_agent: Mapping[str, int]
    by_board: Mapping[str, int]
    boards: Mapping[str, Board]
    over_budget: Mapping[str, str]
    """Boards that have used their budget of the day, and how much."""
    dispatcher: str = ""
    """The process that runs cards; empty if none does."""
    places: frozenset[str] | None = None
    """The machines on which cards are run; None if that does not matter."""
    now: float

    @property
    def room(self) -> int:
        """How many more cards may start."""
        return max(0, self.settings.max_running - self.running)

    def full_agents(self) -> list[str]:
        """Assignees that have as many running cards as they may."""
        limit = self.settings.max_per_agent
        return [name for name, count in self.by_agent.items() if limit and count >= limit]  # fmt: skip

    def full_boards(self) -> list[str]:
        """Boards that may start nothing more now."""
        full = [
            slug
            for slug, board in self.boards.items()
            if board.removed
            or (board.max_running and self.by_board.get(slug, 0) >= board.max_running)
        ]
        return [*full, *(slug for slug in self.over_budget if slug not in full)]

    def why(self, card: Card, open_parents: tuple[str, ...] = ()) -> str:
        """Why a card does not run now, in words; empty if it is over."""
        match card.status:
            case "triage":
                why = card.block_reason or _UNDECIDED
            case "todo":
                waits = f"waits for {', '.join(open_parents)}" if open_parents else ""
                why = waits or f"held; start it with: hermes kanban promote {card.id}"
            case "ready":
                why = self._why_ready(card, card.assignee)
            case "review":
                why = self._why_ready(card, card.reviewer) if card.reviewer else _UNREVIEWED  # fmt: skip
            case "running":
                why = "running"
            case "blocked":
                why = f"{card.block_kind or 'needs_input'}: {card.block_reason or 'no reason given'}"
            case _:
                why = ""
        return why

    def _why_ready(self, card: Card, agent: str) -> str:
        if card.due > self.now:
            when = time.strftime("%d %b %H:%M", time.localtime(card.due))
            because = f" ({card.schedule})" if card.schedule else ""
            return f"scheduled for {when}{because}"
        if not self.dispatcher:
            return _NO_DISPATCHER
        place = place_of_card(card, self.boards)
        if place and self.places is not None and place not in self.places:
            return f"waits for {place}, which has its folder: no dispatcher is running there"
        return self._limit(card.board, agent) or "starts in a moment"

    def _limit(self, slug: str, agent: str) -> str:
        """The limit that keeps a card from starting."""
        board = self.boards.get(slug)
        if slug in self.over_budget:
            return f"the board's budget of today is used up: {self.over_budget[slug]}"
        if board is not None and slug in self.full_boards():
            return f"{board.max_running} cards of this board run already (its limit)"
        if not self.room:
            return f"{self.running} of {self.settings.max_running} cards run already (boards.max_running)"
        if agent in self.full_agents():
            return f"{self.by_agent[agent]} cards of {agent} run already (boards.max_per_agent)"
        return ""


def read_state(
    reader: BoardReader,
    settings: BoardSettings,
    now: float,
    dispatcher: str = "",
    places: frozenset[str] | None = None,
) -> QueueState:
    """Reads what decides about starts. Cheap: it looks at running cards and at boards."""
    runs = reader.open_runs()
    boards = {board.slug: board for board in reader.boards()}
    return QueueState(
        settings=settings,
        running=len(runs),
        by_agent=Counter(run.agent for run in runs),
        by_board=Counter(run.board for run in runs),
        boards=boards,
        over_budget=_over_budget(reader, boards, now),
        dispatcher=dispatcher,
        places=places,
        now=now,
    )


def _over_budget(
    reader: BoardReader, boards: Mapping[str, Board], now: float
) -> dict[str, str]:
    found: dict[str, str] = {}
    for slug, board in boards.items():
        if not board.budget:
            continue
        spent = board_spent(reader, board, now)
        limit = parse_amount(board.budget)[1]
        if spent >= limit:
            found[slug] = f"{in_words(board.budget, spent)} of {board.budget}"
    return found


class CurrentSettings:
    """The settings of boards as they are now: the file is read again when it has changed."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._stamp = self._look()
        self._changed: BoardSettings | None = None

    def read(self) -> BoardSettings:
        """The settings. A file that can't be used changes nothing, and the log says so."""
        stamp = self._look()
        if stamp != self._stamp:
            self._stamp = stamp
            try:
                self._changed = load(home=self._app.home).boards
            except SettingsError as error:
                log.warning("the changed settings of boards are not used: %s", error)
        return self._changed or self._app.settings.boards

    def _look(self) -> tuple[int, int]:
        try:
            found = self._app.home.config.stat()
        except OSError:
            return (0, 0)
        return (found.st_mtime_ns, found.st_size)


_known: WeakKeyDictionary[App, CurrentSettings] = WeakKeyDictionary()


def current_settings(app: App) -> CurrentSettings:
    """The same for all that ask in a process, from the first time on."""
    return _known.setdefault(app, CurrentSettings(app))

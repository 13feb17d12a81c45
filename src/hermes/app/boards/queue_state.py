"""What may start now, and why a card does not start: limits, budgets, times, parents, no dispatcher."""

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
from hermes.text.translation import translator

t = translator(__name__)

DISPATCHER_ROLE = "kanban"
"""The role of the process that runs cards; with several machines, the prefix of their roles."""
ASKING = t.logged("waits for your answer")
"""The note of a run that waits for a person's answer."""
_NO_DISPATCHER = t.logged("no dispatcher is running (hermes kanban run)")
_UNDECIDED = t.logged("needs a decision: specify or decompose it, or move it on")
_UNREVIEWED = t.logged("waits for a person's review: complete it, or request changes")
_NO_REASON = t.logged("no reason given")
log = logging.getLogger("hermes.boards")


def dispatcher_role(place: str) -> str:
    """Returns the role of the process that runs a machine's cards."""
    return f"{DISPATCHER_ROLE}/{place}" if place else DISPATCHER_ROLE


def dispatcher_place(role: str) -> str:
    """Returns the machine whose cards the holder of a role runs."""
    return role.removeprefix(DISPATCHER_ROLE).removeprefix("/")


def place_of_card(card: Card | CardPlacement, boards: Mapping[str, Board]) -> str:
    """Returns the machine that has a card's folder; empty if any machine can run the card."""
    if card.workspace:
        return card.place
    board = boards.get(card.board)
    return board.place if board else ""


def folder_of_card(card: Card | CardPlacement, boards: Mapping[str, Board]) -> str:
    """The folder that a card works in; empty for a new one of its own."""
    board = boards.get(card.board)
    workspace = card.workspace or (board.workspace if board else "")
    return workspace.partition(":")[2]


class QueueState(msgspec.Struct, frozen=True, kw_only=True):
    """The state that decides whether a card can start."""

    settings: BoardSettings
    running: int
    by_agent: Mapping[str, int]
    by_board: Mapping[str, int]
    boards: Mapping[str, Board]
    over_budget: Mapping[str, str]
    """Boards that have used today's budget, and how much."""
    dispatcher: str = ""
    """The process that runs cards; empty if none does."""
    places: Mapping[str, frozenset[str]] | None = None
    """The machines on which cards are run, and the folders that each lacks; None if it does not matter."""
    now: float

    @property
    def room(self) -> int:
        """How many more cards may start."""
        return max(0, self.settings.max_running - self.running)

    def full_agents(self) -> list[str]:
        """Returns the assignees that have reached their limit of running cards."""
        limit = self.settings.max_per_agent
        return [name for name, count in self.by_agent.items() if limit and count >= limit]  # fmt: skip

    def full_boards(self) -> list[str]:
        """Returns the boards that may not start more cards now."""
        full = [
            slug
            for slug, board in self.boards.items()
            if board.removed
            or (board.max_running and self.by_board.get(slug, 0) >= board.max_running)
        ]
        return [*full, *(slug for slug in self.over_budget if slug not in full)]

    def why(self, card: Card, open_parents: tuple[str, ...] = ()) -> str:
        """Returns why a card does not run now, in words; empty if it is finished."""
        match card.status:
            case "triage":
                why = card.block_reason or _UNDECIDED
            case "todo":
                why = _why_todo(card, open_parents)
            case "ready":
                why = self._why_ready(card, card.assignee)
            case "review":
                why = self._why_ready(card, card.reviewer) if card.reviewer else _UNREVIEWED  # fmt: skip
            case "running":
                why = t.logged("running")
            case "blocked":
                why = f"{card.block_kind or 'needs_input'}: {card.block_reason or _NO_REASON}"
            case _:
                why = ""
        return why

    def _why_ready(self, card: Card, agent: str) -> str:
        if card.due > self.now:
            when = time.strftime("%d %b %H:%M", time.localtime(card.due))
            if card.schedule:
                return t.logged(
                    "scheduled for {when} ({schedule})",
                    when=when,
                    schedule=card.schedule,
                )
            return t.logged("scheduled for {when}", when=when)
        if not self.dispatcher:
            return _NO_DISPATCHER
        place = place_of_card(card, self.boards)
        if place and self.places is not None and place not in self.places:
            return t.logged(
                "waits for {machine}, which has its folder: {state}",
                machine=place,
                state=t.logged("no dispatcher is running there"),
            )
        folder = folder_of_card(card, self.boards)
        if not place and folder and self._all_lack(folder):
            return t.logged("waits for a machine that has {folder}", folder=folder)
        return self._limit(card.board, agent) or t.logged("starts in a moment")

    def _all_lack(self, folder: str) -> bool:
        """Returns whether every machine on which cards are run has said that it lacks a folder."""
        if self.places is None:
            return False
        return all(folder in lacking for lacking in self.places.values())

    def _limit(self, slug: str, agent: str) -> str:
        """Returns the limit that prevents a card from starting."""
        board = self.boards.get(slug)
        if slug in self.over_budget:
            return t.logged(
                "the board's budget of today is used up: {used}",
                used=self.over_budget[slug],
            )
        if board is not None and slug in self.full_boards():
            return t.logged(
                "{number} cards of this board run already (its limit)",
                number=board.max_running,
            )
        if not self.room:
            return t.logged(
                "{running} of {limit} cards run already (boards.max_running)",
                running=self.running,
                limit=self.settings.max_running,
            )
        if agent in self.full_agents():
            return t.logged(
                "{number} cards of {agent} run already (boards.max_per_agent)",
                number=self.by_agent[agent],
                agent=agent,
            )
        return ""


def _why_todo(card: Card, open_parents: tuple[str, ...]) -> str:
    if open_parents:
        return t.logged("waits for {cards}", cards=", ".join(open_parents))
    return t.logged(
        "held; start it with: {command}",
        command=f"hermes kanban promote {card.id}",
    )


def read_state(
    reader: BoardReader,
    settings: BoardSettings,
    now: float,
    dispatcher: str = "",
    places: Mapping[str, frozenset[str]] | None = None,
) -> QueueState:
    """Reads the state that decides about starts. Cheap: reads only running cards and boards."""
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
            spent_in_words = in_words(board.budget, spent)
            found[slug] = f"{spent_in_words} / {board.budget}"
    return found


class CurrentSettings:
    """The current settings of boards: the file is read again when it has changed."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._stamp = self._look()
        self._changed: BoardSettings | None = None

    def read(self) -> BoardSettings:
        """Returns the settings. An unusable file changes nothing and is logged."""
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
    """Returns the settings reader that all callers in a process share."""
    return _known.setdefault(app, CurrentSettings(app))

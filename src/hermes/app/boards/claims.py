"""Claims cards: as many as the limits allow, in one transaction, so that no two processes start the same card."""

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from hermes.app.boards import card_rules as rules
from hermes.app.boards.card_budgets import budget_of, in_words
from hermes.app.boards.card_rules import RunEnding, RunLimits, new_id
from hermes.app.boards.queue_state import folder_of_card, place_of_card, read_state
from hermes.core.budget import parse_amount
from hermes.schema.boards import Board, Card, CardRun, CardRunStarted
from hermes.settings.boards import BoardSettings
from hermes.store.boards import (
    BoardReader,
    BoardStore,
    BoardTransaction,
    CardPlacement,
)
from hermes.store.leases import LEASE_TTL_S
from hermes.text.translation import translator

t = translator(__name__)

GONE = t.logged("the process that ran it is gone")
NOT_STARTED = t.logged("the process that claimed it ended before it started")
_MAX_PASSES = 20
MAX_CLAIMS = 25
"""The maximum number of cards claimed in one transaction, which keeps it short."""


class ClaimedCard(msgspec.Struct, frozen=True):
    """A card that this process will run."""

    card: Card
    run: CardRun


def claim_ready(
    tx: BoardTransaction, settings: BoardSettings, owner: str, place: str = ""
) -> list[ClaimedCard]:
    """Claims ready cards, the most important first, as far as the limits allow.

    With a place, claims only those that the machine of that name can run.
    """
    state = read_state(tx, settings, tx.now, owner)
    agents, boards = Counter(state.by_agent), Counter(state.by_board)
    room, claimed = min(state.room, MAX_CLAIMS), list[ClaimedCard]()
    for _ in range(_MAX_PASSES):
        full = msgspec.structs.replace(state, by_agent=agents, by_board=boards)
        without = (full.full_agents(), full.full_boards())
        left = room - len(claimed)
        found = list[Card]()
        if left > 0:
            fits = fits_place(place, state.boards)
            found = tx.ready(tx.now, without=without, limit=left, fits=fits)
        if not found:
            break
        numbers = tx.last_numbers([card.id for card in found])
        for card in found:
            now = msgspec.structs.replace(state, by_agent=agents, by_board=boards)
            agent = _agent(card)
            if agent in now.full_agents() or card.board in now.full_boards():
                continue
            if _has_spent(tx, card, settings):
                continue
            number = numbers.get(card.id, 0) + 1
            claimed.append(_claim(tx, card, agent, owner, number))
            agents[agent] += 1
            boards[card.board] += 1
    return claimed


def fits_place(
    place: str, boards: Mapping[str, Board]
) -> Callable[[CardPlacement], bool] | None:
    """Returns a function that decides whether a card can run on a machine; None if every card can."""
    if not place:
        return None
    is_here: dict[str, bool] = {}

    def fits(card: CardPlacement) -> bool:
        where = place_of_card(card, boards)
        if where:
            return where == place
        folder = folder_of_card(card, boards)
        if folder not in is_here:
            is_here[folder] = not folder or Path(folder).is_dir()
        return is_here[folder]

    return fits


def missing_folders(reader: BoardReader, now: float) -> list[str]:
    """Returns the folders of ready cards that any machine may run, as far as this machine lacks them."""
    boards = {board.slug: board for board in reader.boards()}
    found: set[str] = set()

    def note(card: CardPlacement) -> bool:
        if not place_of_card(card, boards):
            found.add(folder_of_card(card, boards))
        return False  # so that all are looked at

    reader.ready(now, without=((), ()), limit=1, fits=note)
    return sorted(one for one in found if one and not Path(one).is_dir())


def _agent(card: Card) -> str:
    return card.reviewer if card.status == "review" else card.assignee


def _claim(
    tx: BoardTransaction, card: Card, agent: str, owner: str, number: int
) -> ClaimedCard:
    phase = "review" if card.status == "review" else "work"
    run = CardRun(
        id=new_id("r"),
        card=card.id,
        board=card.board,
        number=number,
        agent=agent,
        phase=phase,
        owner=owner,
        expires=tx.lease_time + LEASE_TTL_S,
        started=tx.now,
        beat=tx.now,
    )
    tx.insert_run(run)
    tx.note(CardRunStarted(board=card.board, card=card.id, run=run.id, agent=agent))
    card = rules.move(
        tx, card, "running", by="hermes", reason=t.logged("run number {number}", number=run.number), run=run.id,
        started=tx.now, due=0.0, schedule="", after_stop="", awaited="",
    )  # fmt: skip
    return ClaimedCard(card, run)


def _has_spent(tx: BoardTransaction, card: Card, settings: BoardSettings) -> bool:
    """Blocks a card whose budget is used up. Returns whether it is used up."""
    budget = budget_of(tx, card, settings.budget)
    if budget is None or budget.left > 0:
        return False
    holder, amount = budget.holder, in_words(budget.amount, parse_amount(budget.amount)[1])  # fmt: skip
    command = f"hermes kanban edit {holder.id} --budget AMOUNT"
    if holder.id == card.id:
        reason = t.logged(
            "its budget, {amount}, is used up; raise it with: {command}",
            amount=amount,
            command=command,
        )
    else:
        reason = t.logged(
            "the budget it shares with {card}, {amount}, is used up; raise it with: {command}",
            card=holder.id,
            amount=amount,
            command=command,
        )
    rules.block(tx, card, "needs_input", reason, by="hermes")
    return True


def settle(tx: BoardTransaction, store: BoardStore, limits: RunLimits) -> list[CardRun]:
    """Ends the runs whose process is gone, each once, and moves their cards on. Returns them.

    A run of this process that is not active was claimed but never started, so it counts as gone too.
    """
    others = [run for run in tx.open_runs() if run.id not in store.active]
    gone = [run for run in others if run.owner == store.owner]
    gone += store.is_gone(
        [run for run in others if run.owner != store.owner], tx.lease_time
    )
    for run in gone:
        rules.finish_run(tx, run, ending_of(run), limits)
    return gone


def ending_of(run: CardRun) -> RunEnding:
    """Returns how a run ended whose process is gone: as its worker closed it, or as a crash."""
    if run.closing:
        return msgspec.json.decode(run.closing, type=RunEnding)
    if run.stop:
        return RunEnding(outcome="stopped", reason=run.stop)
    return RunEnding(outcome="crashed", reason=GONE if run.session else NOT_STARTED)

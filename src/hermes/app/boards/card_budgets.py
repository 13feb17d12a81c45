"""The budgets of cards. A card's budget covers all its runs, and those of cards that its workers created: its family.

A running card is capped by the budget of its family and by today's budget of its board. Before each model call, both
are compared with what all sessions of the family or the board have used, in any process.
"""

import msgspec

from hermes.core.budget import Cap, Unit, parse_amount
from hermes.schema.boards import Board, Card
from hermes.store.boards import BoardReader
from hermes.text.translation import translator

t = translator(__name__)

_DAY_S = 86_400.0
_MAX_RUNS = 1_000  # of one card


class CardBudget(msgspec.Struct, frozen=True):
    """The budget of a family of cards."""

    holder: Card
    """The card that has the budget."""
    amount: str
    used: float

    @property
    def unit(self) -> Unit:
        return parse_amount(self.amount)[0]

    @property
    def left(self) -> float:
        return max(0.0, parse_amount(self.amount)[1] - self.used)


def budget_of(reader: BoardReader, card: Card, default: str) -> CardBudget | None:
    """Returns the budget that applies to a card: its family's, or `default`. None if there is no limit."""
    holder = holder_of(reader, card)
    amount = holder.budget or default
    if not amount:
        return None
    return CardBudget(holder, amount, spent_of(amount, reader, _sessions(reader, holder)))  # fmt: skip


def holder_of(reader: BoardReader, card: Card) -> Card:
    """Returns the card whose budget applies: the card itself, or the first card of its family."""
    first = reader.card(card.family) if card.family else None
    return first or card


def card_caps(reader: BoardReader, session: str, default: str) -> list[Cap]:
    """Returns the caps of a session that works on a card; empty for other sessions."""
    run = reader.run_of_session(session)
    card = reader.card(run.card) if run is not None else None
    if card is None:
        return []
    caps: list[Cap] = []
    if (budget := budget_of(reader, card, default)) is not None:
        hint = t.logged(
            "Raise it: {command}",
            command=f"hermes kanban edit {budget.holder.id} --budget AMOUNT",
        )
        caps.append(_cap("card", budget.amount, budget.holder.id, hint))
    board = reader.board(card.board)
    if board is not None and board.budget:
        hint = t.logged(
            "Raise it: {command}",
            command=f"hermes kanban boards edit {board.slug} --budget AMOUNT",
        )
        caps.append(_cap("board", board.budget, board.slug, hint))
    return caps


def _cap(scope: str, amount: str, key: str, hint: str) -> Cap:
    unit, limit = parse_amount(amount)
    return Cap(scope, unit, limit, owner=f"the {scope} {key}", key=key, hint=hint)


def capped_sessions(reader: BoardReader, cap: Cap, now: float) -> list[str]:
    """Returns the sessions whose usage counts towards the cap of a card or a board."""
    if cap.scope == "board":
        return reader.sessions_since(cap.key, today(now))
    holder = reader.card(cap.key)
    return _sessions(reader, holder) if holder is not None else []


def _sessions(reader: BoardReader, holder: Card) -> list[str]:
    """Returns the sessions of all runs of a family."""
    names = (holder.id, *holder.made)
    runs = (run for name in names for run in reader.runs(name, _MAX_RUNS))
    return [run.session for run in runs if run.session]


def board_spent(reader: BoardReader, board: Board, now: float) -> float:
    """Returns what the runs of a board have used today, in the unit of its budget."""
    sessions = reader.sessions_since(board.slug, today(now))
    return spent_of(board.budget, reader, sessions)


def today(now: float) -> float:
    """Returns when the current day (UTC) began."""
    return now - now % _DAY_S


def spent_of(budget: str, reader: BoardReader, sessions: list[str]) -> float:
    """Returns what sessions have used, in the unit of a budget."""
    unit, _ = parse_amount(budget)
    cost, tokens = reader.spent(sessions)
    return cost if unit == "usd" else float(tokens)


def in_words(budget: str, amount: float) -> str:
    """Formats an amount in the unit of a budget."""
    unit, _ = parse_amount(budget)
    return f"${amount:.2f}" if unit == "usd" else f"{amount:,.0f} tokens"

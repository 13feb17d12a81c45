"""A board by columns, one page of cards at a time: what the dashboard shows, for any number of cards."""

from collections.abc import Sequence

import msgspec

from hermes.app.boards.board_service import Boards
from hermes.app.boards.listing import ListedCard, ListingContext
from hermes.app.boards.queue_state import QueueState
from hermes.schema.boards import Board, Card, CardStatus
from hermes.store.boards import BoardReader


class CardFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which cards to include. Empty fields include all."""

    words: tuple[str, ...] = ()
    """In lower case; each word must be in the title or the body, or be the beginning of the id."""
    assignee: str = ""
    label: str = ""
    tenant: str = ""

    def matches(self, card: Card) -> bool:
        """Returns whether a card matches."""
        text = f"{card.title} {card.body}".casefold() if self.words else ""
        return (
            (not self.assignee or card.assignee == self.assignee)
            and (not self.label or self.label in card.labels)
            and (not self.tenant or card.tenant == self.tenant)
            and all(word in text or card.id.startswith(word) for word in self.words)
        )


class BoardColumn(msgspec.Struct, frozen=True, kw_only=True):
    """The cards with one status."""

    status: CardStatus
    total: int
    """How many cards match, including those that are not in `cards`."""
    cards: list[ListedCard]


class BoardColumns(msgspec.Struct, frozen=True, kw_only=True):
    """A board by columns."""

    board: Board
    columns: list[BoardColumn]
    counts: dict[str, int]
    """How many cards there are by status, whether they match or not."""
    labels: list[str]
    assignees: list[str]
    running: int
    """How many cards run now, on all boards."""
    max_running: int
    dispatcher: str
    """The process that runs cards; empty if none does."""
    idle: str
    """Why nothing on this board runs although cards are ready."""
    last: int
    """The number of the newest event in the history; later ones change this answer."""


class ColumnPage(msgspec.Struct, frozen=True, kw_only=True):
    """The part of each column to return."""

    statuses: Sequence[CardStatus]
    limit: int
    offset: int = 0


def board_columns(boards: Boards, slug: str, page: ColumnPage, wanted: CardFilter) -> BoardColumns:  # fmt: skip
    """Returns a page of each column, the most important cards first."""
    board, state = boards.board(slug), boards.state()

    def read(reader: BoardReader) -> BoardColumns:
        counts: dict[str, int] = {}
        assignees: set[str] = set()
        for where, status, assignee, number in reader.counts():
            if where == board.slug:
                counts[status] = counts.get(status, 0) + number
                assignees.add(assignee)
        parts = {
            status: _part(reader, board.slug, status, page, wanted)
            for status in page.statuses
        }
        shown = [card for _, cards in parts.values() for card in cards]
        context = ListingContext(reader, state, shown)
        return BoardColumns(
            board=board,
            columns=[
                BoardColumn(
                    status=status,
                    total=counts.get(status, 0) if total is None else total,
                    cards=[context.listed(card) for card in cards],
                )
                for status, (total, cards) in parts.items()
            ],
            counts=counts,
            labels=reader.labels(board.slug),
            assignees=sorted(assignees),
            running=state.running,
            max_running=state.settings.max_running,
            dispatcher=state.dispatcher,
            idle=_idle(reader, state, board, counts),
            last=reader.last_entry(),
        )

    return boards.read(read)


def _part(
    reader: BoardReader,
    board: str,
    status: CardStatus,
    page: ColumnPage,
    wanted: CardFilter,
) -> tuple[int | None, list[Card]]:
    """Returns the number of matching cards (None if there is no filter), and a page of them."""
    if wanted == CardFilter():
        return None, reader.cards(board, (status,), page.limit, page.offset)
    found = [one for one in reader.cards(board, (status,)) if wanted.matches(one)]
    return len(found), found[page.offset : page.offset + page.limit]


def _idle(
    reader: BoardReader, state: QueueState, board: Board, counts: dict[str, int]
) -> str:
    if counts.get("running") or not counts.get("ready"):
        return ""
    first = reader.cards(board.slug, ("ready",), 1)
    return state.why(first[0]) if first else ""

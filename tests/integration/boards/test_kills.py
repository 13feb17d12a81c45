"""Kills of processes that run cards, and many cards: the short forms of `make bench BENCH=boards`."""

from pathlib import Path

from tests.fakes.board_kills import fill, run_kills

from hermes.app import build
from hermes.app.boards.board_service import Boards
from hermes.app.boards.claims import claim_ready
from hermes.app.boards.listing import list_board
from hermes.events import Bus
from hermes.settings import Home, Settings
from hermes.settings.boards import BoardSettings


async def test_kills_lose_no_card_and_run_none_twice(tmp_path: Path) -> None:
    report = await run_kills(tmp_path, kills=3, cards=6)
    assert report.hits >= 2, "most kills hit a running card"
    assert report.outcomes["crashed"] > 0
    assert report.lost == ()
    assert report.overlapping == ()
    assert report.unended == 0
    assert report.done == report.cards == 6


def test_of_many_cards_as_many_as_allowed_are_claimed_and_all_are_listed(
    tmp_path: Path,
) -> None:
    home = Home(tmp_path / "home").ensure()
    fill(home.state, cards=1_000)
    settings = BoardSettings(max_running=200)
    with build(Settings(boards=settings), home, bus=Bus()) as app:
        boards = Boards(app)
        claimed = [
            one
            for _ in range(10)
            for one in boards.change(
                lambda tx: claim_ready(tx, settings, boards.store.owner)
            )
        ]
        assert len(claimed) == 200
        assert min(one.card.priority for one in claimed) >= 4
        listing = list_board(boards)
        assert len(listing.cards) == 1_000
        assert all(card.why for card in listing.cards)

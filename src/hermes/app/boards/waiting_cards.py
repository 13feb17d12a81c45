"""Reports ready cards that only another machine can run, while nothing runs cards there. Each is reported once."""

import logging
import time
from collections.abc import Mapping

import msgspec

from hermes.app.app import App
from hermes.app.boards import card_rules as rules
from hermes.app.boards.board_service import Boards
from hermes.app.boards.queue_state import place_of_card
from hermes.app.machines import WaitingWork, find_waiting_cards, read_machines
from hermes.schema.boards import Board, Card, CardWaiting
from hermes.store.boards import BoardTransaction
from hermes.store.hosts import GONE_AFTER_S
from hermes.text.translation import translator

t = translator(__name__)

log = logging.getLogger("hermes.boards")


class WaitingCards:
    """Reports the waiting cards of one store. Only one of the processes reports each card."""

    def __init__(self, app: App, boards: Boards) -> None:
        self._app = app
        self._boards = boards
        self._looked = float("-inf")

    def tell(self) -> None:
        """Reports cards that have waited for a while, each once. Checks only from time to time."""
        now = self._app.clock.now()
        if now - self._looked < GONE_AFTER_S / 3:
            return
        self._looked = now
        late = {
            one.id: one
            for one in find_waiting_cards(self._app, read_machines(self._app))
            if now - max(one.since, one.seen) > GONE_AFTER_S
        }
        if late:
            self._boards.change(lambda tx: _tell_all(tx, late))


def _tell_all(tx: BoardTransaction, late: Mapping[str, WaitingWork]) -> None:
    boards = {board.slug: board for board in tx.boards()}
    for name, found in late.items():
        card = tx.card(name)
        if card is not None and _is_untold(card, found, boards):
            _tell(tx, card, found)


def _is_untold(card: Card, found: WaitingWork, boards: Mapping[str, Board]) -> bool:
    """Returns whether a card still waits for that machine and was not reported yet."""
    is_ready = card.status == "ready" or (card.status == "review" and card.reviewer)
    place = place_of_card(card, boards)
    return bool(is_ready) and place == found.place and card.awaited != place


def _tell(tx: BoardTransaction, card: Card, found: WaitingWork) -> None:
    why = t.logged(
        "waits for {machine}, which has its folder: {state}",
        machine=found.place,
        state=_state(found),
    )
    todo = t.logged(
        "It starts once `hermes gateway run`, `hermes dashboard` or `hermes worker` is started there. To run it on"
        " another machine, type there: {command}",
        command=f"hermes kanban edit {card.id} --workspace dir:DIR",  # not translated
    )
    log.warning("card %s (%s) %s", card.id, card.title, why)
    rules.tell(tx, card, why, todo)
    tx.note(
        CardWaiting(
            board=card.board,
            card=card.id,
            place=found.place,
            reason=f"{why}. {todo}",
            by="hermes",
        )
    )
    tx.put(msgspec.structs.replace(card, awaited=found.place))


def _state(found: WaitingWork) -> str:
    """Describes what is known about a machine."""
    if found.is_draining:
        return t.logged("it is being stopped and begins nothing new")
    if not found.seen:
        return t.logged("nothing runs cards there")
    seen = time.strftime("%a %d %b %Y %H:%M", time.localtime(found.seen))
    return t.logged("it was last heard from on {when}", when=seen)

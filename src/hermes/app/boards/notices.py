"""Delivers notices about cards to the chats and sessions that created them. They stay in a table until they arrive.

Those for chats go through the table of outgoing messages, where they wait for a gateway in which their platform runs.
"""

import asyncio
import logging

from hermes.app.app import App
from hermes.app.boards.board_service import Boards
from hermes.app.outgoing import MessageOutbox
from hermes.app.schedules.delivery import put_into_session
from hermes.errors import HermesError, SessionNotFound, StoreError
from hermes.primitives.tasks import BackgroundTasks
from hermes.schema.boards import CardCommented, CardNotice
from hermes.store.boards import BoardTransaction
from hermes.text.translation import shown_reason, translator

t = translator(__name__)

log = logging.getLogger("hermes.boards")

NOTICE_KEEP_S = 7 * 86_400.0
"""How long a notice waits for the platform of its chat."""
_ROLE = "card-news"
"""The role of the process that puts news into sessions: of several, one does, so none comes twice."""


class CardNotices:
    """Delivers the notices of one home."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._boards = Boards(app)
        self._tasks = BackgroundTasks("delivering news of cards")

    def begin(self) -> None:
        """Delivers pending notices in the background."""
        if not self._tasks:
            self._tasks.start(self._take_waiting())

    async def join(self) -> None:
        """Waits until the pending notices are delivered, or left to a gateway."""
        await self._tasks.join()

    async def close(self) -> None:
        """Stops. The rest is delivered later."""
        await self._tasks.close()

    async def _take_waiting(self) -> None:
        try:
            waiting = await self._waiting()
            chats = [one for one in waiting if not _is_for_session(one)]
            if chats:
                await asyncio.to_thread(self._tell_chats, chats)
            if len(chats) < len(waiting):
                await self._tell_sessions()
        except Exception:  # the boundary of this task
            log.exception("news of cards could not be delivered; will try again")

    async def _waiting(self) -> list[CardNotice]:
        return await asyncio.to_thread(
            self._boards.read, lambda reader: reader.notices()
        )

    def _tell_chats(self, notices: list[CardNotice]) -> None:
        """Puts notices into the table of outgoing messages, and ends those that arrived or never will."""
        known = self._app.store.sends.known([one.id for one in notices])
        for notice in notices:
            sent = known.get(notice.id)
            if sent is None:
                self._queue(notice)
            elif sent.state == "sent":
                self._end(notice, notice.target)
            elif sent.is_over:
                self._give_up(notice, sent.reason)

    def _queue(self, notice: CardNotice) -> None:
        text = shown_reason(notice.text)
        try:
            MessageOutbox(self._app).queue(
                notice.target, text, name=notice.id, keep_s=NOTICE_KEEP_S
            )
        except StoreError:  # it is tried again
            raise
        except HermesError as error:
            self._give_up(notice, error.message)

    async def _tell_sessions(self) -> None:
        roles = self._app.store.roles
        role = await asyncio.to_thread(roles.take, _ROLE)
        if role is None:
            return
        try:
            for notice in await self._waiting():
                if _is_for_session(notice):
                    await asyncio.to_thread(self._tell_session, notice)
        finally:
            await asyncio.to_thread(roles.release, role)

    def _tell_session(self, notice: CardNotice) -> None:
        session = notice.target.partition(":")[2]
        try:
            place = put_into_session(
                self._app, session, "Board", notice.text, once=f"board#{notice.id}"
            )
        except SessionNotFound as error:
            self._give_up(notice, error.message)
        except StoreError:  # it is tried again
            raise
        except HermesError as error:
            self._give_up(notice, error.message)
        else:
            self._end(notice, place)

    def _end(self, notice: CardNotice, delivery: str) -> None:
        self._boards.change(lambda tx: tx.end_notice(notice, delivery))

    def _give_up(self, notice: CardNotice, reason: str) -> None:
        """Ends a notice that can't be delivered, and says so on its card."""
        log.warning("news of card %s were not delivered: %s", notice.card, reason)

        def write(tx: BoardTransaction) -> None:
            delivery = t.logged("not delivered: {reason}", reason=reason)
            card = tx.card(notice.card)
            if not tx.end_notice(notice, delivery) or card is None:
                return
            text = f"{notice.target}: {delivery}"
            tx.note(CardCommented(board=card.board, card=card.id, text=text, by="hermes"))  # fmt: skip

        self._boards.change(write)


def _is_for_session(notice: CardNotice) -> bool:
    return notice.target.startswith("session:")

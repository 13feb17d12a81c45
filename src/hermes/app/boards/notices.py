"""Delivers notices about cards to the chats and sessions that created them. They stay in a table until they arrive."""

import asyncio
import logging

from hermes.app.app import App
from hermes.app.schedules.delivery import Deliver, put_into_session
from hermes.errors import HermesError, in_sentences
from hermes.primitives.tasks import BackgroundTasks
from hermes.schema.boards import CardNotice
from hermes.store.boards import BoardStore
from hermes.text.translation import shown_reason, translator

t = translator(__name__)

log = logging.getLogger("hermes.boards")

_ROLE = "card-news"
"""The role of the process that puts news into sessions: of several, one does, so none comes twice."""


class CardNotices:
    """Delivers the notices of one home. Without `deliver`, those for chats are left to a gateway."""

    def __init__(self, app: App, deliver: Deliver | None = None) -> None:
        self._app = app
        self._deliver = deliver
        self._tasks = BackgroundTasks("delivering news of cards")

    @property
    def _store(self) -> BoardStore:
        return self._app.store.boards

    def begin(self) -> None:
        """Delivers pending notices in the background."""
        if not self._tasks:
            self._tasks.start(self._take_waiting())

    async def join(self) -> None:
        """Waits until the pending notices are delivered."""
        await self._tasks.join()

    async def close(self) -> None:
        """Stops. The rest is delivered later."""
        await self._tasks.close()

    async def _take_waiting(self) -> None:
        try:
            waiting = await self._waiting()
            for notice in waiting:
                if not _is_for_session(notice):
                    await self._take(notice)
            if any(map(_is_for_session, waiting)):
                await self._tell_sessions()
        except Exception:  # the boundary of this task
            log.exception("news of cards could not be delivered; will try again")

    async def _waiting(self) -> list[CardNotice]:
        return await asyncio.to_thread(
            self._store.read, lambda reader: list(reader.notices())
        )

    async def _tell_sessions(self) -> None:
        roles = self._app.store.roles
        role = await asyncio.to_thread(roles.take, _ROLE)
        if role is None:
            return
        try:
            for notice in await self._waiting():
                if _is_for_session(notice):
                    await self._take(notice)
        finally:
            await asyncio.to_thread(roles.release, role)

    async def _take(self, notice: CardNotice) -> None:
        kind, _, place = notice.target.partition(":")
        if kind != "session" and self._deliver is None:
            return
        try:
            if kind == "session":
                delivery = await asyncio.to_thread(
                    put_into_session,
                    self._app,
                    place,
                    "Board",
                    notice.text,
                    once=f"board#{notice.id}",
                )
            else:
                assert self._deliver is not None  # noqa: S101 - asked above
                await self._deliver(notice.target, shown_reason(notice.text))
                delivery = notice.target
        except HermesError as error:
            told = in_sentences(error)
            log.warning("news of card %s were not delivered: %s", notice.card, told)
            delivery = t.logged("not delivered: {reason}", reason=error.message)
        await asyncio.to_thread(self._store.delivered, notice, delivery)


def _is_for_session(notice: CardNotice) -> bool:
    return notice.target.startswith("session:")

"""Tells chats that wait for an answer that the store can't be reached, once per outage."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from hermes.primitives.tasks import BackgroundTasks
from hermes.store.store import Reachability
from hermes.surfaces.gateway.adapter import AdapterError, Chat, Outbound
from hermes.surfaces.gateway.sender import Sender
from hermes.text.translation import to_translate, translator

t = translator(__name__)

log = logging.getLogger("hermes.gateway")

NOTICE = to_translate(
    "⏳ Store unreachable, waiting. I answer as soon as it is back; you don't need to write again."
)
_NOTICE_DELAY_S = 2.0
"""A short outage is waited out in silence."""


class OutageNotices:
    """Make it inside the event loop. `waiting_chats` are those in which a turn runs."""

    def __init__(
        self,
        reachability: Reachability,
        senders: dict[str, Sender],
        waiting_chats: Callable[[], list[Chat]],
    ) -> None:
        self._reachability = reachability
        self._senders = senders
        self._waiting_chats = waiting_chats
        self._loop = asyncio.get_running_loop()
        self._told: set[Chat] = set()
        self._tasks = BackgroundTasks("telling chats about an outage")

    def start(self) -> None:
        """Begins to listen."""
        self._reachability.listeners.append(self._hear)

    async def close(self) -> None:
        """Ends listening."""
        self._reachability.listeners.remove(self._hear)
        await self._tasks.close()

    def _hear(self, _: Reachability) -> None:
        self._loop.call_soon_threadsafe(self._change)

    def _change(self) -> None:
        if self._reachability.is_reachable:
            self._told.clear()
        else:
            self._tasks.start(self._tell_waiting())

    async def _tell_waiting(self) -> None:
        await asyncio.sleep(_NOTICE_DELAY_S)
        for chat in self._waiting_chats():
            await self._tell(chat)

    @asynccontextmanager
    async def covering(self, chat: Chat, *, is_known: bool) -> AsyncIterator[None]:
        """Tells a chat if what happens inside has to wait for the store. Strangers are told nothing."""
        notice = self._tasks.start(self._tell_later(chat)) if is_known else None
        try:
            yield
        finally:
            if notice is not None:
                notice.cancel()

    async def _tell_later(self, chat: Chat) -> None:
        await asyncio.sleep(_NOTICE_DELAY_S)
        await self._tell(chat)

    async def _tell(self, chat: Chat) -> None:
        sender = self._senders.get(chat.platform)
        if self._reachability.is_reachable or chat in self._told or sender is None:
            return
        self._told.add(chat)
        try:
            await sender.adapter.send(chat, Outbound(text=t.marked(NOTICE)))
        except AdapterError as error:
            log.info("%s was not told about the outage: %s", chat.platform, error)

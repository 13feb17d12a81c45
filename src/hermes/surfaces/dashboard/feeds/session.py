"""The feed of one session: its rows from a cursor on, then what happens, in order, without holes or doubles."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

import msgspec

from hermes.app import App
from hermes.errors import SessionNotFound
from hermes.store.log_row import Row
from hermes.surfaces.dashboard.feeds.hub import Hub
from hermes.surfaces.dashboard.feeds.inbox import Inbox, Item

PACE = 0.01  # seconds between two batches: what comes meanwhile goes together
_PAGE = 200  # rows read at once


class SessionFeed:
    """To be iterated once: `batches` gives what is to be sent, until the session or the hub ends."""

    def __init__(self, app: App, hub: Hub, session: str) -> None:
        self._app = app
        self._hub = hub
        self._session = session
        self._epoch = 0
        self._last = 0
        self.deleted = False

    async def batches(
        self, *, epoch: int = 0, after: int = 0
    ) -> AsyncGenerator[list[Item]]:
        """Everything after the cursor. Raises SessionNotFound when there is no such session to begin with."""
        with self._hub.listening(self._session) as inbox:
            yield [await self._hello()]
            if after and epoch not in {0, self._epoch}:
                yield [self._note("feed.epoch_changed", was=epoch, epoch=self._epoch)]
            else:
                self._last = after
            try:
                async for batch in self._follow(inbox):
                    yield batch
            except SessionNotFound:
                self.deleted = True
                yield [self._note("feed.deleted")]

    async def _follow(self, inbox: Inbox) -> AsyncIterator[list[Item]]:
        loop = asyncio.get_running_loop()
        async for batch in self._catch_up(inbox):
            yield batch
        sent = loop.time()
        while True:
            await inbox.wait()
            if inbox.is_over:
                return
            if (early := sent + PACE - loop.time()) > 0:
                await asyncio.sleep(early)
            items, dropped = inbox.take()
            sent = loop.time()
            if dropped:
                yield [
                    self._note(
                        "gap", dropped=dropped, pattern="**", policy="drop_newest"
                    )
                ]
                async for batch in self._catch_up(inbox):
                    yield batch
                continue
            async for batch in self._in_order(items):
                yield batch

    async def _catch_up(self, inbox: Inbox) -> AsyncIterator[list[Item]]:
        """The log up to its end, then what is being said. Both together are everything up to this moment."""
        while True:
            async for batch in self._rows():
                yield batch
            epoch, head = self._hub.head(self._session)
            if epoch != self._epoch or head <= self._last:
                break
        inbox.take()  # all of it is in the rows, or in what follows
        yield [
            Item(self._hub.encode(self._hub.partial(self._session).show(self._session)))
        ]

    async def _in_order(self, items: list[Item]) -> AsyncIterator[list[Item]]:
        """Live events; where one is missing, the log is read instead."""
        batch: list[Item] = []
        for item in items:
            if item.data and not item.seq:
                batch.append(item)
            elif item.data and item.epoch == self._epoch and item.seq <= self._last:
                continue
            elif item.data and item.epoch == self._epoch and item.seq == self._last + 1:
                self._last = item.seq
                batch.append(item)
            else:
                if batch:
                    yield batch
                    batch = []
                async for rows in self._rows():
                    yield rows
        if batch:
            yield batch

    async def _rows(self) -> AsyncIterator[list[Item]]:
        """Rows after the cursor, with a word where some are gone."""
        log = self._app.store.log
        while rows := await asyncio.to_thread(
            log.events, self._session, after=self._last, limit=_PAGE
        ):
            if rows[0].epoch != self._epoch:
                was, self._epoch, self._last = self._epoch, rows[0].epoch, 0
                yield [self._note("feed.epoch_changed", was=was, epoch=self._epoch)]
                continue
            batch = await asyncio.to_thread(self._items, rows)
            self._last = rows[-1].seq
            yield batch

    def _items(self, rows: list[Row]) -> list[Item]:
        items: list[Item] = []
        last = self._last
        for row in rows:
            if row.seq > last + 1:
                items.append(
                    self._note("feed.truncated", first=last + 1, last=row.seq - 1)
                )
            last = row.seq
            items.append(
                Item(self._encode(self._app.envelope(row)), row.epoch, row.seq)
            )
        return items

    async def _hello(self) -> Item:
        info = await asyncio.to_thread(self._app.store.sessions.find, self._session)
        if info.id != self._session:
            raise SessionNotFound(
                f"there is no session {self._session}",
                hint="Its whole id is needed here.",
            )
        self._epoch = info.epoch
        return self._note("feed.hello", epoch=info.epoch, head=info.head)

    def _note(self, kind: str, **fields: Any) -> Item:
        return Item(self._encode({"type": kind, "session_id": self._session, **fields}))

    def _encode(self, event: dict[str, Any]) -> bytes:
        return msgspec.json.encode(event)

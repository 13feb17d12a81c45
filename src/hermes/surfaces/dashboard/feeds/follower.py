"""Follows what other processes write into the shared log, and publishes it here. Looks only while somebody watches, and
only a look at the file's times is needed to see that nothing happened."""

import asyncio
import time

from hermes.app import App
from hermes.app.log_follower import LISTEN, READING, DatabaseFiles
from hermes.errors import StoreError
from hermes.store.log_row import Row
from hermes.store.sessions import SessionInfo
from hermes.surfaces.dashboard.feeds.hub import Hub

_RECENT = 64  # sessions that are looked at
_REMEMBERED = 4096  # sessions whose end is remembered
_MOST = 500  # rows of one session taken at once


class Follower:
    """Runs as a task."""

    def __init__(self, app: App, hub: Hub) -> None:
        self._app = app
        self._hub = hub
        self._heads: dict[str, tuple[int, int]] = {}
        self._file = DatabaseFiles(app.home.state)
        self._since = float("-inf")

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            if not self._hub.watched.is_set():
                self._heads.clear()
                await self._hub.watched.wait()
            try:
                if self._file.changed():
                    await self._look()
            except (StoreError, OSError) as error:
                self._file.forget()
                await asyncio.sleep(self._app.errors.note(READING, error))
            else:
                self._app.errors.succeeded(READING)
            await asyncio.sleep(LISTEN)

    async def _look(self) -> None:
        since, self._since = self._since, time.time()
        first = not self._heads
        recent = await asyncio.to_thread(self._recent, since)
        for info in recent:
            known = max(self._heads.get(info.id, (0, 0)), self._hub.head(info.id))
            self._heads[info.id] = (info.epoch, info.head)
            if first:
                self._hub.look(info.id)
            elif known < (info.epoch, info.head):
                await self._tell(info, known, since - LISTEN)
        seen = {info.id for info in recent}
        for session in self._hub.sessions:
            if (
                session not in seen
            ):  # one that works for another, an old one, or one that is gone
                self._hub.look(session)
        while len(self._heads) > _REMEMBERED:
            del self._heads[next(iter(self._heads))]

    def _recent(self, since: float) -> list[SessionInfo]:
        """Sessions that were used last, as many as may have changed since the look before."""
        limit = _RECENT
        while True:
            infos = self._app.store.sessions.recent(limit=limit)
            if (
                len(infos) < limit
                or infos[-1].updated < since - LISTEN
                or limit >= _REMEMBERED
            ):
                return infos
            limit *= 4

    async def _tell(
        self, info: SessionInfo, known: tuple[int, int], since: float
    ) -> None:
        """Publishes rows that are new; of a session never seen before, those since the last look."""
        is_known = known[0] == info.epoch
        after = known[1] if is_known else max(0, info.head - _MOST)
        rows: list[Row] = await asyncio.to_thread(
            self._app.store.log.events, info.id, after=after, limit=_MOST
        )
        for row in rows:
            if (is_known or row.ts >= since) and (row.epoch, row.seq) > self._hub.head(
                info.id
            ):
                self._app.publish(row, foreign=True)
        self._hub.look(info.id)

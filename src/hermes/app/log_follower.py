"""Follows the session log and publishes the rows that other processes write, in the order of the log."""

import asyncio
import contextlib

from hermes.app.app import App
from hermes.app.feed import Feed
from hermes.errors import SessionNotFound, StoreError
from hermes.store.ports import RowWatch
from hermes.store.session_log import NewRows

LOG_POLL_INTERVAL_S = 0.15
_UNWATCHED_POLL_INTERVAL_S = 5.0
_READING = "reading what other processes write"  # not translated
_FOLLOWED_PAGE_ROWS = 1000


class LogFollower:
    """Runs as a task. With a feed, rows are published only while the feed has a reader.

    Rows of this process are published where they are written.
    """

    def __init__(self, app: App, feed: Feed | None = None) -> None:
        self._app = app
        self._feed = feed
        self._last = 0

    async def run(self) -> None:
        """Runs from the newest row on, until it is cancelled."""
        watch = self._app.store.watch()
        try:
            await self._follow(watch)
        finally:
            watch.close()

    async def _follow(self, watch: RowWatch) -> None:
        log, errors = self._app.store.log, self._app.errors
        log.remember()
        self._last = await asyncio.to_thread(log.newest)
        while True:
            was_watched = await self._pause(watch)
            try:
                if watch.changed() or not was_watched:
                    await self._read(publish=was_watched)
            except (StoreError, OSError) as error:
                watch.forget()
                await asyncio.sleep(errors.note(_READING, error))
            else:
                errors.succeeded(_READING)

    async def _pause(self, watch: RowWatch) -> bool:
        """Waits for the next poll. Returns whether the feed had a reader before."""
        feed = self._feed
        if feed is None or feed.watched.is_set():
            await watch.wait(LOG_POLL_INTERVAL_S)
            return True
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_UNWATCHED_POLL_INTERVAL_S):
                await feed.watched.wait()
        return False

    def _page(self, before: int) -> NewRows:
        """The rows after one, with what publishing them asks for already known."""
        page = self._app.store.log.since(before, limit=_FOLLOWED_PAGE_ROWS)
        for session in {row.session for row in page.rows}:
            with contextlib.suppress(SessionNotFound):
                self._app.root(session)
        return page

    async def _read(self, *, publish: bool) -> None:
        """Reads the rows that are new, and publishes them if there was a reader."""
        while True:
            page = await self._app.store.call(self._page, self._last)
            self._last = page.last
            if publish:
                self._app.writer.publish(*page.rows, foreign=True)
            if not page.is_full:
                break
            await asyncio.sleep(0)
        feed = self._feed
        if feed is None or not (watched := feed.sessions):
            return
        stale = set(watched)  # nothing was published before their readers came
        if publish:
            stale = await asyncio.to_thread(self._app.store.sessions.missing, watched)
        for session in stale:
            feed.read_log(session)

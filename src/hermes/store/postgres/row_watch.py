"""Wakes readers when rows were written anywhere, by NOTIFY.

A process announces its rows after they are committed, many at once: a NOTIFY inside the transaction would make all
transactions of the database commit one after the other. Readers also look now and then by themselves, so an
announcement that was lost costs time and nothing else.
"""

import asyncio
import os
import time
from contextlib import suppress
from typing import Any

import asyncpg

from hermes.primitives.backoff import Backoff
from hermes.store.postgres.server import UNREACHABLE, PostgresServer

CHANNEL = "hermes_rows"
_LOOK_S = 1.0  # between looks without an announcement
_ANNOUNCE_INTERVAL_S = 0.005
_MAX_NOTICE_WAIT_S = 2.0
_PING_S = 10.0  # between checks that the listening connection lives


class NotifyWatch:
    """Tells one reader that there may be new rows."""

    def __init__(self, notices: "RowNotices") -> None:
        self._notices = notices
        self._loop: asyncio.AbstractEventLoop | None = None
        self._event: asyncio.Event | None = None
        self._is_due = True
        self._looked = 0.0

    async def wait(self, timeout_s: float) -> None:
        """Waits until there may be new rows, at most so long."""
        if self._event is None:
            self._loop, self._event = asyncio.get_running_loop(), asyncio.Event()
        if not self._is_due:
            with suppress(TimeoutError):
                async with asyncio.timeout(timeout_s):
                    await self._event.wait()
        self._event.clear()

    def changed(self) -> bool:
        """Returns whether there may be new rows since the last call; False while the server can't be reached."""
        now = time.monotonic()
        if not self._notices.is_reachable:
            return False
        if not self._is_due and now - self._looked < _LOOK_S:
            return False
        self._is_due, self._looked = False, now
        return True

    def forget(self) -> None:
        """Makes the next `changed` return True."""
        self._is_due = True

    def close(self) -> None:
        """Ends the watch."""
        self._notices.watches.discard(self)

    def notice(self) -> None:
        """There are new rows. Called on the thread of the server's connections."""
        self._is_due = True
        if self._loop is not None and self._event is not None:
            with suppress(RuntimeError):  # the reader's loop has ended
                self._loop.call_soon_threadsafe(self._event.set)


class RowNotices:
    """Announces the rows of this process, and listens to the announcements of all."""

    def __init__(self, server: PostgresServer) -> None:
        self._server = server
        self._written = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self.watches: set[NotifyWatch] = set()

    @property
    def is_reachable(self) -> bool:
        """Whether the server was reachable at the last attempt."""
        return self._server.reachability.is_reachable

    def watch(self) -> NotifyWatch:
        """Returns a new watch. The first one begins to listen."""
        watch = NotifyWatch(self)
        self.watches.add(watch)
        self._server.loop.call_soon_threadsafe(self._start_listening)
        return watch

    def announce(self) -> None:
        """Rows were committed. Called on the server's event loop."""
        if not self._written.is_set():
            self._written.set()
            if not self._tasks or self._tasks[0].done():
                self._tasks[:1] = [self._server.loop.create_task(self._announce())]

    async def _announce(self) -> None:
        while self._written.is_set():
            self._written.clear()
            with suppress(*UNREACHABLE, asyncpg.InterfaceError, asyncpg.PostgresError):
                async with self._server.connection() as connection:
                    await connection.execute(f"NOTIFY {CHANNEL}")
            await asyncio.sleep(_ANNOUNCE_INTERVAL_S)

    def _start_listening(self) -> None:
        if len(self._tasks) < 2:
            if not self._tasks:
                self._tasks.append(self._server.loop.create_task(self._announce()))
            self._tasks.append(self._server.loop.create_task(self._listen()))

    async def _listen(self) -> None:
        pause = Backoff(0.05, 2.0)
        while True:
            try:
                connection = await self._server.connect()
                try:
                    await connection.add_listener(CHANNEL, self._heard)
                    pause.reset()
                    self._server.note_success()
                    self._wake()  # for what was announced before
                    while True:
                        await asyncio.sleep(_PING_S)
                        await connection.execute("SELECT 1")
                finally:
                    connection.terminate()
            except (*UNREACHABLE, asyncpg.InterfaceError, asyncpg.PostgresError):
                await asyncio.sleep(pause.next_s())

    async def measure_lag(self) -> float | None:
        """Sends a notice through the pool and returns how long it takes to arrive on another connection."""
        channel, arrived = f"{CHANNEL}_{os.urandom(8).hex()}", asyncio.Event()
        listening = await self._server.connect()
        try:

            def hear(*_: Any) -> None:
                arrived.set()

            await listening.add_listener(channel, hear)
            began = time.perf_counter()
            async with self._server.connection() as connection:
                await connection.execute(f"NOTIFY {channel}")
            with suppress(TimeoutError):
                async with asyncio.timeout(_MAX_NOTICE_WAIT_S):
                    await arrived.wait()
                    return time.perf_counter() - began
            return None
        finally:
            listening.terminate()

    def _heard(self, *_: Any) -> None:
        self._wake()

    def _wake(self) -> None:
        for watch in list(self.watches):
            watch.notice()

    async def close(self) -> None:
        """Ends listening and announcing; what was written last is announced."""
        if self._tasks and self._written.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(1.0):
                    await asyncio.shield(self._tasks[0])
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

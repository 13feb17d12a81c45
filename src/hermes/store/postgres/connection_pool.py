"""A pool of connections to one server.

Lending an idle connection takes no task, no timer and no round trip. That is why this is not asyncpg's own pool, where
lending costs more CPU than most of our statements.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import asyncpg

_MAX_IDLE_S = 300.0
_PRUNE_INTERVAL_S = 60.0
_CLOSE_TIMEOUT_S = 5.0


class ConnectionPool:
    """Up to `size` connections, created on demand. Used on one event loop."""

    def __init__(
        self, connect: Callable[[], Awaitable["asyncpg.Connection"]], size: int
    ) -> None:
        self._connect = connect
        self._free_places = asyncio.Semaphore(size)
        self._idle: list[tuple[asyncpg.Connection, float]] = []  # with idle since
        self._lent: set[asyncpg.Connection] = set()
        self._pruning: asyncio.Task[None] | None = None
        self._worked_at = 0.0  # when a connection last came back whole
        self.is_closed = False

    @asynccontextmanager
    async def lend(self, timeout_s: float) -> AsyncIterator["asyncpg.Connection"]:
        """Lends a connection. While all are lent, waits in line, as long as one comes back every `timeout_s`."""
        if self._free_places.locked():
            await self._wait_for_place(timeout_s)
        else:
            await self._free_places.acquire()  # returns immediately
        try:
            connection = self._take_idle() or await self._connect()
            self._lent.add(connection)
            try:
                yield connection
                self._worked_at = asyncio.get_running_loop().time()
            except (asyncio.CancelledError, OSError, TimeoutError):
                connection.terminate()  # a statement may be running
                raise
            finally:
                self._lent.discard(connection)
                self._take_back(connection)
        finally:
            self._free_places.release()

    async def _wait_for_place(self, timeout_s: float) -> None:
        """Waits without losing its place. A busy server is no reason to give up, one that answers nobody is."""
        loop = asyncio.get_running_loop()

        def look() -> None:
            nonlocal timer
            due = self._worked_at + timeout_s
            if due <= loop.time():
                limit.reschedule(loop.time())
            else:
                timer = loop.call_at(due, look)

        timer = loop.call_later(timeout_s, look)
        try:
            async with asyncio.timeout(None) as limit:
                await self._free_places.acquire()
        finally:
            timer.cancel()

    def _take_idle(self) -> "asyncpg.Connection | None":
        if self.is_closed:
            raise asyncpg.InterfaceError("the pool is closed")  # not translated
        while self._idle:
            connection, _ = self._idle.pop()  # the newest; older ones may be pruned
            if not connection.is_closed():
                return connection
        return None

    def _take_back(self, connection: "asyncpg.Connection") -> None:
        if connection.is_closed():
            return
        if self.is_closed or connection.is_in_transaction():
            connection.terminate()
            return
        self._idle.append((connection, time.monotonic()))
        if self._pruning is None:
            self._pruning = asyncio.create_task(self._prune())

    async def _prune(self) -> None:
        while True:
            await asyncio.sleep(_PRUNE_INTERVAL_S)
            oldest = time.monotonic() - _MAX_IDLE_S
            old = [one for one, since in self._idle if since < oldest]
            self._idle = [one for one in self._idle if one[1] >= oldest]
            await _close(old)

    async def close(self) -> None:
        """Closes all connections. Idempotent."""
        self.is_closed = True
        if self._pruning is not None:
            self._pruning.cancel()
            await asyncio.gather(self._pruning, return_exceptions=True)
        idle = [one for one, _ in self._idle]
        self._idle.clear()
        await _close(idle)
        for connection in self._lent:
            connection.terminate()


async def _close(connections: list["asyncpg.Connection"]) -> None:
    for connection in connections:
        with suppress(OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
            await connection.close(timeout=_CLOSE_TIMEOUT_S)

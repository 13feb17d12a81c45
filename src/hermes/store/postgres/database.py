"""A PostgreSQL database behind the port of the store's tables: runs jobs in transactions, ordered by key."""

import asyncio
import logging
import os
import time
import traceback
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar
from weakref import WeakSet, WeakValueDictionary

import asyncpg

from hermes.core.ports import Clock
from hermes.errors import StoreDamaged, StoreError
from hermes.schema.event_base import Event
from hermes.store.leases import ended_here
from hermes.store.log_row import COLUMNS, DamagedRow, Row, checksum
from hermes.store.postgres.job_connection import (
    JobConnection,
    QueryConnection,
    numbered,
    storable,
)
from hermes.store.postgres.migrations import migrate, require_current
from hermes.store.postgres.options import PostgresOptions
from hermes.store.postgres.row_watch import RowNotices
from hermes.store.postgres.server import POOL_SIZE, PostgresServer
from hermes.store.postgres.word_index import lexemes
from hermes.store.sql import SqlConnection
from hermes.text.translation import translator

t = translator(__name__)


T = TypeVar("T")

log = logging.getLogger("hermes.store")

_MAX_LOOP_WAIT_S = 1.0
_NAMES = COLUMNS.removeprefix("id, ")
_INSERT = f"""
INSERT INTO events ({_NAMES}, crc, words) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, array_to_tsvector(string_to_array(?, ' ')))
RETURNING id
"""  # noqa: S608 - our own names


class PostgresDatabase:
    """The open database. Not usable after a fork: a child opens its own."""

    def __init__(
        self,
        options: PostgresOptions,
        migrations: Sequence[str],
        *,
        oldest: int,
        may_migrate: bool = True,
    ) -> None:
        self._pid = os.getpid()
        self._closed = False
        self.loop_waits = 0
        """How often the thread of an event loop blocked for a result."""
        self._order: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._jobs: WeakSet[Future[Any]] = WeakSet()  # the loop keeps those that run
        self.server = PostgresServer(options)
        self._threads = ThreadPoolExecutor(POOL_SIZE, "hermes-store-job")
        self.notices = RowNotices(self.server)
        try:
            opening = self._open(migrations, oldest, may_migrate)
            self.server.start(opening).result()
        except BaseException:
            self.close()
            raise

    async def _open(
        self, migrations: Sequence[str], oldest: int, may_migrate: bool
    ) -> None:
        await self.server.open()
        where = self.server.options.shown

        async def prepare(connection: "asyncpg.Connection") -> None:
            if may_migrate:
                await migrate(connection, migrations, oldest, where)
            else:
                await require_current(connection, migrations, where)

        await self.server.request(prepare)

    @property
    def closed(self) -> bool:
        """Whether the database no longer accepts writes."""
        return self._closed

    def write(self, job: Callable[[SqlConnection], T], order: str = "") -> T:
        """Runs `job` in a transaction and returns once the result is on disk."""
        return self.result(self.submit(job, order))

    def submit(self, job: Callable[[SqlConnection], T], order: str = "") -> "Future[T]":
        """Does the same as `write`, without waiting. Jobs with the same `order` run one after the other."""

        async def announced() -> T:
            result = await self.transact(job)
            self.notices.announce(order)
            return result

        return self.start(announced, order)

    async def transact(self, job: Callable[[SqlConnection], T]) -> T:
        """Runs `job` in a transaction, on the server's event loop."""

        async def run(connection: "asyncpg.Connection") -> T:
            return await self._run_job(connection, job)

        return await self.server.transaction(run)

    def write_indexed(self, job: Callable[[SqlConnection], T]) -> T:
        """Does the same as `write`: the words are in the row."""
        return self.write(job)

    def read(self, job: Callable[[SqlConnection], T]) -> T:
        """Runs `job` on one consistent state."""

        async def run(connection: "asyncpg.Connection") -> T:
            async with connection.transaction(
                isolation="repeatable_read", readonly=True
            ):
                return await self._run_job(connection, job)

        return self.result(self.start(lambda: self.server.request(run)))

    def run_on_reader(self, job: Callable[[SqlConnection], T]) -> T:
        """Runs a job with a single query on this thread, so that only the query moves to another one."""
        try:
            return job(QueryConnection(self.select))
        except DamagedRow as damaged:
            raise self._damaged(damaged) from damaged

    def select(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        """Returns the rows of one query."""

        async def run(connection: "asyncpg.Connection") -> list[Any]:
            return await connection.fetch(numbered(query), *storable(values))

        rows = self.result(self.start(lambda: self.server.request(run)))
        return [tuple(row) for row in rows]

    def start(self, work: Callable[[], Awaitable[T]], order: str = "") -> "Future[T]":
        """Runs work on the server's event loop, after earlier work with the same `order`."""
        if os.getpid() != self._pid:
            raise StoreError(
                t.later("the session log was opened before a fork"),
                hint=t.later("Open it again in the child process."),
            )
        if self._closed:
            raise StoreError(t.later("the session log is closed"))
        future = self.server.start(self._ordered(work, order))
        self._jobs.add(future)
        return future

    def result(self, future: "Future[T]") -> T:
        """Waits for a result. Waiting on the thread of an event loop blocks everything else there, and is logged."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return future.result()
        self.loop_waits += 1
        began = time.monotonic()
        try:
            return future.result()
        finally:
            if (took := time.monotonic() - began) > _MAX_LOOP_WAIT_S:
                where = "".join(traceback.format_stack(limit=8)[:-1])
                log.warning(
                    "an event loop waited %.1f s for the store:\n%s", took, where
                )

    async def _ordered(self, work: Callable[[], Awaitable[T]], order: str) -> T:
        try:
            if not order:
                return await work()
            lock = self._order.get(order)
            if lock is None:
                lock = self._order[order] = asyncio.Lock()
            async with lock:
                return await work()
        except DamagedRow as damaged:
            raise self._damaged(damaged) from damaged

    def _damaged(self, damaged: DamagedRow) -> StoreDamaged:
        hint = t.later(
            "Nothing was changed. Check the server's disk, and run: hermes sessions check"
        )
        return StoreDamaged(
            t.later(
                "{shown} is damaged: {damaged}",
                shown=self.server.options.shown,
                damaged=damaged,
            ),
            hint=hint,
        )

    async def _run_job(
        self, connection: "asyncpg.Connection", job: Callable[[SqlConnection], T]
    ) -> T:
        loop = self.server.loop
        return await loop.run_in_executor(
            self._threads, job, JobConnection(connection, loop)
        )

    def lock(self, connection: SqlConnection, name: str) -> None:
        """Makes other transactions that lock the same name wait until this one ends."""
        connection.execute(
            "SELECT pg_advisory_xact_lock(hashtextextended(?, 0))", (name,)
        )

    def lease_time(self, connection: SqlConnection, clock: Clock) -> float:  # noqa: ARG002 - a port
        """Returns the server's time, which is the same for all machines."""
        now = connection.execute("SELECT extract(epoch FROM clock_timestamp())::float8")
        return float(now.get)

    def holds(self, owner: str, expires: float, now: float) -> bool:
        """Returns whether an owner still holds a lease: until it expires, or its process is known to have ended."""
        return expires > now and not ended_here(owner)

    def is_gone(self, owner: str) -> bool:
        """Returns True only if the owner is a process of this boot of this machine that has ended."""
        return ended_here(owner)

    def insert_row(
        self,
        connection: SqlConnection,
        row: Row,
        event: Event | None,  # noqa: ARG002 - a port
    ) -> int:
        """Inserts a row of the log. Returns its id."""
        words = lexemes(row.data) if row.role else None
        return int(connection.execute(_INSERT, (*row[1:], checksum(row), words)).get)

    def forget_messages(self, connection: SqlConnection, session: str) -> None:
        """Does nothing: the words of a message are in its row."""

    def read_limit(self, connection: SqlConnection) -> int:
        """Returns the id up to which the log is complete."""
        return int(connection.execute("SELECT row_limit()").get)

    def notice_lag(self) -> float | None:
        """Returns how long a notice takes to arrive here; None if none arrives."""
        return self.result(self.server.start(self.notices.measure_lag()))

    def close(self) -> None:
        """Finishes submitted jobs, then closes the connections. Idempotent."""
        if self._closed:
            return
        self._closed = True
        self.server.shorten_timeouts()
        if os.getpid() != self._pid:
            return  # a forked copy: the connections are the parent's
        self.server.start(self._finish()).result()
        self._threads.shutdown()
        self.server.stop()

    async def _finish(self) -> None:
        jobs = [asyncio.wrap_future(one) for one in list(self._jobs)]
        await asyncio.gather(*jobs, return_exceptions=True)
        await self.notices.close()
        await self.server.close()

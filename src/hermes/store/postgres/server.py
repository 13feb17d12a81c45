"""The connections to a PostgreSQL server: a pool on its own event loop, in a thread.

If the server can't be reached, requests wait for it, and the person is informed. Every transaction happens exactly
once: if the connection breaks during a commit, the next attempt looks for the mark that a commit leaves. (The number of
a transaction would not be enough: after a crash the server may assign the same number again.)
"""

import asyncio
import logging
import shlex
import ssl
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import TypeVar

import asyncpg

from hermes.errors import StoreError, StoreFull, StoreUnreachable, words_of_connection
from hermes.primitives.backoff import Backoff
from hermes.primitives.threads import EventLoopThread
from hermes.store.postgres.connection_pool import ConnectionPool
from hermes.store.postgres.options import PostgresOptions
from hermes.store.store import Reachability
from hermes.text.translation import translator

t = translator(__name__)


T = TypeVar("T")

log = logging.getLogger("hermes.store")
waiting = logging.getLogger("hermes.waiting")
"""Messages logged here are for the person who is waiting; surfaces show them."""

POOL_SIZE = 8
_COMMITS_PER_CLEANING = 1_000
_MARK = "INSERT INTO commits (mark) SELECT '{mark}'::uuid WHERE pg_current_xact_id_if_assigned() IS NOT NULL"
_CLAIM = "INSERT INTO commits (mark) VALUES ($1::uuid) ON CONFLICT DO NOTHING RETURNING 1"  # waits for an attempt under way
_CLEAN = "DELETE FROM commits WHERE at < now() - interval '1 hour'"
_CLOSING_GRACE_S = 5.0
_NO_TLS = "rejected SSL upgrade"  # in the text of the error for a server without TLS - not translated
_MAX_CONFLICTS = 20  # errors such as deadlocks, after which a transaction is retried

UNREACHABLE = (
    OSError,
    TimeoutError,
    asyncpg.PostgresConnectionError,
    asyncpg.InternalClientError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.CannotConnectNowError,
    asyncpg.TooManyConnectionsError,
)
"""The exceptions of asyncpg while the server is unreachable, restarting or full."""
_CLOSED = "closed"  # in the text of the only interface error that is not a bug
_CONFLICTS = (asyncpg.SerializationError, asyncpg.DeadlockDetectedError)


class PostgresServer:
    """One server, reached through a pool. The `async` methods run on its event loop."""

    def __init__(self, options: PostgresOptions) -> None:
        self.options = options
        self._arguments = options.connect_arguments()
        self.reachability = Reachability()
        self._commits = 0
        self._closing_at = float("inf")
        self._pool: ConnectionPool | None = None
        self._returned = asyncio.Event()
        self._thread = EventLoopThread("hermes-store")
        self.loop = self._thread.loop
        self.start = self._thread.start

    async def connect(self) -> "asyncpg.Connection":
        """Opens a connection outside the pool."""
        return await asyncpg.connect(**self._arguments)

    async def open(self) -> None:
        """Connects for the first time. Raises an error for people if that fails."""
        try:
            self._pool = ConnectionPool(self.connect, POOL_SIZE)
            async with self.connection():
                pass  # immediately, without waiting for an unreachable server
        except (*UNREACHABLE, asyncpg.PostgresError, ValueError) as error:
            raise self.translated(error) from error

    def shorten_timeouts(self) -> None:
        """From now on, makes requests give up soon if the server is unreachable, because the program is ending."""
        self._closing_at = time.monotonic() + _CLOSING_GRACE_S

    async def close(self) -> None:
        """Closes the pool. The caller has finished all work before."""
        if self._pool is not None:
            await self._pool.close()

    def stop(self) -> None:
        """Ends the event loop and its thread."""
        self._thread.stop()

    @asynccontextmanager
    async def connection(self) -> AsyncIterator["asyncpg.Connection"]:
        """Lends a connection of the pool."""
        if self._pool is None:
            raise StoreError(t.later("the session log is closed"))
        async with self._pool.lend(self.options.connect_timeout_s) as one:
            yield one

    async def request(self, work: Callable[["asyncpg.Connection"], Awaitable[T]]) -> T:
        """Runs idempotent work on a connection, and retries after an outage."""

        async def attempt() -> T:
            async with self.connection() as connection:
                return await work(connection)

        return await self._insist(attempt)

    async def transaction(
        self, work: Callable[["asyncpg.Connection"], Awaitable[T]]
    ) -> T:
        """Runs work in a transaction that happens exactly once."""
        mark = uuid.uuid4()
        tried: list[T] = []  # the result of an attempt that may have been committed

        async def attempt() -> T:
            async with self.connection() as connection:
                return await _transact(connection, work, mark, tried)

        result = await self._insist(attempt)
        self._commits += 1
        if self._commits % _COMMITS_PER_CLEANING == 0:
            await self.request(lambda connection: connection.execute(_CLEAN))
        return result

    async def _insist(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """Repeats an attempt while the server can't be reached, and a few times after a conflict."""
        pause = Backoff(0.05, 2.0)
        deadline = 0.0
        conflicts = 0
        while True:
            try:
                result = await attempt()
            except _CONFLICTS as error:
                conflicts += 1
                if conflicts > _MAX_CONFLICTS:
                    raise self.translated(error) from error
            except (*UNREACHABLE, asyncpg.InterfaceError) as error:
                is_ours = isinstance(error, asyncpg.InterfaceError)
                if is_ours and _CLOSED not in str(error):
                    raise
                if self._pool is None or self._pool.is_closed:
                    raise self.translated(error) from error
                now = time.monotonic()
                deadline = deadline or now + self.options.outage_timeout_s
                if now > min(deadline, self._closing_at):
                    raise self.translated(error) from error
                self._note_outage(error)
                await self._wait_for_return(pause.next_s(), error)
            except asyncpg.PostgresError as error:
                raise self.translated(error) from error
            else:
                self.note_success()
                return result

    async def _wait_for_return(self, timeout_s: float, error: BaseException) -> None:
        """Waits until another request finds the server reachable: between two restarts there may be little time."""
        if isinstance(error, asyncpg.TooManyConnectionsError):
            await asyncio.sleep(timeout_s)  # others can reach it all the time
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._returned.wait()

    def _note_outage(self, error: BaseException) -> None:
        if self.reachability.is_reachable:
            reason = words_of_connection(error)
            self.reachability.change(is_reachable=False, reason=reason)
            text = t.logged(
                "Store unreachable, waiting: {where} ({reason})",
                where=self.options.shown,
                reason=reason,
            )
            waiting.warning("%s", text)

    def note_success(self) -> None:
        """Records that the server answered."""
        if not self.reachability.is_reachable:
            self.reachability.change(is_reachable=True)
            self._returned.set()  # whoever waits goes on
            self._returned = asyncio.Event()
            waiting.warning("%s", t.logged("The store is reachable again."))

    def translated(self, error: BaseException) -> StoreError:
        """Returns the error for a person to read."""
        where, reason = self.options.shown, words_of_connection(error)
        if isinstance(error, asyncpg.DiskFullError):
            hint = t.later(
                "Nothing of this was written; everything saved before is safe. Free some space on the "
                "server."
            )
            return StoreFull(
                t.later("not saved: no space left for {where}", where=where), hint=hint
            )
        if isinstance(
            error,
            asyncpg.InvalidPasswordError
            | asyncpg.InvalidAuthorizationSpecificationError,
        ):
            hint = t.later(
                "Check the user in `store.url`, and run: hermes config set STORE_PASSWORD"
            )
            return StoreError(
                t.later(
                    "{where} refused the connection: {reason}",
                    where=where,
                    reason=reason,
                ),
                hint=hint,
            )
        if isinstance(error, asyncpg.InsufficientPrivilegeError):
            hint = t.later(
                "Nothing was changed. Make the user of `store.url` the owner of its database."
            )
            return StoreError(f"{where}: {reason}", hint=hint)
        if isinstance(error, asyncpg.InvalidCatalogNameError):
            name = shlex.quote(self.options.database)
            hint = t.later("Create it on the server: createdb {name}", name=name)
            return StoreError(f"{where}: {reason}", hint=hint)
        if isinstance(error, (*UNREACHABLE, asyncpg.InterfaceError)):
            return _connection_problem(error, where, reason)
        hint = t.later("Nothing of this was written. `hermes doctor` checks the store.")
        return StoreError(
            t.later("not saved: {where}: {reason}", where=where, reason=reason),
            hint=hint,
        )


def _connection_problem(error: BaseException, where: str, reason: str) -> StoreError:
    if isinstance(error, ssl.SSLError):
        hint = t.later(
            "Check `store.tls_ca`, and that the host in `store.url` is the name in the server's "
            "certificate."
        )
        text = t.later(
            "the certificate of {where} is not accepted: {reason}",
            where=where,
            reason=reason,
        )
    elif _NO_TLS in reason:
        hint = t.later(
            "Turn it on there (`ssl = on`). Only on a network you trust: hermes config set store.tls "
            "disable"
        )
        text = t.later("{where} does not encrypt connections", where=where)
    else:
        hint = t.later("Check that the server runs and that `store.url` is right.")
        text = t.later(
            "the store can't be reached: {where} ({reason})", where=where, reason=reason
        )
    return StoreUnreachable(text, hint=hint)


async def _transact(
    connection: "asyncpg.Connection",
    work: Callable[["asyncpg.Connection"], Awaitable[T]],
    mark: uuid.UUID,
    tried: list[T],
) -> T:
    """Runs one attempt. Returns the result of an earlier one if that was committed after all."""
    is_again = bool(tried)
    await connection.execute("BEGIN")
    try:
        if is_again and not await connection.fetchval(_CLAIM, mark):
            await connection.execute("ROLLBACK")
            return tried[-1]
        result = await work(connection)
        tried.append(result)
        commit = "COMMIT" if is_again else f"{_MARK.format(mark=mark)}; COMMIT"
        await connection.execute(commit)  # one message, one round trip
    except BaseException:
        with suppress(*UNREACHABLE, asyncpg.InterfaceError, asyncpg.PostgresError):
            if not connection.is_closed() and connection.is_in_transaction():
                await connection.execute("ROLLBACK")
        raise
    return result

"""Opens the store in PostgreSQL, creating or migrating its tables as needed."""

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import ParamSpec, TypeVar

from hermes.core.ports import Clock, SystemClock
from hermes.store.leases import Lease
from hermes.store.log_row import STORED, Row, is_whole
from hermes.store.ports import WakeUps
from hermes.store.postgres.database import PostgresDatabase
from hermes.store.postgres.health import ServerHealth, server_health
from hermes.store.postgres.leases import PostgresLeases
from hermes.store.postgres.options import PostgresOptions
from hermes.store.postgres.row_watch import NotifyWatch
from hermes.store.postgres.schema import MIGRATIONS, OLDEST_PROGRAM
from hermes.store.postgres.session_log import PostgresSessionLog
from hermes.store.postgres.word_index import WordIndex
from hermes.store.sequence_check import bad_sequences
from hermes.store.store import IntegrityReport, Store
from hermes.text.translation import translator

t = translator(__name__)


P = ParamSpec("P")
T = TypeVar("T")

_PAGE_ROWS = 1_000
_JOBS_CHECK_S = 2.0
_WAITING_THREADS = 64  # for reads that wait while the server is unreachable
_PAGE = f"SELECT {STORED} FROM events WHERE id > ? ORDER BY id LIMIT {_PAGE_ROWS}"  # noqa: S608 - our own names


class PostgresStore(Store):
    """The store in a PostgreSQL database."""

    engine = "PostgreSQL"

    def __init__(self, database: PostgresDatabase, clock: Clock) -> None:
        log = PostgresSessionLog(database, clock)
        leases = PostgresLeases(database, clock)
        super().__init__(database, log, WordIndex(database), clock, leases)
        self._database = database
        self.reachability = database.server.reachability
        self._has_jobs = (float("-inf"), False)  # time of the query, and its result

    # pyrefly: ignore[missing-override-decorator]
    def share(self) -> None:
        """Allows many threads to wait for the server: with few, an outage would block all other work too."""
        threads = ThreadPoolExecutor(_WAITING_THREADS, "hermes-waiting")
        asyncio.get_running_loop().set_default_executor(threads)

    # pyrefly: ignore[missing-override-decorator]
    async def call(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await asyncio.to_thread(work, *args, **kwargs)

    @property
    # pyrefly: ignore[missing-override-decorator]
    def has_jobs(self) -> bool:
        """Whether anything was ever scheduled, cached for a moment. A job of this process counts at once."""
        if "schedules" in self.__dict__ and self.schedules.has_put:
            return True
        now = time.monotonic()
        if not self._has_jobs[1] and now - self._has_jobs[0] > _JOBS_CHECK_S:
            self._has_jobs = (now, super().has_jobs)
        return self._has_jobs[1]

    # pyrefly: ignore[missing-override-decorator]
    def gauges(self) -> dict[str, float]:
        lag = self._database.notice_lag()
        return super().gauges() | (
            {} if lag is None else {"hermes.store.notice_lag": lag}
        )

    def watch(
        self,
        session: str = "",
        lease: Lease | None = None,
        *,
        is_read_next: bool = False,
    ) -> NotifyWatch:
        return self._database.notices.watch(session, lease, is_read_next=is_read_next)

    # pyrefly: ignore[missing-override-decorator]
    def use_wake_ups(self, faster: WakeUps) -> None:
        self._database.notices.use(faster)

    def describe(self) -> tuple[str, tuple[tuple[str, str], ...]]:
        return self._database.server.options.shown, self._health.details

    # pyrefly: ignore[missing-override-decorator]
    def problems(self) -> tuple[tuple[str, str], ...]:
        return self._health.problems

    @cached_property
    def _health(self) -> ServerHealth:
        return server_health(self._database, self._clock)

    def check(self) -> IntegrityReport:
        problems = [*self._bad_rows(), *self._database.read(bad_sequences)]
        return IntegrityReport(*self.size(), problems)

    def _bad_rows(self) -> Iterator[str]:
        after = -1
        while page := self._database.select(_PAGE, (after,)):
            for *columns, crc, _ in page:
                row = Row(*columns)
                if not is_whole(row, crc):
                    yield t.logged(
                        "session {session}, row {seq}: the content does not match its checksum",
                        session=row.session,
                        seq=row.seq,
                    )
            after = page[-1][0]

    def copy(self, target: Path) -> None:
        from hermes.store.copying import copy_snapshot
        from hermes.store.sqlite.opener import open_store

        with open_store(target, clock=self._clock) as copied:
            copy_snapshot(self, copied)

    def close(self) -> None:
        self._database.close()


def open_postgres(
    options: PostgresOptions,
    *,
    clock: Clock | None = None,
    migrations: Sequence[str] = MIGRATIONS,
    oldest: int = OLDEST_PROGRAM,
    may_migrate: bool = True,
) -> PostgresStore:
    """Opens the database, or reports why it can't. Without `may_migrate`, its tables must exist and be current."""
    database = PostgresDatabase(
        options, migrations, oldest=oldest, may_migrate=may_migrate
    )
    return PostgresStore(database, clock or SystemClock())

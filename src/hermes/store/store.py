"""The store: the session log and everything stored beside it, in either database."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, ParamSpec, Self, TypeVar

import msgspec

from hermes.core.ports import Clock
from hermes.store.budget_claims import BudgetClaims
from hermes.store.leases import Lease, Leases
from hermes.store.ports import (
    MessageIndex,
    RowWatch,
    SqlDatabase,
    WakeUps,
)
from hermes.store.session_log import SessionLog
from hermes.store.sessions import SessionOrigin, SessionTable
from hermes.store.sql import SqlConnection

if TYPE_CHECKING:
    from hermes.store.boards import BoardStore
    from hermes.store.chats import Chats
    from hermes.store.hosts import HostTable
    from hermes.store.outgoing import OutgoingTable
    from hermes.store.people import People
    from hermes.store.role_leases import RoleLeases
    from hermes.store.schedules import ScheduleStore
    from hermes.store.session_export import SessionTransfer
    from hermes.store.sessions import SessionMarks
    from hermes.store.sqlite.recovery import Incomplete, Recovery
    from hermes.store.work_queue import WorkQueue

P = ParamSpec("P")
T = TypeVar("T")

_SURROUNDINGS = (
    *("gateway_chats", "gateway_inbox", "gateway_outbox", "gateway_codes"),
    *("gateway_sends", "card_notices", "hosts", "leases", "claims", "roles", "work"),
)
"""Tables about processes and chats, which mean nothing in another home."""


class Reachability:
    """Whether the database can be reached now. Listeners are called on each change, on any thread."""

    def __init__(self) -> None:
        self.is_reachable = True
        self.reason = ""
        """Why the database can't be reached."""
        self.listeners: list[Callable[[Reachability], None]] = []

    def change(self, *, is_reachable: bool, reason: str = "") -> None:
        """Sets the state and notifies the listeners if it changed."""
        if is_reachable != self.is_reachable:
            self.is_reachable, self.reason = is_reachable, reason
            for listener in list(self.listeners):
                listener(self)


class IntegrityReport(msgspec.Struct, frozen=True):
    """What was checked, and the problems found."""

    sessions: int
    rows: int
    problems: list[str]


class Store(ABC):
    """An open store. `log` writes and reads rows; the other attributes read from that log or have their own tables.

    `SqliteStore` and `PostgresStore` are the two kinds.
    """

    engine = ""
    """The database's name, for people."""
    recovery: "Recovery | None" = None
    """The result of rebuilding a damaged database, if that happened."""
    incomplete: "Incomplete | None" = None
    """What is missing from a read-only database, if anything."""

    def __init__(
        self,
        database: SqlDatabase,
        log: SessionLog,
        search: MessageIndex,
        clock: Clock,
        leases: Leases | None = None,
    ) -> None:
        self._db: SqlDatabase = database
        self._clock = clock
        self.reachability = Reachability()
        """Whether the database can be reached; a file always can."""
        self.log = log
        self.search = search
        self.leases = leases or Leases(database, clock)
        self.claims = BudgetClaims(database, clock)
        self.sessions = SessionTable(database, clock)

    @property
    def database(self) -> SqlDatabase:
        """The database itself, for work on all tables at once."""
        return self._db

    @cached_property
    def chats(self) -> "Chats":
        """The gateway's tables. Loaded on first use, because an answer at a terminal needs none of them."""
        from hermes.store.chats import Chats

        return Chats(self._db, self._clock)

    @cached_property
    def people(self) -> "People":
        """The people who may use Hermes in chat apps; loaded on first use."""
        from hermes.store.people import People

        return People(self._db, self._clock)

    @cached_property
    def sends(self) -> "OutgoingTable":
        """Messages to chats that belong to no session; loaded on first use."""
        from hermes.store.outgoing import OutgoingTable

        return OutgoingTable(self._db)

    @cached_property
    def schedules(self) -> "ScheduleStore":
        """Jobs and when they run; loaded on first use."""
        from hermes.store.schedules import ScheduleStore

        return ScheduleStore(self._db, self._clock)

    @cached_property
    def boards(self) -> "BoardStore":
        """Boards, their cards and runs; loaded on first use."""
        from hermes.store.boards import BoardStore

        return BoardStore(self._db, self._clock)

    @cached_property
    def marks(self) -> "SessionMarks":
        """Pins, folders and the archive of sessions; loaded on first use."""
        from hermes.store.sessions import SessionMarks

        return SessionMarks(self._db, self._clock)

    @cached_property
    def hosts(self) -> "HostTable":
        """The processes that use this store; loaded on first use."""
        from hermes.store.hosts import HostTable

        return HostTable(self._db, self._clock)

    @cached_property
    def transfer(self) -> "SessionTransfer":
        """Exports and imports sessions; loaded on first use."""
        from hermes.store.session_export import SessionTransfer

        return SessionTransfer(self._db, self.log, self._clock)

    @cached_property
    def work(self) -> "WorkQueue":
        """Sessions that wait for a worker; loaded on first use."""
        from hermes.store.work_queue import WorkQueue

        return WorkQueue(self._db, self._clock)

    @cached_property
    def roles(self) -> "RoleLeases":
        """Which process holds a platform's connection, and which workers exist; loaded on first use."""
        from hermes.store.role_leases import RoleLeases

        return RoleLeases(self._db, self._clock)

    @property
    def has_jobs(self) -> bool:
        """Whether anything was ever scheduled; cheap."""
        return bool(self._db.select("SELECT 1 FROM jobs LIMIT 1"))

    @property
    def has_cards(self) -> bool:
        """Whether there ever was a board; cheap."""
        return bool(self._db.select("SELECT 1 FROM boards LIMIT 1"))

    def share(self) -> None:  # noqa: B027 - a server needs no preparation
        """Prepares for many sessions: their writes are committed together, and none blocks an event
        loop.
        """

    def use_wake_ups(self, faster: WakeUps) -> None:  # noqa: B027 - a file needs none
        """From now on, notifies other processes of new rows by a faster way, as long as it works."""

    async def call(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Runs a read from an event loop.

        A slow or unreachable server never blocks the loop. A read from a file takes microseconds and runs at once.
        """
        return work(*args, **kwargs)

    async def origin(self, session: str) -> SessionOrigin:
        """Returns how a session started, as `sessions.origin` does, without blocking an event loop."""
        known = self.sessions.known_origin(session)
        return known or await self.call(self.sessions.origin, session)

    @abstractmethod
    def watch(
        self,
        session: str = "",
        lease: Lease | None = None,
        *,
        is_read_next: bool = False,
    ) -> RowWatch:
        """Returns a watch that notifies a reader when rows may have been written, in one session or in any.

        A reader that also writes passes its lease and is not notified of its own rows. With `is_read_next`, the reader
        reads everything right after this call and is notified of later rows.

        `work_queue.OFFERED` instead of a session watches new entries of the work queue.
        """

    @abstractmethod
    def describe(self) -> tuple[str, tuple[tuple[str, str], ...]]:
        """Returns the location of the database, and facts about it for a person."""

    def problems(self) -> tuple[tuple[str, str], ...]:
        """Returns the problems of the server, each with a remedy."""
        return ()

    def gauges(self) -> dict[str, float]:
        """Returns the current metrics of this store."""
        clock = self._clock.now()
        query = """
        SELECT (SELECT count(*) FROM gateway_inbox WHERE data != ''),
          (SELECT count(*) FROM instants WHERE state = 'planned' AND starts <= ?),
          (SELECT count(*) FROM work)
        """
        ((messages, jobs, work),) = self._db.select(query, (clock,))
        return {
            "hermes.queue.chat_messages": messages,
            "hermes.queue.due_jobs": jobs,
            "hermes.queue.work": work,
            "hermes.sessions.running": len(self.leases.held()),
            "hermes.lease.renewals": self.leases.renewals,
        }

    def size(self) -> tuple[int, int]:
        """Returns the numbers of sessions and of rows in the log."""
        query = "SELECT (SELECT count(*) FROM sessions), (SELECT count(*) FROM events)"
        ((sessions, rows),) = self._db.select(query)
        return int(sessions), int(rows)

    @abstractmethod
    def check(self) -> IntegrityReport:
        """Checks every row."""

    def forget_surroundings(self) -> int:
        """Deletes the data that belongs to the processes and chats around a store rather than to its sessions.

        That is: bindings to chats, messages on their way, codes, offered work, leases and roles. Returns the number of
        rows.
        """

        def job(connection: SqlConnection) -> int:
            deleted = 0
            for table in _SURROUNDINGS:
                query = f"DELETE FROM {table} RETURNING 1"  # noqa: S608 - our own names
                deleted += len(connection.execute(query).fetchall())
            return deleted

        return self._db.write(job)

    @abstractmethod
    def copy(self, target: Path) -> None:
        """Writes everything, as of one moment, to a new SQLite file."""

    @abstractmethod
    def close(self) -> None:
        """Finishes submitted writes and closes the database. Idempotent."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

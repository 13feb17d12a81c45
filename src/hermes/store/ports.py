"""The port between the tables of the store and the database that holds them: SQLite or PostgreSQL.

`SessionLog`, `Leases`, `Chats` and the others are written once, in SQL that both databases understand. `SqlDatabase`
hides the differences: transactions, the clock that judges leases, and how a row of the log is inserted.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, Protocol, TypeVar

from hermes.core.ports import Clock
from hermes.schema.event_base import Event
from hermes.store.log_row import Row
from hermes.store.search import MessageHit
from hermes.store.sql import SqlConnection

T = TypeVar("T")


class SqlDatabase(Protocol):
    """An open database.

    A job is a function of a connection that takes effect completely or not at all. Jobs submitted with the same `order`
    run one after the other, as they were submitted.
    """

    @property
    def closed(self) -> bool:
        """Whether the database no longer accepts writes."""
        ...

    def write(self, job: Callable[[SqlConnection], T], /, order: str = "") -> T:
        """Runs `job` in a transaction and returns once the result is on disk."""
        ...

    def submit(
        self, job: Callable[[SqlConnection], T], /, order: str = ""
    ) -> "Future[T]":
        """Does the same as `write`, without waiting."""
        ...

    def read(self, job: Callable[[SqlConnection], T], /) -> T:
        """Runs `job` on one consistent state."""
        ...

    def run_on_reader(self, job: Callable[[SqlConnection], T], /) -> T:
        """Runs a job that has a single query."""
        ...

    def select(
        self, query: str, values: Sequence[str | int | float] = (), /
    ) -> list[Any]:
        """Returns the rows of one query."""
        ...

    def write_indexed(self, job: Callable[[SqlConnection], T], /) -> T:
        """Does the same as `write`, for a job that changes the search index."""
        ...

    def lock(self, connection: SqlConnection, name: str) -> None:
        """Makes other transactions that lock the same name wait until this one ends."""
        ...

    def lease_time(self, connection: SqlConnection, clock: Clock) -> float:
        """Returns the current time for judging leases."""
        ...

    def holds(self, owner: str, expires: float, now: float) -> bool:
        """Returns whether an owner still holds a lease that expires then."""
        ...

    def is_gone(self, owner: str) -> bool:
        """Returns True only if the owner is a process that has certainly ended."""
        ...

    def insert_row(
        self, connection: SqlConnection, row: Row, event: Event | None
    ) -> int:
        """Inserts a row of the log. Returns its id."""
        ...

    def forget_messages(self, connection: SqlConnection, session: str) -> None:
        """Removes a session's messages from the search index."""
        ...

    def read_limit(self, connection: SqlConnection) -> int:
        """Returns the id up to which the log is complete: no row with a smaller id can still appear."""
        ...


class MessageIndex(Protocol):
    """Full-text search over the messages of all sessions."""

    def find(
        self, query: str, *, session: str = "", limit: int = 20
    ) -> list[MessageHit]:
        """Returns messages with all the words, then those with words that begin with them, each newest first."""
        ...

    def catch_up(self, timeout_s: float = float("inf")) -> bool:
        """Indexes new messages for a limited time. Returns whether the index is complete."""
        ...


class WakeUps(Protocol):
    """A faster way than the database's own to notify other processes of new rows.

    Notifications may be lost: readers also check by themselves.
    """

    def announce(self, sessions: frozenset[str]) -> bool:
        """Notifies all processes. Returns False if that is not possible now. May be called on any thread."""
        ...

    def listen(self, heard: Callable[[frozenset[str]], None]) -> Callable[[], None]:
        """Calls `heard` with the sessions, on any thread; with none if some may be missing. Returns a stop function."""
        ...


class RowWatch(Protocol):
    """Notifies one reader when rows may have been written, by this process or another.

    The reader calls `changed` after each `wait` and before it reads. Without that, the next `wait` returns at once.
    """

    async def wait(self, timeout_s: float) -> None:
        """Waits until there may be new rows, or until the timeout where there are no notifications."""
        ...

    def changed(self) -> bool:
        """Returns whether there may be new rows since the last call."""
        ...

    def forget(self) -> None:
        """Makes the next `changed` return True, because the change was not read."""
        ...

    def close(self) -> None:
        """Ends the watch."""
        ...

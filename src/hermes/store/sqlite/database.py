"""Connections to `state.db`: one writer with group commit, and one reader.

Every write is a job. Jobs that wait at the same moment share one transaction and one fsync, each in its own savepoint,
and are acknowledged only when that transaction is on disk. A thread that waits for a write commits it, along with what
others have submitted meanwhile; a background thread commits what was submitted by callers that can't wait (coroutines).
"""

import os
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, TypeVar, cast

import apsw

from hermes.core.ports import Clock
from hermes.errors import StoreBusy, StoreDamaged, StoreError
from hermes.schema.event_base import Event
from hermes.store.leases import holds, is_gone
from hermes.store.log_row import COLUMNS, DamagedRow, Row, checksum
from hermes.store.shared_text import keep_frame
from hermes.store.sql import SqlConnection
from hermes.store.sqlite.checkpoints import Checkpoints
from hermes.store.sqlite.connection import (
    busy_handler,
    connect,
    in_our_words,
    keep_wal,
    log,
    only_the_index,
    suspect,
    translated,
)
from hermes.store.sqlite.schema import LAST_ROW
from hermes.text.translation import translator

t = translator(__name__)


T = TypeVar("T")
_Task = tuple[Callable[[apsw.Connection], object], Future[object]]
_Outcome = tuple[Future[object], object, BaseException | None]

_MAX_JOBS_PER_COMMIT = 256  # jobs per transaction
_IDLE_S = 1.0  # pause in writes before lagging projections are updated
_SLOW_WRITE_S = 0.02  # a slower write would block an event loop
_WRITES_ON_THREAD = 50  # writes sent to the thread after a slow one
_CATCH_UP_PAUSE_S = 0.05  # between two such updates
_MAX_CATCH_UP_INTERVAL_S = 5.0  # ... while somebody keeps writing


_INSERT = f"INSERT INTO events ({COLUMNS}, crc, frame) VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608 - our own names
_FORGET_MESSAGES = """
DELETE FROM search WHERE rowid IN (
  SELECT id FROM events WHERE session = ? AND role IS NOT NULL AND id <= (SELECT indexed FROM search_progress)
)
"""
_NO_LIMIT = 2**63 - 1


class Database:
    """The open database. Not usable after a fork: a child opens its own."""

    def __init__(
        self,
        path: Path,
        *,
        busy_timeout: float = 30.0,
        on_idle: Callable[[apsw.Connection], bool] | None = None,
        on_commit: Callable[[int], None] | None = None,
        read_only: bool = False,
        shown: Path | None = None,
    ) -> None:
        self.path = path
        self._shown = shown or path  # the path shown to people
        self.read_only = read_only  # every write is refused by SQLite
        self._pid = os.getpid()
        self._on_idle = on_idle
        self._on_commit = on_commit  # called with the number of the last row on disk
        self._last_row = 0
        self._closed = False
        self._damage: StoreDamaged | None = None
        self._tasks: deque[_Task] = deque()
        self._door = threading.Lock()  # once closed, the queue accepts nothing
        self._writing = threading.Lock()
        self._reading = threading.Lock()
        self._bell: queue.SimpleQueue[bool] = (
            queue.SimpleQueue()
        )  # True for a task, False to end
        self._asleep = False  # the thread waits only for a signal
        self._written = 0.0  # time of the last `write`
        self._caught_up = time.monotonic()  # when lagging projections were last updated
        self._unhurried = 0  # writes that go to the thread after a slow one
        self._shared: Checkpoints | None = (
            None  # set if many write at once: the thread commits their jobs together
        )
        self._busy_timeout = busy_timeout
        self._busy_handler = busy_handler(path, busy_timeout)
        with in_our_words(self._shown):
            self._writer = connect(path, busy_timeout=busy_timeout, read_only=read_only)
            self._reader = connect(path, busy_timeout=busy_timeout, read_only=read_only)
            self._reader.execute("PRAGMA query_only=ON").fetchall()
        self._thread = threading.Thread(
            target=self._run, name="hermes-store", daemon=True
        )
        self._thread.start()

    @property
    def closed(self) -> bool:
        """Whether the database no longer accepts writes."""
        return self._closed

    def share(self) -> None:
        """From now on, commits submitted jobs together on the background thread and checkpoints on another."""
        if self._shared is None:
            self._shared = Checkpoints(self.path, self._busy_timeout)
            with self._writing:
                self._shared.watch(self._writer)

    def submit(
        self,
        job: Callable[[apsw.Connection], T],
        order: str = "",  # noqa: ARG002 - all jobs run in the order in which they came
    ) -> "Future[T]":
        """Runs `job` in a write transaction soon. The future resolves once the result is on disk.

        The job runs at once if nobody else is writing and the disk has been fast; otherwise on the background thread,
        so that an event loop never waits for another process or a slow disk.
        """
        if self._shared is not None:
            pass
        elif self._unhurried:
            self._unhurried -= 1
        elif (done := self._at_once(job)) is not None:
            return done
        future = self._enqueue(job)
        self._bell.put(True)
        return future

    def write(
        self,
        job: Callable[[apsw.Connection], T],
        order: str = "",  # noqa: ARG002 - as in `submit`
    ) -> T:
        """Runs `job` in a write transaction and returns once the result is on disk."""
        self._refuse_after_fork()
        if not self._tasks and self._writing.acquire(blocking=False):
            try:
                return self._write_alone(job)
            finally:
                self._writing.release()
                self._wake()
        future = self._enqueue(job)
        while not future.done() and self._commit_waiting():
            pass  # another thread has taken the job and is about to resolve it
        self._wake()
        return future.result()

    def read(self, job: Callable[[apsw.Connection], T]) -> T:
        """Runs `job` on the reader, which sees one consistent state throughout."""
        return self.run_on_reader(lambda reader: _in_one_state(reader, job))

    def select(
        self, query: str, values: Sequence[str | int | float] = ()
    ) -> list[tuple[Any, ...]]:
        """Returns the rows of one query. One query sees one state anyway, so this is cheaper than
        `read`.
        """
        return self.run_on_reader(
            lambda reader: reader.execute(query, values).fetchall()
        )

    def run_on_reader(self, job: Callable[[apsw.Connection], T]) -> T:
        """Runs `job` on the reader without a transaction, for jobs with a single query."""
        self._refuse_after_fork()
        try:
            with self._reading, in_our_words(self._shown):
                if self._closed:
                    raise StoreError(t.later("the session log is closed"))
                try:
                    return job(self._reader)
                except UnicodeDecodeError as error:
                    raise apsw.CorruptError(
                        t.logged(
                            "a text that is not valid ({reason})", reason=error.reason
                        )
                    ) from error
        except StoreDamaged as error:
            self._note_damage(error)
            raise

    @contextmanager
    def separate_reader(self) -> Iterator[apsw.Connection]:
        """Opens a connection for a long read, so that other reads need not wait."""
        self._refuse_after_fork()
        try:
            with in_our_words(self._shown):
                connection = connect(
                    self.path,
                    busy_timeout=self._busy_timeout,
                    change=False,
                    read_only=self.read_only,
                )
                with closing(connection):
                    yield connection
        except StoreDamaged as error:
            self._note_damage(error)
            raise

    def write_indexed(self, job: Callable[[apsw.Connection], T]) -> T:
        """Does the same as `write`, for a job that changes the search index. Empties a damaged index first."""
        from hermes.store.sqlite.message_search import write_indexed

        return write_indexed(self, job)

    def lock(self, connection: SqlConnection, name: str) -> None:
        """Does nothing: there is one write transaction at a time."""

    def lease_time(self, connection: SqlConnection, clock: Clock) -> float:  # noqa: ARG002 - a port
        """Returns this machine's time."""
        return clock.now()

    def holds(self, owner: str, expires: float, now: float) -> bool:
        """Returns whether an owner still holds a lease that expires then."""
        return holds(owner, expires, now)

    def is_gone(self, owner: str) -> bool:
        """Returns True only if the owner is a process of this machine that has certainly ended."""
        return is_gone(owner)

    def insert_row(
        self, connection: SqlConnection, row: Row, event: Event | None
    ) -> int:
        """Inserts a row of the log. Returns its id."""
        return insert_row(connection, row, event)

    def forget_messages(self, connection: SqlConnection, session: str) -> None:
        """Removes a session's messages from the search index."""
        connection.execute(_FORGET_MESSAGES, (session,))

    def read_limit(self, connection: SqlConnection) -> int:  # noqa: ARG002 - a port
        """Returns no limit: rows appear in the order of their ids."""
        return _NO_LIMIT

    def close(self) -> None:
        """Finishes submitted jobs, then closes the file. Idempotent."""
        if os.getpid() != self._pid:
            self._closed = True  # a forked copy: connections and locks are the parent's
            return
        with self._door:
            if self._closed:
                return
            self._closed = True
        self._bell.put(False)
        self._thread.join()
        if self._shared is not None:
            self._shared.close()
        with self._writing, self._reading, in_our_words(self._shown):
            if self._damage is not None:
                keep_wal(self._writer)
                keep_wal(self._reader)
            self._reader.close()
            self._writer.close()

    def _refuse_after_fork(self) -> None:
        if os.getpid() != self._pid:
            raise StoreError(
                t.later("the session log was opened before a fork"),
                hint=t.later("Open it again in the child process."),
            )

    def _enqueue(self, job: Callable[[apsw.Connection], T]) -> "Future[T]":
        self._refuse_after_fork()
        future: Future[T] = Future()
        with self._door:
            if self._closed:
                raise StoreError(t.later("the session log is closed"))
            self._tasks.append((job, future))  # type: ignore[arg-type]
        return future

    def _at_once(self, job: Callable[[apsw.Connection], T]) -> "Future[T] | None":
        """Writes without waiting; returns None if another thread is writing."""
        self._refuse_after_fork()
        if self._tasks or not self._writing.acquire(blocking=False):
            return None
        future: Future[T] = Future()
        began = time.perf_counter()
        try:
            self._writer.set_busy_handler(None)
            future.set_result(self._write_alone(job))
        except StoreBusy:
            return None
        except Exception as error:  # noqa: BLE001 - handed to whoever waits for this write
            future.set_exception(error)
        finally:
            if not self._closed:
                self._writer.set_busy_handler(self._busy_handler)
            self._writing.release()
            self._wake()
        if time.perf_counter() - began > _SLOW_WRITE_S:
            self._unhurried = _WRITES_ON_THREAD
        return future

    def _write_alone(self, job: Callable[[apsw.Connection], T]) -> T:
        """Handles the usual case: nobody else is writing, so nobody has to be notified."""
        if self._closed:
            raise StoreError(t.later("the session log is closed"))
        try:
            with in_our_words(self._shown), self._writer_transaction():
                return job(self._writer)
        except StoreDamaged as error:
            self._note_damage(error)
            raise

    def _wake(self) -> None:
        """Wakes the thread, because there may be something to index."""
        self._written = time.monotonic()
        if self._asleep:
            self._asleep = False
            self._bell.put(True)

    def _run(self) -> None:
        pause: float | None = _IDLE_S
        ringing = True
        while ringing:
            try:
                ringing = self._bell.get(timeout=pause)
            except queue.Empty:
                pause = self._idle()
                continue
            while self._commit_waiting():
                pass
            if (
                ringing
                and time.monotonic() - self._caught_up > _MAX_CATCH_UP_INTERVAL_S
            ):
                self._catch_up()
            pause = _IDLE_S

    def _idle(self) -> float | None:
        """Does one step of deferred work. Returns how long to pause after it."""
        now = time.monotonic()
        if (
            now - self._written < _IDLE_S
            and now - self._caught_up < _MAX_CATCH_UP_INTERVAL_S
        ):
            return _IDLE_S
        self._asleep = (
            True  # before the last check, so that a later write wakes the thread
        )
        if not self._catch_up():
            return None
        self._asleep = False
        return _CATCH_UP_PAUSE_S

    def _commit_waiting(self) -> bool:
        """Commits a batch and resolves its futures. Returns False if nothing waits.

        The futures resolve without the lock: their callbacks may write again.
        """
        with self._writing:
            batch: list[_Task] = []
            while self._tasks and len(batch) < _MAX_JOBS_PER_COMMIT:
                task = self._tasks.popleft()
                if task[1].set_running_or_notify_cancel():
                    batch.append(task)
            outcomes = self._commit(batch) if batch else []
        _tell(outcomes)
        return bool(batch)

    def _commit(self, batch: list[_Task]) -> list[_Outcome]:
        """Commits the whole batch in one transaction. Nothing is acknowledged before COMMIT has
        returned.
        """
        try:
            with in_our_words(self._shown), self._writer_transaction():
                if (
                    len(batch) == 1
                ):  # alone in its transaction, a job needs no savepoint, which costs a copy of each page
                    return [(batch[0][1], batch[0][0](self._writer), None)]
                return [
                    (future, *_attempt(self._writer, job, self._shown))
                    for job, future in batch
                ]
        except Exception as error:  # noqa: BLE001 - handed to whoever waits for these writes
            if len(batch) > 1 and only_the_index(error.__cause__):
                return [
                    self._commit([task])[0] for task in batch
                ]  # only one of them needs the search index
            self._note_damage(error)
            return [(future, None, error) for _, future in batch]
        except (
            BaseException
        ):  # this thread was interrupted (Ctrl-C); others must not wait for it
            hint = t.later(
                "It may or may not have been written. Check the session before trying again."
            )
            error = StoreError(t.later("interrupted while saving"), hint=hint)
            _tell([(future, None, error) for _, future in batch])
            raise

    @contextmanager
    def _writer_transaction(self) -> Iterator[None]:
        if self._damage is not None:
            raise StoreDamaged(self._damage.message, hint=self._damage.hint)
        self._writer.execute("BEGIN IMMEDIATE")
        try:
            yield
            last_row = self._writer.execute(LAST_ROW).get if self._on_commit else None
            self._writer.execute("COMMIT")
        except BaseException:
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")
            raise
        if self._on_commit and last_row and last_row != self._last_row:
            self._last_row = last_row
            self._on_commit(last_row)

    def _catch_up(self) -> bool:
        """Updates lagging projections. Returns True while there is more to do."""
        if self._on_idle is None:
            return False
        self._caught_up = time.monotonic()
        try:
            with self._writing, in_our_words(self._shown), self._writer_transaction():
                return self._on_idle(self._writer)
        except Exception as error:  # noqa: BLE001 - this thread acknowledges writes: it must go on
            self._note_damage(error)
            log.warning(
                "search index not updated: %s",
                error,
                exc_info=not isinstance(error, StoreError),
            )
            return False

    def _note_damage(self, error: BaseException) -> None:
        """Refuses all further writes, and makes the next open check everything."""
        if (
            isinstance(error, StoreDamaged)
            and self._damage is None
            and not only_the_index(error.__cause__)
        ):
            self._damage = error
            suspect(self.path)


def insert_row(connection: SqlConnection, row: Row, event: Event | None) -> int:
    """Inserts a row of the log. Text that many rows share is stored once. Returns the row's id."""
    inner, frame = keep_frame(connection, event, row.data)
    connection.execute(_INSERT, (*row[1:-1], inner, checksum(row), frame))
    return cast("apsw.Connection", connection).last_insert_rowid()


def _in_one_state(reader: apsw.Connection, job: Callable[[apsw.Connection], T]) -> T:
    reader.execute("BEGIN")
    try:
        return job(reader)
    finally:
        reader.execute("ROLLBACK")


def _tell(outcomes: list[_Outcome]) -> None:
    for future, result, error in outcomes:
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)


def _attempt(
    connection: apsw.Connection, job: Callable[[apsw.Connection], object], path: Path
) -> tuple[object, BaseException | None]:
    """Runs one job in a savepoint. A database error ends the whole batch; an error of the job only
    the job.
    """
    connection.execute("SAVEPOINT job")
    try:
        result = job(connection)
    except Exception as error:
        if isinstance(error, (apsw.Error, DamagedRow)) and not isinstance(
            error, apsw.ConstraintError
        ):
            raise
        connection.execute("ROLLBACK TO job")
        connection.execute("RELEASE job")
        return None, translated(error, path) if isinstance(error, apsw.Error) else error
    connection.execute("RELEASE job")
    return result, None

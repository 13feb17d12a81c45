"""Connections to `state.db`: one writer with group commit, one reader, and SQLite's errors in our words.

Every write is a job. Jobs that wait at the same moment share one transaction and one fsync, each in a savepoint of its
own, and are acknowledged only when that transaction is on disk. Whoever waits for a write commits it, along with what
others have submitted meanwhile; a thread commits what was submitted by those who can't wait (coroutines).
"""

import logging
import os
import queue
import random
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import apsw

from hermes.errors import StoreBusy, StoreDamaged, StoreError, StoreFull

log = logging.getLogger("hermes.store")

T = TypeVar("T")
_Task = tuple[Callable[[apsw.Connection], object], Future[object]]
_Outcome = tuple[Future[object], object, BaseException | None]

_BATCH = 256  # jobs that may share a transaction
_IDLE = 1.0  # seconds without a write before projections that may lag are brought up to date
_TELL = 2.0  # seconds of waiting for another process before the log says so


def connect(path: Path, *, busy_timeout: float, change: bool = True) -> apsw.Connection:
    """A connection with the settings every one of ours has; the file must exist. Without `change` it stays as it is."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    connection.set_busy_handler(_patience(path, busy_timeout))
    if not change:
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        return connection
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "secure_delete=ON", "journal_size_limit=67108864"):
        connection.execute(f"PRAGMA {pragma}").fetchall()
    return connection


def _patience(path: Path, timeout: float) -> Callable[[int], bool]:
    """A busy handler that polls in short random steps, so that many writers get their turn soon."""
    started = 0.0
    told = False

    def wait(tries: int) -> bool:
        nonlocal started, told
        now = time.monotonic()
        if tries == 0:
            started, told = now, False
        if now - started > timeout:
            return False
        if now - started > _TELL and not told:
            told = True
            log.warning("waiting for another process to let go of %s", path)
        time.sleep(random.uniform(0.0002, 0.002 if tries < 100 else 0.02))  # noqa: S311 - spreading, not secrecy
        return True

    return wait


@contextmanager
def in_our_words(path: Path) -> Iterator[None]:
    """Turns SQLite's exceptions into ours: what happened, what was kept, what to do."""
    try:
        yield
    except apsw.BusyError as error:
        hint = "Nothing of this was written. See which process holds it (fuser, lsof), then try again."
        raise StoreBusy(f"{path} is locked by another process", hint=hint) from error
    except apsw.FullError as error:
        hint = "Nothing of this was written; everything saved before is safe. Free some space, then try again."
        raise StoreFull(f"not saved: no space left for {path}", hint=hint) from error
    except (apsw.CorruptError, apsw.NotADBError) as error:
        hint = "Nothing more is written to it. Stop all Hermes processes and run `hermes sessions check`."
        raise StoreDamaged(f"{path} is damaged: {error}", hint=hint) from error
    except (apsw.IOError, apsw.ReadOnlyError, apsw.CantOpenError, apsw.PermissionsError) as error:
        hint = "Nothing of this was written. Check the disk, and the permissions of the file and its folder."
        raise StoreError(f"not saved: {path}: {error}", hint=hint) from error


class Database:
    """The open file. Not to be carried over a fork: a child opens its own."""

    def __init__(
        self, path: Path, *, busy_timeout: float = 30.0, on_idle: Callable[[apsw.Connection], bool] | None = None
    ) -> None:
        self.path = path
        self._pid = os.getpid()
        self._on_idle = on_idle
        self._closed = False
        self._damage: StoreDamaged | None = None
        self._tasks: deque[_Task] = deque()
        self._writing = threading.Lock()
        self._bell: queue.SimpleQueue[bool] = queue.SimpleQueue()  # rings True for a task, False for the end
        with in_our_words(path):
            self._writer = connect(path, busy_timeout=busy_timeout)
            self._reader = connect(path, busy_timeout=busy_timeout)
        self._reader.execute("PRAGMA query_only=ON").fetchall()
        self._reading = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="hermes-store", daemon=True)
        self._thread.start()

    def submit(self, job: Callable[[apsw.Connection], T]) -> "Future[T]":
        """Runs `job` in a write transaction soon. The future resolves once the result is on disk."""
        future = self._enqueue(job)
        self._bell.put(True)
        return future

    def write(self, job: Callable[[apsw.Connection], T]) -> T:
        """Runs `job` in a write transaction and returns once the result is on disk."""
        future = self._enqueue(job)
        while not future.done():
            with self._writing:
                self._commit_waiting()
        return future.result()

    def read(self, job: Callable[[apsw.Connection], T]) -> T:
        """Runs `job` on the reader, which sees one consistent state throughout."""
        with self._reading, in_our_words(self.path):
            if self._closed:
                raise StoreError("the session log is closed")
            self._reader.execute("BEGIN")
            try:
                result = job(self._reader)
            finally:
                self._reader.execute("ROLLBACK")
        return result

    def close(self) -> None:
        """Finishes what was submitted, then lets go of the file. Idempotent."""
        if self._closed:
            return
        self._closed = True
        self._bell.put(False)
        if os.getpid() != self._pid:
            return
        self._thread.join()
        with self._reading, in_our_words(self.path):
            self._reader.close()
            self._writer.close()

    def _enqueue(self, job: Callable[[apsw.Connection], T]) -> "Future[T]":
        if os.getpid() != self._pid:
            raise StoreError("the session log was opened before a fork", hint="Open it again in the child process.")
        if self._closed:
            raise StoreError("the session log is closed")
        future: Future[T] = Future()
        self._tasks.append((job, future))  # type: ignore[arg-type]
        return future

    def _run(self) -> None:
        lagging = self._on_idle is not None
        ringing = True
        while ringing:
            try:
                ringing = self._bell.get(timeout=_IDLE if lagging else None)
            except queue.Empty:
                lagging = self._catch_up()
                continue
            with self._writing:
                while self._tasks:
                    self._commit_waiting()
            lagging = self._on_idle is not None

    def _commit_waiting(self) -> None:
        batch: list[_Task] = []
        while self._tasks and len(batch) < _BATCH:
            task = self._tasks.popleft()
            if task[1].set_running_or_notify_cancel():
                batch.append(task)
        if batch:
            self._commit(batch)

    def _commit(self, batch: list[_Task]) -> None:
        """One transaction for the whole batch. Nothing is acknowledged before COMMIT has returned."""
        outcomes: list[_Outcome] = []
        try:
            with in_our_words(self.path), self._writer_transaction():
                outcomes = [(future, *_attempt(self._writer, job)) for job, future in batch]
        except BaseException as error:  # noqa: BLE001 - handed to whoever waits for these writes
            self._note_damage(error)
            outcomes = [(future, None, error) for _, future in batch]
        for future, result, error in outcomes:
            if error is None:
                future.set_result(result)
            else:
                future.set_exception(error)

    @contextmanager
    def _writer_transaction(self) -> Iterator[None]:
        if self._damage is not None:
            raise self._damage
        self._writer.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._writer.execute("COMMIT")
        except BaseException:
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")
            raise

    def _catch_up(self) -> bool:
        """Brings lagging projections nearer; True while there is more to do."""
        if self._on_idle is None:
            return False
        try:
            with self._writing, in_our_words(self.path), self._writer_transaction():
                return self._on_idle(self._writer)
        except StoreError as error:
            self._note_damage(error)
            log.warning("search index not updated: %s", error)
            return False

    def _note_damage(self, error: BaseException) -> None:
        if isinstance(error, StoreDamaged):
            self._damage = error


def _attempt(
    connection: apsw.Connection, job: Callable[[apsw.Connection], object]
) -> tuple[object, BaseException | None]:
    """Runs one job in a savepoint. An error of the database ends the whole batch; an error of the job only the job."""
    connection.execute("SAVEPOINT job")
    try:
        result = job(connection)
    except Exception as error:
        if isinstance(error, apsw.Error) and not isinstance(error, apsw.ConstraintError):
            raise
        connection.execute("ROLLBACK TO job")
        connection.execute("RELEASE job")
        return None, error
    connection.execute("RELEASE job")
    return result, None

"""Opens connections to `state.db` with Hermes' settings, and translates SQLite's errors."""

import logging
import os
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from hermes.errors import (
    StoreBusy,
    StoreDamaged,
    StoreError,
    StoreFull,
    StoreUnreachable,
)
from hermes.primitives.files import open_private
from hermes.store.lock_holders import TELL_AFTER_S, log_wait
from hermes.store.log_row import DamagedRow
from hermes.text.translation import LoggedWords, translator

t = translator(__name__)


log = logging.getLogger("hermes.store")

_READ = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI


def connect(
    path: Path, *, busy_timeout: float, change: bool = True, read_only: bool = False
) -> apsw.Connection:
    """Opens a connection with the common settings; the file must exist. Without `change`, the file
    stays as it is.
    """
    if read_only:
        return _connect_to_read(path, busy_timeout)
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    connection.set_busy_handler(busy_handler(path, busy_timeout))
    keep_wal(connection)
    if not change:
        return connection
    connection.execute(
        "SELECT count(*) FROM sqlite_schema"
    ).fetchall()  # before any write, because the file may be damaged
    keep_wal(connection, on=False)
    for pragma in (
        "journal_mode=WAL",
        "synchronous=FULL",
        "secure_delete=ON",
        "journal_size_limit=67108864",
    ):
        connection.execute(f"PRAGMA {pragma}").fetchall()
    return connection


def keep_wal(connection: apsw.Connection, *, on: bool = True) -> None:
    """Sets whether closing the connection keeps the write-ahead log, as it must for a damaged database."""
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, int(on))


def _connect_to_read(path: Path, busy_timeout: float) -> apsw.Connection:
    """Opens a connection that writes nothing, for files that can't be written."""
    if has_wal(path):
        connection = apsw.Connection(f"{path.absolute().as_uri()}?mode=ro", flags=_READ)
        connection.set_busy_handler(busy_handler(path, busy_timeout))
        return connection
    return glance(path)


def glance(path: Path) -> apsw.Connection:
    """Opens a connection to the file alone, which leaves no files beside it. Ignores the
    write-ahead log.
    """
    return apsw.Connection(
        f"{path.absolute().as_uri()}?mode=ro&immutable=1", flags=_READ
    )


def has_wal(path: Path) -> bool:
    """Returns whether part of the database is in its write-ahead log."""
    try:
        return path.with_name(f"{path.name}-wal").stat().st_size > 0
    except FileNotFoundError:
        return False


def busy_handler(path: Path, timeout: float) -> Callable[[int], bool]:
    """Returns a busy handler that polls at random intervals, shorter the longer it has waited.

    This way, no writer starves among many. Intervals get long when a process never releases the lock.
    """
    started = 0.0
    told = False

    def wait(tries: int) -> bool:
        nonlocal started, told
        now = time.monotonic()
        if tries == 0:
            started, told = now, False
        if now - started > timeout:
            return False
        if now - started > TELL_AFTER_S and not told:
            told = True
            log_wait(path, timeout)
        time.sleep(random.uniform(0.1, 1.0) * _step(now - started))  # noqa: S311 - spreading, not secrecy
        return True

    return wait


def _step(waited: float) -> float:
    """Returns the maximum seconds until the next attempt; measured with 16 writers on two busy cores."""
    if waited < 0.02:
        return 0.005
    if waited < 0.06:
        return 0.003
    return 0.001 if waited < 1 else 0.02


@contextmanager
def in_our_words(path: Path) -> Iterator[None]:
    """Translates SQLite's exceptions into Hermes' own: what happened, what was saved, what to do."""
    try:
        yield
    except (apsw.Error, DamagedRow) as error:
        raise translated(error, path) from error


def translated(error: apsw.Error | DamagedRow, path: Path) -> StoreError:
    """Returns the error for a person to read."""
    if isinstance(error, apsw.BusyError):
        hint = t.later(
            "Nothing of this was written. See which process holds it (fuser, lsof), then try again."
        )
        return StoreBusy(
            t.later("{path} is locked by another process", path=path), hint=hint
        )
    if isinstance(error, apsw.FullError) or _detail(error) == apsw.SQLITE_IOERR_SHMSIZE:
        hint = t.later(
            "Nothing of this was written; everything saved before is safe. Free some space, then try "
            "again."
        )
        return StoreFull(
            t.later("not saved: no space left for {path}", path=path), hint=hint
        )
    if isinstance(error, apsw.ReadOnlyError):
        hint = t.later(
            "Nothing of this was written. Give yourself write access to the file and its folder, then "
            "try again."
        )
        return StoreUnreachable(
            t.later(
                "not saved: {path} can only be read here ({error})",
                path=path,
                error=LoggedWords(str(error)),
            ),
            hint=hint,
        )
    if isinstance(error, apsw.CorruptError | apsw.NotADBError | DamagedRow):
        hint = t.later(
            "Nothing more is written to it. Stop all Hermes processes and run `hermes sessions check`."
        )
        return StoreDamaged(
            t.later(
                "{path} is damaged: {error}", path=path, error=LoggedWords(str(error))
            ),
            hint=hint,
        )
    hint = t.later(
        "Nothing of this was written. Check the disk, and the permissions of the file and its "
        "folder."
    )
    is_unreachable = isinstance(error, apsw.IOError | apsw.CantOpenError)
    kind = StoreUnreachable if is_unreachable else StoreError
    return kind(
        t.later("not saved: {path}: {error}", path=path, error=LoggedWords(str(error))),
        hint=hint,
    )


def only_the_index(error: BaseException | None) -> bool:
    """Returns whether only the search index is damaged, which can be rebuilt in place."""
    return (
        isinstance(error, apsw.CorruptError)
        and _detail(error) == apsw.SQLITE_CORRUPT_VTAB
    )


def _detail(error: Exception) -> int:
    """Returns SQLite's extended result code; errors of apsw itself have none."""
    return int(getattr(error, "extendedresult", 0))


def suspicion(path: Path) -> Path:
    """Returns the path of a marker file: damage was found, so the next open checks everything."""
    return path.with_name(f"{path.name}.suspect")


def suspect(path: Path) -> None:
    """Makes the next open check every page, however large the file."""
    try:
        os.close(open_private(suspicion(path), os.O_CREAT | os.O_WRONLY))
    except OSError as error:
        log.warning("could not record that %s is damaged: %s", path, error)

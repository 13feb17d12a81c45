"""A lock file beside `state.db`: everyone who has the database open holds it shared; whoever replaces or rebuilds the
file needs it alone. So no process ever goes on writing to a database that was renamed under it.

It contains the number of the last acknowledged row, with the inode and the modification time of the database that has
it. A database with fewer rows that was not changed since has lost some, for example with its write-ahead log. One that
somebody put in its place has another inode or time.
"""

import fcntl
import os
import time
from contextlib import suppress
from pathlib import Path

from hermes.errors import StoreBusy
from hermes.store.lock_holders import TELL_AFTER_S, log_wait
from hermes.store.private import open_private

_NOTE_BYTES = 64


def lock_path(database: Path) -> Path:
    """Where the lock of a database is."""
    return database.with_name(f"{database.name}.lock")


def last_row_noted(database: Path) -> int:
    """The number of the last row that was acknowledged in this very file; 0 when that was not noted."""
    try:
        number, _, identity = (
            lock_path(database).read_text()[:_NOTE_BYTES].strip().partition(" ")
        )
        return int(number) if identity == _identity(database) else 0
    except (OSError, ValueError):
        return 0


def _identity(database: Path) -> str:
    found = database.stat()
    return f"{found.st_ino} {found.st_mtime_ns}"


class FileLock:
    """An advisory lock that ends with its process, however that ends.

    Going from one kind to the other lets go in between: look again at what the lock protects.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd = open_private(path, os.O_RDWR | os.O_CREAT)

    def share(self, *, timeout: float) -> None:
        """Holds it together with others."""
        self._take(fcntl.LOCK_SH, timeout)

    def own(self, *, timeout: float) -> None:
        """Holds it alone."""
        self._take(fcntl.LOCK_EX, timeout)

    def close(self) -> None:
        """Lets go."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _take(self, kind: int, timeout: float) -> None:
        began = time.monotonic()
        told = False
        while True:
            try:
                fcntl.flock(self._fd, kind | fcntl.LOCK_NB)
            except BlockingIOError:
                waited = time.monotonic() - began
                if waited > TELL_AFTER_S and not told:
                    told = True
                    log_wait(self.path, timeout)
                if waited > timeout:
                    hint = "Nothing was changed. Stop the other Hermes processes of this home, then try again."
                    raise StoreBusy(
                        f"another Hermes process is using {self.path.parent}", hint=hint
                    ) from None
                time.sleep(0.01)
            else:
                return


class DatabaseLock(FileLock):
    """The lock of a database, which also notes how far its log has come."""

    def __init__(self, database: Path) -> None:
        super().__init__(lock_path(database))
        self._database = database

    def note_last_row(self, number: int) -> None:
        """Notes the last row on disk. The caller holds the lock. Not worth an fsync: an older number does no harm."""
        with suppress(OSError):  # the row is saved, whatever becomes of this
            os.pwrite(
                self._fd,
                f"{number} {_identity(self._database)}".ljust(_NOTE_BYTES).encode(),
                0,
            )

    def forget_last_row(self) -> None:
        """Call before another file replaces the database. The caller holds the lock alone."""
        with suppress(OSError):
            os.ftruncate(self._fd, 0)

"""A lock file beside `state.db`: shared by everyone who has the database open, exclusive for replacing the file.

This way, no process ever writes to a database that was renamed while it was open. The file contains the number of the
last acknowledged row, with the inode and the modification time of its database. A database with fewer rows that was not
changed since has lost some, for example with its write-ahead log. One that somebody put in its place has another inode
or time.

A second note names the database as it was when it was last known to be sound. As long as nobody has changed that file,
opening it need not check it again.
"""

import os
from contextlib import suppress
from pathlib import Path

from hermes.errors import StoreBusy
from hermes.primitives.file_lock import FileLock
from hermes.store.lock_holders import TELL_AFTER_S, log_wait
from hermes.text.translation import translator

t = translator(__name__)


_NOTE_BYTES = 64


def lock_path(database: Path) -> Path:
    """Returns the path of a database's lock file."""
    return database.with_name(f"{database.name}.lock")


def last_row_noted(database: Path) -> int:
    """Returns the number of the last row acknowledged in this very file; 0 if unknown."""
    try:
        number, _, identity = (
            lock_path(database).read_text()[:_NOTE_BYTES].strip().partition(" ")
        )
        return int(number) if identity == _identity(database) else 0
    except (OSError, ValueError):
        return 0


def noted_sound(database: Path) -> bool:
    """Returns whether the file is as it was when it was last known to be sound."""
    try:
        note = lock_path(database).read_text()[_NOTE_BYTES:]
        return note.strip() == _full_identity(database)
    except (OSError, ValueError):
        return False


def _identity(database: Path) -> str:
    found = database.stat()
    return f"{found.st_ino} {found.st_mtime_ns}"


def _full_identity(database: Path) -> str:
    return f"{_identity(database)} {database.stat().st_size}"


class DatabaseLock(FileLock):
    """The lock of a database, which also records the last row."""

    def __init__(self, database: Path) -> None:
        super().__init__(lock_path(database), follow_links=True)
        self._database = database

    def share(self, *, timeout: float) -> None:
        """Acquires the lock shared."""
        self._take(timeout, shared=True)

    def own(self, *, timeout: float) -> None:
        """Acquires the lock exclusively."""
        self._take(timeout, shared=False)

    def _take(self, timeout: float, *, shared: bool) -> None:
        if self.acquire(min(timeout, TELL_AFTER_S), shared=shared):
            return
        if timeout > TELL_AFTER_S:
            log_wait(self.path, timeout)
            if self.acquire(timeout - TELL_AFTER_S, shared=shared):
                return
        hint = t.later(
            "Nothing was changed. Stop the other Hermes processes of this home, then try again."
        )
        raise StoreBusy(
            t.later(
                "another Hermes process is using {parent}", parent=self.path.parent
            ),
            hint=hint,
        )

    def note_last_row(self, number: int) -> None:
        """Records the last row on disk. The caller holds the lock. Needs no fsync: an older number
        does no harm.
        """
        with suppress(OSError):  # the row is saved either way
            os.pwrite(
                self.fd,
                f"{number} {_identity(self._database)}".ljust(_NOTE_BYTES).encode(),
                0,
            )

    def note_sound(self) -> None:
        """Records that the file is sound as it is now. The caller holds the lock. Without the note,
        the next opening checks the file.
        """
        with suppress(OSError):
            note = _full_identity(self._database).ljust(_NOTE_BYTES)
            os.pwrite(self.fd, note.encode(), _NOTE_BYTES)

    def forget_last_row(self) -> None:
        """Clears both notes, before another file replaces the database. The caller holds the lock
        exclusively.
        """
        with suppress(OSError):
            os.ftruncate(self.fd, 0)

"""`state.db` as a file: is it there, is it ours, is it sound, is it current; creating and migrating it.

Nothing here writes to a file that is damaged, newer than this Hermes or another program's.
"""

import os
from collections.abc import Sequence
from contextlib import closing
from enum import Enum
from pathlib import Path
from typing import NamedTuple

import apsw

from hermes.errors import StoreDamaged, StoreError, StoreTooNew
from hermes.store.database import connect, in_our_words
from hermes.store.schema import APPLICATION_ID

FULL_CHECK_BYTES = 16 * 1024 * 1024
"""Up to this size opening checks every page, in some tens of milliseconds; `hermes sessions check` always does."""


class State(Enum):
    """What opening found."""

    MISSING = "missing"
    CURRENT = "current"
    OLD = "old"
    DAMAGED = "damaged"


class Finding(NamedTuple):
    """A state; for an old file its version, for a damaged one what is wrong."""

    state: State
    version: int = 0
    detail: str = ""


def companions(path: Path) -> list[Path]:
    """The database and the files SQLite keeps beside it."""
    return [path, path.with_name(path.name + "-wal"), path.with_name(path.name + "-shm")]


def inspect(path: Path, *, version: int, busy_timeout: float) -> Finding:
    """Looks without changing anything. Raises for a file that is newer than we are or not ours."""
    wal = path.with_name(path.name + "-wal")
    if not path.exists():
        if wal.exists() and wal.stat().st_size:
            return Finding(State.DAMAGED, detail="the database is gone, but its write-ahead log is still there")
        return Finding(State.MISSING)
    if not path.is_file():
        raise StoreError(f"{path} is not a file", hint="Move it away: Hermes keeps its sessions there.")
    if not path.stat().st_size:
        return Finding(State.DAMAGED, detail="the file is empty")
    try:
        with in_our_words(path):
            found = _look_inside(path, busy_timeout)
    except StoreDamaged as damaged:
        return Finding(State.DAMAGED, detail=str(damaged.__cause__))
    if found > version:
        hint = "Nothing was changed. Upgrade Hermes, or set HERMES_HOME to another folder."
        raise StoreTooNew(f"{path} was written by a newer Hermes (version {found}; this is {version})", hint=hint)
    return Finding(State.CURRENT if found == version else State.OLD, version=found)


def _look_inside(path: Path, busy_timeout: float) -> int:
    """The file's version. Raises apsw.CorruptError when a page is bad."""
    with closing(connect(path, busy_timeout=busy_timeout, change=False)) as connection:
        application = connection.execute("PRAGMA application_id").get
        if application != APPLICATION_ID:
            hint = "Nothing was changed. Move it away, or set HERMES_HOME to another folder."
            raise StoreError(f"{path} is a database of another program", hint=hint)
        if path.stat().st_size <= FULL_CHECK_BYTES:
            check_pages(connection)
        return int(connection.execute("PRAGMA user_version").get)


def check_pages(connection: apsw.Connection) -> None:
    """Reads every page; raises apsw.CorruptError naming the first fault."""
    verdict = connection.execute("PRAGMA quick_check(1)").get
    if verdict != "ok":
        raise apsw.CorruptError(str(verdict))


def create(path: Path, migrations: Sequence[str]) -> None:
    """Makes a whole new database in one step: others see none or all of it. The caller owns the lock."""
    draft = path.with_name(f"{path.name}.new")
    for leftover in companions(draft):
        leftover.unlink(missing_ok=True)
    os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    with in_our_words(path), closing(connect(draft, busy_timeout=0)) as connection:
        _run_steps(connection, migrations, 0)
    draft.rename(path)
    sync_folder(path.parent)


def migrate(path: Path, migrations: Sequence[str], found: int, *, busy_timeout: float) -> Path:
    """Brings an older file up to date, after a backup, whose path it returns. The caller owns the lock."""
    backup = path.with_name(f"{path.name}.v{found}-backup")
    backup.unlink(missing_ok=True)
    os.close(os.open(backup, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    with in_our_words(path), closing(connect(path, busy_timeout=busy_timeout)) as connection:
        connection.execute("VACUUM INTO ?", (str(backup),)).fetchall()
        _run_steps(connection, migrations, found)
    return backup


def _run_steps(connection: apsw.Connection, migrations: Sequence[str], found: int) -> None:
    with connection:
        for step in migrations[found:]:
            connection.execute(step).fetchall()
        connection.execute(f"PRAGMA application_id={APPLICATION_ID}").fetchall()
        connection.execute(f"PRAGMA user_version={len(migrations)}").fetchall()


def sync_folder(folder: Path) -> None:
    """Makes renames in a folder survive a power cut."""
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)

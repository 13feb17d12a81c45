"""`state.db` as a file: whether it exists, is ours, sound and current; creating and migrating it.

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
from hermes.primitives.files import open_private, sync_folder
from hermes.store.sqlite.connection import (
    connect,
    glance,
    has_wal,
    in_our_words,
    suspicion,
)
from hermes.store.sqlite.integrity_check import check, check_pages
from hermes.store.sqlite.lock import last_row_noted, noted_sound
from hermes.store.sqlite.schema import APPLICATION_ID, LAST_ROW
from hermes.store.sqlite.write_ahead_log import commits_after, content
from hermes.text.translation import translator

t = translator(__name__)


CHECK_ALL_BYTES = 4 * 1024 * 1024
"""Up to this size, opening checks everything, which takes some tens of milliseconds.

The check is skipped if the file has not changed since it was last found sound; `hermes sessions check` always runs it.
"""

CHECK_PAGES_BYTES = 16 * 1024 * 1024
"""Up to this size, opening checks the structure of every page."""

_TABLES = "SELECT name FROM sqlite_schema WHERE type = 'table' AND rootpage > 0"
_HEADER, _MAGIC = 100, b"SQLite format 3\0"
_WAL_HEADER_BYTES = (
    32  # bytes of a write-ahead log's header that change when the log restarts
)


class DatabaseState(Enum):
    """The state of a file when it was opened."""

    MISSING = "missing"
    CURRENT = "current"
    OLD = "old"
    DAMAGED = "damaged"


class _Depth(Enum):
    """How much of a file opening it checks."""

    ROOTS = "roots"
    PAGES = "pages"
    ALL = "all"


class DatabaseFinding(NamedTuple):
    """A state, the file's version if readable, and for a damaged file what is wrong.

    If only its last rows are missing, also how many.
    """

    state: DatabaseState
    version: int = 0
    detail: str = ""
    lost_rows: int = 0


def companions(path: Path) -> list[Path]:
    """Returns the paths of the database and the files SQLite keeps beside it."""
    return [
        path,
        path.with_name(path.name + "-wal"),
        path.with_name(path.name + "-shm"),
    ]


def inspect(
    path: Path,
    *,
    version: int,
    busy_timeout: float,
    read_only: bool = False,
    check_pages_bytes: int = CHECK_PAGES_BYTES,
    check_all_bytes: int = CHECK_ALL_BYTES,
) -> DatabaseFinding:
    """Inspects a file without changing anything. Raises for a newer file or another program's.

    Up to the given sizes, the structure of every page is checked, and every row.
    """
    wal = path.with_name(path.name + "-wal")
    if not path.exists():
        if wal.exists() and wal.stat().st_size:
            return DatabaseFinding(
                DatabaseState.DAMAGED,
                detail=t.logged(
                    "the database is gone, but its write-ahead log is still there"
                ),
            )
        return DatabaseFinding(DatabaseState.MISSING)
    if not path.is_file():
        raise StoreError(
            t.later("{path} is not a file", path=path),
            hint=t.later("Move it away: Hermes keeps its sessions there."),
        )
    if not path.stat().st_size:
        return DatabaseFinding(
            DatabaseState.DAMAGED, detail=t.logged("the file is empty")
        )
    noted = last_row_noted(path)  # before looking inside, since others may write
    try:
        with in_our_words(path):
            found = _glimpsed_version(path)
            last_row = noted
            if found <= version:
                with closing(
                    connect(
                        path,
                        busy_timeout=busy_timeout,
                        change=False,
                        read_only=read_only,
                    )
                ) as connection:
                    _require_ours(connection, path)
                    if (
                        not read_only
                    ):  # SQLite answers this with a command that takes a write lock
                        _check_wal(connection, path)
                    depth = _depth(path, check_pages_bytes, check_all_bytes)
                    found, last_row = _look_inside(connection, version, depth)
    except StoreDamaged as damaged:
        return DatabaseFinding(DatabaseState.DAMAGED, detail=str(damaged.__cause__))
    if found > version:
        hint = t.later(
            "Nothing was changed. Upgrade Hermes, or set HERMES_HOME to another folder."
        )
        raise StoreTooNew(
            t.later(
                "{path} was written by a newer Hermes (version {found}; this is {version})",
                path=path,
                found=found,
                version=version,
            ),
            hint=hint,
        )
    if last_row < noted:
        detail = t.logged(
            "the last {count:,} rows are missing: its write-ahead log is gone or was emptied",
            count=noted - last_row,
        )
        return DatabaseFinding(
            DatabaseState.DAMAGED,
            version=found,
            detail=detail,
            lost_rows=noted - last_row,
        )
    return DatabaseFinding(
        DatabaseState.CURRENT if found == version else DatabaseState.OLD, version=found
    )


def _glimpsed_version(path: Path) -> int:
    """Reads the version from the header without SQLite, which leaves files beside those it opens.

    Rejects other programs' files. Returns 0 if the version is not certain: the header is damaged,
    or a newer one may be in the write-ahead log.
    """
    with path.open("rb") as file:
        header = file.read(_HEADER)
    if has_wal(path) or len(header) < _HEADER or not header.startswith(_MAGIC):
        return 0
    if int.from_bytes(header[68:72], "big") != APPLICATION_ID:
        with closing(glance(path)) as connection:
            _require_ours(connection, path)
    return int.from_bytes(header[60:64], "big")


def _look_inside(
    connection: apsw.Connection, known: int, depth: _Depth
) -> tuple[int, int]:
    """Returns the file's version and the number of its last row. Raises apsw.CorruptError for a bad
    page.
    """
    version = int(connection.execute("PRAGMA user_version").get)
    if version < 1:
        raise apsw.CorruptError(t.logged("the header has no version"))
    if version > known:
        return version, 0
    if depth is _Depth.PAGES:
        check_pages(connection)
    try:
        _check_roots(connection)
        if depth is _Depth.ALL:
            _check_everything(connection, rows=version == known)
        return version, int(connection.execute(LAST_ROW).get or 0)
    except apsw.SQLError as error:
        raise apsw.CorruptError(
            t.logged("a table is missing ({error})", error=error)
        ) from error


def _depth(path: Path, check_pages_bytes: int, check_all_bytes: int) -> _Depth:
    """Returns how much of a file opening it checks. Its write-ahead log has checksums of its own."""
    if suspicion(path).exists():
        return _Depth.ALL
    size = path.stat().st_size
    if size > max(check_all_bytes, check_pages_bytes) or noted_sound(path):
        return _Depth.ROOTS
    return _Depth.ALL if size <= check_all_bytes else _Depth.PAGES


def _check_roots(connection: apsw.Connection) -> None:
    """Reads the list of tables, and the first page of each."""
    for (table,) in connection.execute(_TABLES).fetchall():
        connection.execute(f'SELECT 1 FROM "{table}" LIMIT 1').fetchall()  # noqa: S608 - from the file's own list


def _check_everything(connection: apsw.Connection, *, rows: bool) -> None:
    """Checks every page, and with `rows` every row, which only the current schema allows."""
    with connection:  # one consistent state, even while others write
        if not rows:
            check_pages(connection, indexes=True)
            return
        problems = check(connection).problems
    if problems:
        raise apsw.CorruptError(problems[0])


def _require_ours(connection: apsw.Connection, path: Path) -> None:
    """Rejects another program's database, as opposed to one of ours with a damaged header."""
    if connection.execute("PRAGMA application_id").get == APPLICATION_ID:
        return
    ours = "SELECT count(*) FROM sqlite_schema WHERE name IN ('events', 'events_by_session', 'search_progress')"
    if connection.execute(ours).get == 3:
        raise apsw.CorruptError(
            t.logged("the header does not say that it is a file of Hermes")
        )
    hint = t.later(
        "Nothing was changed. Move it away, or set HERMES_HOME to another folder."
    )
    raise StoreError(
        t.later("{path} is a database of another program", path=path), hint=hint
    )


def _check_wal(connection: apsw.Connection, path: Path) -> None:
    """Raises apsw.CorruptError if the write-ahead log has transactions that SQLite no longer sees.

    Each is on disk before the next starts, so a power cut can leave one behind the readable part,
    never two.
    """
    log = content(path.with_name(path.name + "-wal"))
    if not log:
        return
    before = log[:_WAL_HEADER_BYTES]
    _, frames, _ = connection.execute("PRAGMA wal_checkpoint(NOOP)").get
    lost = commits_after(
        log, max(frames, 0), int(connection.execute("PRAGMA page_size").get)
    )
    if (
        lost > 1
        and content(path.with_name(path.name + "-wal"))[:_WAL_HEADER_BYTES] == before
    ):
        raise apsw.CorruptError(
            t.logged(
                "the write-ahead log is damaged before its last {lost} transactions",
                lost=lost,
            )
        )


def create(path: Path, migrations: Sequence[str]) -> None:
    """Creates a new database atomically. The caller owns the lock."""
    draft = path.with_name(f"{path.name}.new")
    for leftover in companions(draft):
        leftover.unlink(missing_ok=True)
    os.close(open_private(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    with in_our_words(path), closing(connect(draft, busy_timeout=0)) as connection:
        _run_steps(connection, migrations, 0)
        settle(connection)
    draft.rename(path)
    sync_folder(path.parent)


def settle(connection: apsw.Connection) -> None:
    """Moves everything from the write-ahead log into the file itself, so that the file alone is
    complete.
    """
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def migrate(
    path: Path, migrations: Sequence[str], found: int, *, busy_timeout: float
) -> Path:
    """Migrates an older file after a backup, and returns the backup's path. The caller owns the lock."""
    with (
        in_our_words(path),
        closing(connect(path, busy_timeout=busy_timeout)) as connection,
    ):
        backup = _copy_whole(connection, path.with_name(f"{path.name}.v{found}-backup"))
        _run_steps(connection, migrations, found)
    return backup


def copy_whole(path: Path, target: Path) -> None:
    """Copies the database as of one moment, even while others write."""
    with (
        in_our_words(path),
        closing(connect(path, busy_timeout=30.0, read_only=True)) as connection,
    ):
        _copy_whole(connection, target)


def _copy_whole(connection: apsw.Connection, backup: Path) -> Path:
    """Copies the database. The copy is complete and on disk when this returns."""
    draft = backup.with_name(f"{backup.name}.new")
    draft.unlink(missing_ok=True)
    fd = open_private(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
    try:
        connection.execute("VACUUM INTO ?", (str(draft),)).fetchall()
        os.fsync(fd)
        draft.rename(backup)
    finally:
        os.close(fd)
        draft.unlink(missing_ok=True)
    sync_folder(backup.parent)
    return backup


def _run_steps(
    connection: apsw.Connection, migrations: Sequence[str], found: int
) -> None:
    with connection:
        for step in migrations[found:]:
            connection.execute(step).fetchall()
        connection.execute(f"PRAGMA application_id={APPLICATION_ID}").fetchall()
        connection.execute(f"PRAGMA user_version={len(migrations)}").fetchall()

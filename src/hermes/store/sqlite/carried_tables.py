"""Copies the tables that are not projections into a rebuilt database.

They have no checksums, so SQLite reads them, from a copy: the damaged file is never touched.
"""

import shutil
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import apsw

from hermes.store.sqlite.connection import log
from hermes.store.sqlite.database_file import companions
from hermes.store.sqlite.schema import KEPT

_MAX_COPIED_BYTES = 1 << 30  # of a database that is copied


def take_over(
    connection: apsw.Connection, damaged: Path, tables: Iterable[str] = KEPT
) -> tuple[str, ...]:
    """Copies what can be read of those tables into a new database. Returns the incomplete ones."""
    there = {
        name
        for (name,) in connection.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table'"
        )
    }
    wanted = [name for name in tables if name in there]
    try:
        with _copy(damaged) as copy, closing(apsw.Connection(str(copy))) as old:
            old.execute(
                "PRAGMA writable_schema=ON"
            ).fetchall()  # also reads a truncated file
            return tuple(name for name in wanted if not _copied(old, connection, name))
    except (apsw.Error, OSError, UnicodeDecodeError) as error:
        log.warning("schedules and chats of %s can't be read: %s", damaged, error)
        return tuple(wanted)


def _copied(old: apsw.Connection, new: apsw.Connection, table: str) -> bool:
    """Returns whether the whole table was copied."""
    columns = [row[1] for row in new.execute(f"PRAGMA table_info({table})")]
    names, places = ", ".join(columns), ", ".join("?" for _ in columns)
    try:
        for row in old.execute(f"SELECT {names} FROM {table}"):  # noqa: S608 - our own names
            new.execute(
                f"INSERT OR IGNORE INTO {table} ({names}) VALUES ({places})",  # noqa: S608
                row,  # noqa: RUF100, S608
            )
    except (apsw.Error, UnicodeDecodeError) as error:
        # An older version without this table.
        if "no such table" in str(error):  # not translated
            return True
        log.warning("not all of %s could be read: %s", table, error)
        return False
    return True


@contextmanager
def _copy(damaged: Path) -> Iterator[Path]:
    """Copies the database with its write-ahead log, while the context is open."""
    target = damaged.with_name(f"{damaged.name}.reading")
    if damaged.stat().st_size > _MAX_COPIED_BYTES:
        raise OSError("it is too large to be copied")  # not translated
    try:
        for source, copy in zip(
            companions(damaged)[:2], companions(target), strict=False
        ):
            if source.exists():
                shutil.copyfile(source, copy)
        yield target
    finally:
        for part in companions(target):
            part.unlink(missing_ok=True)

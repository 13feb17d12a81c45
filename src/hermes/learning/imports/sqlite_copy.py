"""Reads a SQLite database of another program, which may be running, through a copy. The original is not written."""

import contextlib
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hermes.learning.change import LearningError
from hermes.text.translation import translator

t = translator(__name__)

_MAX_DATABASE_BYTES = 8_000_000_000
_BUSY_TIMEOUT_S = 10.0
_WAL_VERSION = 2
_VERSION_BYTES = slice(18, 20)  # offset in the file header: 2 means a write-ahead log


@contextlib.contextmanager
def copied_database(database: Path) -> Iterator[sqlite3.Connection]:
    """Opens a copy of a database. Raises LearningError if it can't be read, including errors inside the block."""
    with tempfile.TemporaryDirectory(prefix="hermes-import-") as folder:
        copy = Path(folder) / "copy.db"
        try:
            if database.stat().st_size > _MAX_DATABASE_BYTES:
                raise LearningError(
                    t.later("{database} is too large.", database=database),
                    hint=t.later("Nothing was imported from it."),
                )
            _copy(database, copy)
            with contextlib.closing(sqlite3.connect(copy)) as connection:
                connection.row_factory = sqlite3.Row
                connection.text_factory = _decoded
                yield connection
        except (sqlite3.Error, OSError) as error:
            raise LearningError(
                t.later(
                    "{database} can't be read ({error}).",
                    database=database,
                    error=error,
                ),
                hint=t.later("Nothing was imported from it."),
            ) from error


def columns(
    connection: sqlite3.Connection, table: str, wanted: tuple[str, ...]
) -> list[dict[str, Any]]:
    """Returns a table's rows with the wanted columns; those that the table lacks are None. Empty without the table."""
    known = {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
    if not known:
        return []
    chosen = ", ".join(
        f'"{name}"' if name in known else f'NULL AS "{name}"' for name in wanted
    )
    rows = connection.execute(f"SELECT {chosen} FROM {table}")  # noqa: S608 - our own names
    return [dict(row) for row in rows]


def _copy(database: Path, copy: Path) -> None:
    """Copies with SQLite's backup, which waits for writers and sees whole transactions.

    Opening a database with a write-ahead log creates that log. If there is no log, no program has the database open, so
    it is opened as immutable. If there is a log that no program uses, the files are copied.
    """
    with database.open("rb") as file:
        has_wal = _WAL_VERSION in file.read(20)[_VERSION_BYTES]
    log, index = (database.with_name(database.name + end) for end in ("-wal", "-shm"))
    if has_wal and log.exists() and not index.exists():
        shutil.copyfile(database, copy)
        shutil.copyfile(log, copy.with_name(copy.name + "-wal"))
        return
    mode = "immutable=1" if has_wal and not log.exists() else "mode=ro"
    address = f"{database.resolve().as_uri()}?{mode}"
    with (
        contextlib.closing(
            sqlite3.connect(address, uri=True, timeout=_BUSY_TIMEOUT_S)
        ) as source,
        contextlib.closing(sqlite3.connect(copy)) as target,
    ):
        source.backup(target)


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "replace")

"""Removes given values from a copy of the database that will be shared. Rows keep their order and valid checksums."""

from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path

import apsw

from hermes.store.connection import connect
from hermes.store.frames import FORGET, TEXT
from hermes.store.row import STORED, checked, checksum

HIDDEN = "********"

_HOLDS = f"SELECT {STORED} FROM events WHERE instr(data, ?) OR instr({TEXT}, ?)"  # noqa: S608 - our own names
_REWRITE = "UPDATE events SET data = ?, crc = ?, frame = NULL WHERE id = ?"  # whole, without a frame that others share


def redact_copy(path: Path, values: Iterable[str]) -> int:
    """Replaces the values wherever they stand in a copy that nobody else has open. Returns how many rows changed."""
    with closing(connect(path, busy_timeout=30.0, change=False)) as connection:
        connection.execute("PRAGMA secure_delete=ON").fetchall()
        with connection:
            changed = sum(_replace(connection, value) for value in sorted(values, key=len, reverse=True))
            if changed:  # its words come from the old rows; it is made again when the copy is first searched
                connection.execute("INSERT INTO search (search) VALUES ('delete-all')").fetchall()
                connection.execute("UPDATE search_progress SET indexed = 0").fetchall()
        if changed:
            connection.execute("VACUUM").fetchall()
    return changed


def _replace(connection: apsw.Connection, value: str) -> int:
    found = checked(connection.execute(_HOLDS, (value, value)).fetchall())
    for row in found:
        new = row._replace(data=row.data.replace(value, HIDDEN))
        connection.execute(_REWRITE, (new.data, checksum(new), new.id)).fetchall()
    connection.execute(FORGET).fetchall()
    changed = len(found)
    for table, column in _texts(connection):
        statement = f'UPDATE "{table}" SET "{column}" = replace("{column}", ?, ?) WHERE instr("{column}", ?)'  # noqa: S608 - names
        connection.execute(statement, (value, HIDDEN, value)).fetchall()
        changed += connection.changes()
    return changed


def _texts(connection: apsw.Connection) -> Iterator[tuple[str, str]]:
    """The columns that hold text, apart from the log, its frames and the index."""
    tables = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
    for (table,) in tables:
        if table in {"events", "frames"} or table.startswith(("search", "sqlite_")):
            continue
        for row in connection.execute(f'PRAGMA table_info("{table}")').fetchall():
            if row[2] == "TEXT":
                yield table, row[1]

"""Removes secrets from a copy of the database that will be shared. Rows keep their order and valid checksums.

A value may coincide with one of Hermes' own words, such as the name of a field or a state. Those stay, so that every
row can be read.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, TypeAlias

import apsw
import msgspec

from hermes.store.log_row import STORED, Row, checked, checksum
from hermes.store.shared_text import FORGET, TEXT
from hermes.store.sqlite.connection import connect

HIDDEN = "********"
Mask: TypeAlias = Callable[[str], str]
"""Returns a text without what looks like a secret in it."""

_HOLDS = f"SELECT {STORED} FROM events WHERE instr(data, ?) OR instr({TEXT}, ?)"  # noqa: S608 - our own names
_AFTER = f"SELECT {STORED} FROM events WHERE id > ? ORDER BY id LIMIT 200"  # noqa: S608 - our own names
_REWRITE = "UPDATE events SET data = ?, crc = ?, frame = NULL WHERE id = ?"  # in full, without a shared frame


def redact_copy(path: Path, values: Iterable[str], mask: Mask) -> int:
    """Replaces the values, and what else looks like a secret, everywhere in a copy that nobody else has open.

    Returns how many rows changed.
    """
    with closing(connect(path, busy_timeout=30.0, change=False)) as connection:
        connection.execute("PRAGMA secure_delete=ON").fetchall()
        with connection:
            changed = sum(
                _replace(connection, value)
                for value in sorted(values, key=len, reverse=True)
            )
            changed += _mask_rows(connection, mask) + _mask_tables(connection, mask)
            if changed:  # it holds words of the old rows; the first search rebuilds it
                connection.execute(
                    "INSERT INTO search (search) VALUES ('delete-all')"
                ).fetchall()
                connection.execute("UPDATE search_progress SET indexed = 0").fetchall()
        if changed:
            connection.execute("VACUUM").fetchall()
    return changed


def _replace(connection: apsw.Connection, value: str) -> int:
    found = checked(connection.execute(_HOLDS, (value, value)).fetchall())
    for row in found:
        new = _without(row, value)
        connection.execute(_REWRITE, (new.data, checksum(new), new.id)).fetchall()
    connection.execute(FORGET).fetchall()
    changed = len(found)
    for table, column in _texts(connection):
        statement = f'UPDATE "{table}" SET "{column}" = replace("{column}", ?1, ?2) WHERE instr("{column}", ?1)'  # noqa: S608 - names
        if _may_be_ours(value):
            statement += (
                f""" AND "{column}" != ?1 AND NOT instr("{column}", '"' || ?1 || '"')"""
            )
        connection.execute(statement, (value, HIDDEN)).fetchall()
        changed += connection.changes()
    return changed


def _mask_rows(connection: apsw.Connection, mask: Mask) -> int:
    """Masks the texts in every row of the log. Returns how many rows changed."""
    changed, last = 0, 0
    while rows := checked(connection.execute(_AFTER, (last,)).fetchall()):
        for row in rows:
            new = _with_texts(row, mask)
            if new is not row:
                connection.execute(
                    _REWRITE, (new.data, checksum(new), new.id)
                ).fetchall()
                changed += 1
        last = rows[-1].id
    connection.execute(FORGET).fetchall()
    return changed


def _mask_tables(connection: apsw.Connection, mask: Mask) -> int:
    """Masks the texts beside the log, such as titles. Returns how many changed."""
    connection.create_scalar_function("masked", mask, 1, deterministic=True)
    changed = 0
    for table, column in _texts(connection):
        connection.execute(
            f'UPDATE "{table}" SET "{column}" = masked("{column}") '  # noqa: S608 - names
            f'WHERE "{column}" IS NOT NULL AND masked("{column}") != "{column}"'
        ).fetchall()
        changed += connection.changes()
    return changed


def _may_be_ours(value: str) -> bool:
    """Returns whether a value looks like the name of a field or a state."""
    return re.fullmatch("[a-z_.-]+", value) is not None


def _without(row: Row, value: str) -> Row:
    """Returns the row without the value, except in places that can only hold one of Hermes' own words."""
    new = row._replace(data=row.data.replace(value, HIDDEN))
    if not _may_be_ours(value) and (new.event is not None or row.event is None):
        return new
    return _with_texts(row, lambda text: text.replace(value, HIDDEN))


def _with_texts(row: Row, change: Mask) -> Row:
    """Returns the row with its texts changed, except those without which it can't be read."""
    data = msgspec.json.decode(row.data)
    new = row
    for holder, place in _strings(data):
        text = holder[place]
        holder[place] = change(text)
        if holder[place] == text:
            continue
        changed = row._replace(data=msgspec.json.encode(data).decode())
        if changed.event is None and row.event is not None:
            holder[place] = text
        else:
            new = changed
    return new


def _strings(data: Any) -> Iterator[tuple[Any, Any]]:
    """Yields the texts, each with its container and its key there."""
    for place, inner in list(
        data.items() if isinstance(data, dict) else enumerate(data)
    ):
        if isinstance(inner, str):
            yield data, place
        elif isinstance(inner, (dict, list)):
            yield from _strings(inner)


def _texts(connection: apsw.Connection) -> Iterator[tuple[str, str]]:
    """Returns the text columns, except those of the log, its frames and the index."""
    tables = connection.execute(
        "SELECT name FROM sqlite_schema WHERE type = 'table'"
    ).fetchall()
    for (table,) in tables:
        if table in {"events", "frames"} or table.startswith(("search", "sqlite_")):
            continue
        for row in connection.execute(f'PRAGMA table_info("{table}")').fetchall():
            if row[2] == "TEXT":
                yield table, row[1]

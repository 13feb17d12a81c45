"""Removes secrets from a copy of the database that will be shared. Rows keep their order and valid checksums.

A value may coincide with one of Hermes' own words, such as the name of a field or a state. Those stay, so that every
row can be read. In JSON only the strings change, one by one. Ids stay, unless they hold a known secret: then each such
secret has its own replacement, so that no two ids become equal.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import apsw
import msgspec

from hermes.schema.boards import Board, Card
from hermes.schema.schedules import Job
from hermes.store.log_row import STORED, Row, checked, checksum
from hermes.store.shared_text import FORGET, TEXT
from hermes.store.sqlite.connection import connect

HIDDEN = "********"
Mask: TypeAlias = Callable[[str], str]
"""Returns a text without what looks like a secret in it."""
_Change: TypeAlias = Callable[[str | int, str], str]
"""Changes a string in JSON, given its key or its place in a list."""
_TYPES: dict[tuple[str, str], Any] = {
    ("boards", "data"): Board,
    ("cards", "data"): Card,
    ("jobs", "data"): Job,
}
"""What the JSON of a column is read as."""

_HOLDS = f"SELECT {STORED} FROM events WHERE instr(data, ?) OR instr({TEXT}, ?)"  # noqa: S608 - our own names
_AFTER = f"SELECT {STORED} FROM events WHERE id > ? ORDER BY id LIMIT 200"  # noqa: S608 - our own names
_REWRITE = "UPDATE events SET data = ?, crc = ?, frame = NULL WHERE id = ?"  # in full, without a shared frame


class _TextColumn(NamedTuple):
    """A text column beside the log."""

    table: str
    name: str
    is_key: bool
    """It is in a primary key or a unique index."""


def redact_copy(path: Path, values: Iterable[str], mask: Mask) -> int:
    """Replaces the values, and what else looks like a secret, everywhere in a copy that nobody else has open.

    Returns how many rows changed.
    """
    with closing(connect(path, busy_timeout=30.0, change=False)) as connection:
        connection.execute("PRAGMA secure_delete=ON").fetchall()
        with connection:
            longest_first = sorted(values, key=len, reverse=True)
            changed = sum(
                _replace(connection, value, number)
                for number, value in enumerate(longest_first, 1)
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


def _replace(connection: apsw.Connection, value: str, number: int) -> int:
    """Replaces a value everywhere. Returns how many texts changed."""
    found = checked(connection.execute(_HOLDS, (value, value)).fetchall())
    for row in found:
        new = _without(row, value)
        connection.execute(_REWRITE, (new.data, checksum(new), new.id)).fetchall()
    connection.execute(FORGET).fetchall()
    columns = list(_texts(connection))
    is_in_key = any(
        connection.execute(
            f'SELECT 1 FROM "{column.table}" WHERE instr("{column.name}", ?) LIMIT 1',  # noqa: S608 - names
            (value,),
        ).fetchone()
        for column in columns
        if column.is_key
    )
    hidden = f"{HIDDEN}{number}*" if is_in_key else HIDDEN
    is_ours = _may_be_ours(value)
    query = "SELECT id FROM sessions WHERE instr(id, ?)"  # the log keeps them
    kept = {row[0] for row in connection.execute(query, (value,))}
    kept |= {value} if is_ours else set()

    def change(_: str | int, text: str) -> str:
        return text if text in kept else text.replace(value, hidden)

    def new_text(column: _TextColumn, text: str) -> str:
        if not _is_json(text):
            return change("", text)
        new = text.replace(value, hidden)
        is_readable = _reader(column, text)
        if not kept and _is_json(new) and is_readable(new):
            return new  # the keys in it as well
        return _with_strings(text, change, is_readable)

    return len(found) + _change_tables(connection, columns, new_text, value)


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
    """Masks the texts beside the log, such as titles, but no ids. Returns how many changed."""
    columns = list(_texts(connection))
    ids = _ids(connection, columns)

    def change(place: str | int, text: str) -> str:
        return text if text in ids else _masked_string(place, text, mask)

    def new_text(column: _TextColumn, text: str) -> str:
        if text in ids:
            return text
        if _is_json(text):
            return _with_strings(text, change, _reader(column, text))
        return mask(text)

    others = [column for column in columns if not column.is_key]
    return _change_tables(connection, others, new_text)


def _change_tables(
    connection: apsw.Connection,
    columns: Iterable[_TextColumn],
    new_text: Callable[[_TextColumn, str], str],
    value: str = "",
) -> int:
    """Changes the texts of columns that hold the value. Returns how many changed."""
    changed = 0
    for column in columns:

        def new(text: Any, column: _TextColumn = column) -> Any:
            return new_text(column, text) if isinstance(text, str) else text

        table, name = column.table, column.name
        connection.create_scalar_function("changed", new, 1, deterministic=True)
        connection.execute(
            f'UPDATE "{table}" SET "{name}" = changed("{name}") '  # noqa: S608 - names
            f'WHERE instr("{name}", ?) AND changed("{name}") != "{name}"',
            (value,),
        ).fetchall()
        changed += connection.changes()
    return changed


def _ids(connection: apsw.Connection, columns: Iterable[_TextColumn]) -> set[str]:
    """Returns what stands in keys, which other tables refer to."""
    found: set[str] = set()
    for column in columns:
        if column.is_key:
            query = f'SELECT DISTINCT "{column.name}" FROM "{column.table}"'  # noqa: S608 - names
            found.update(row[0] for row in connection.execute(query))
    return found


def _masked_string(place: str | int, text: str, mask: Mask) -> str:
    """Masks a string in JSON, also if only its key says that it is a secret."""
    new = mask(text)
    if new != text or isinstance(place, int):
        return new
    pair = mask(msgspec.json.encode({place: text}).decode())
    try:
        return msgspec.json.decode(pair, type=dict[str, str]).get(place, text)
    except msgspec.DecodeError:
        return text


def _is_json(text: str) -> bool:
    """Returns whether a text is a JSON object or list."""
    if not text.lstrip().startswith(("{", "[")):
        return False
    try:
        return isinstance(msgspec.json.decode(text), (dict, list))
    except (msgspec.DecodeError, RecursionError):
        return False


def _reader(column: _TextColumn, text: str) -> Callable[[str], bool]:
    """Returns a function that tells whether a new text can be read wherever the old one can."""
    kind = _TYPES.get((column.table, column.name))

    def can_be_read(new: str) -> bool:
        try:
            msgspec.json.decode(new, type=kind)
        except msgspec.DecodeError:
            return False
        return True

    if kind is None or not can_be_read(text):
        return lambda _: True
    return can_be_read


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

    def is_readable(data: str) -> bool:
        return row._replace(data=data).event is not None or row.event is None

    new = _with_strings(row.data, lambda _, text: change(text), is_readable)
    return row if new is row.data else row._replace(data=new)


def _with_strings(
    text: str, change: _Change, is_readable: Callable[[str], bool]
) -> str:
    """Returns JSON with its strings changed, except those without which it can't be read; itself if none changed."""
    data = msgspec.json.decode(text)
    new = text
    for holder, place in _strings(data):
        old = holder[place]
        holder[place] = change(place, old)
        if holder[place] == old:
            continue
        changed = msgspec.json.encode(data).decode()
        if is_readable(changed):
            new = changed
        else:
            holder[place] = old
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


def _texts(connection: apsw.Connection) -> Iterator[_TextColumn]:
    """Returns the text columns, except those of the log, its frames and the index."""
    tables = connection.execute(
        "SELECT name FROM sqlite_schema WHERE type = 'table'"
    ).fetchall()
    for (table,) in tables:
        if table in {"events", "frames"} or table.startswith(("search", "sqlite_")):
            continue
        keys = _key_columns(connection, table)
        for row in connection.execute(f'PRAGMA table_info("{table}")').fetchall():
            if row[2] == "TEXT":
                yield _TextColumn(table, row[1], row[1] in keys)


def _key_columns(connection: apsw.Connection, table: str) -> set[str]:
    """Returns the columns in the primary key and the unique indexes of a table."""
    query = "SELECT name FROM pragma_table_info(?1) WHERE pk UNION SELECT info.name"
    query += ' FROM pragma_index_list(?1) AS list, pragma_index_info(list.name) AS info WHERE list."unique"'
    return {name for (name,) in connection.execute(query, (table,))}

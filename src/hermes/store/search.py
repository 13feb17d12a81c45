"""Full-text search over messages, newest first. The index follows the log and is always complete when it is asked."""

import re
from collections.abc import Callable, Iterator
from itertools import islice
from typing import TypeVar

import apsw
import msgspec

from hermes.errors import StoreError
from hermes.store.connection import log, only_the_index
from hermes.store.database import Database
from hermes.store.row import STORED, Row, checked
from hermes.store.words import match_expression, split

T = TypeVar("T")

_STEP = 500  # messages indexed in one transaction
_STEP_CHARACTERS = 512 * 1024  # or that much text, so that nobody waits long for that transaction
_LONGEST_QUERY = 1000  # characters
_SNIPPET = 160  # characters

_BACKLOG = """
SELECT id, CAST(data AS BLOB) FROM events
WHERE role IS NOT NULL AND id > (SELECT indexed FROM search_progress) ORDER BY id LIMIT ?
"""
_FIND = f"""
SELECT {STORED}, (SELECT title FROM sessions WHERE sessions.id = session)
FROM search CROSS JOIN events ON events.id = search.rowid
WHERE search MATCH :words {{}} ORDER BY search.rowid DESC LIMIT :limit
"""  # noqa: S608 - our own names
# A session's rows lie between its first and its last, so the index need not be looked at elsewhere.
_IN_SESSION = """
AND events.session = :session
AND search.rowid >= (SELECT id FROM events WHERE session = :session ORDER BY seq LIMIT 1)
AND search.rowid <= (SELECT id FROM events WHERE session = :session ORDER BY seq DESC LIMIT 1)
"""
_FIND_ANYWHERE, _FIND_IN_SESSION = _FIND.format(""), _FIND.format(_IN_SESSION)


class _Call(msgspec.Struct):
    name: str = ""
    arguments: str = ""


class _Text(msgspec.Struct):
    """What of a message can be found."""

    text: str = ""
    tool_calls: list[_Call] = []


_decode = msgspec.json.Decoder(_Text).decode


class Hit(msgspec.Struct, frozen=True):
    """A message that was found, with the place in it."""

    session: str
    seq: int
    ts: float
    role: str
    title: str
    snippet: str


class Search:
    """Finds messages in all sessions of one database."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def find(self, query: str, *, session: str = "", limit: int = 20) -> list[Hit]:
        """Messages that hold all the words; those that only hold words beginning so fill up the rest."""
        if len(query) > _LONGEST_QUERY:
            hint = f"Up to {_LONGEST_QUERY} characters are possible."
            raise StoreError("the search text is too long", hint=hint)
        exact, loose = match_expression(query, prefix=False), match_expression(query, prefix=True)
        if not exact:
            raise StoreError("nothing to search for", hint="Give at least one word (letters or digits).")
        self.catch_up()
        found = self._matching(exact, session, limit)
        if len(found) < limit and loose != exact:
            found |= {row: title for row, title in self._matching(loose, session, limit).items() if row not in found}
        return [
            Hit(row.session, row.seq, row.ts, row.role or "", title, snippet(_searchable(row.data), query))
            for row, title in islice(found.items(), limit)
        ]

    def catch_up(self) -> None:
        """Indexes what was written since, here or by another process; not where nothing can be written."""
        if self._db.read_only:
            return
        pending = "SELECT 1 FROM events WHERE role IS NOT NULL AND id > (SELECT indexed FROM search_progress) LIMIT 1"
        if self._db.read(lambda connection: connection.execute(pending).get) is None:
            return
        while write_indexed(self._db, index_step):
            pass

    def _matching(self, expression: str, session: str, limit: int) -> dict[Row, str]:
        """Rows that match, in order, each with the title of its session."""
        statement = _FIND_IN_SESSION if session else _FIND_ANYWHERE
        values = {"words": expression, "session": session, "limit": limit}

        def job(connection: apsw.Connection) -> dict[Row, str]:
            found = connection.execute(statement, values).fetchall()
            return dict(zip(checked(row[:-1] for row in found), (row[-1] or "" for row in found), strict=True))

        try:
            return self._db.look(job)
        except StoreError as error:
            _reset_if_damaged(self._db, error)
        self.catch_up()
        return self._db.look(job)


def write_indexed(database: Database, job: Callable[[apsw.Connection], T]) -> T:
    """Writes what touches the index; one that turns out to be damaged is emptied first."""
    try:
        return database.write(job)
    except StoreError as error:
        _reset_if_damaged(database, error)
    return database.write(job)


def index_step(connection: apsw.Connection) -> bool:
    """Indexes the next messages, in the caller's transaction; True while there are more."""
    last = messages = characters = 0
    for row_id, data in connection.execute(_BACKLOG, (_STEP,)):
        words, names = split(_searchable(data))
        values = (row_id, " ".join(words), " ".join(names))
        connection.execute("INSERT INTO search (rowid, words, names) VALUES (?, ?, ?)", values)
        last, messages, characters = row_id, messages + 1, characters + len(data)
        if characters > _STEP_CHARACTERS:
            break
    if last:
        connection.execute("UPDATE search_progress SET indexed = ?", (last,))
    return messages == _STEP or characters > _STEP_CHARACTERS


def forget(connection: apsw.Connection, session: str) -> None:
    """Takes a session's messages out of the index."""
    rows = (
        "SELECT id FROM events WHERE session = ? AND role IS NOT NULL AND id <= (SELECT indexed FROM search_progress)"
    )
    connection.execute(f"DELETE FROM search WHERE rowid IN ({rows})", (session,))  # noqa: S608 - our own text


def snippet(text: str, query: str) -> str:
    """A line of the text around the first word that was asked for."""
    words = [re.escape(word) for word in re.findall(r"\w+", query)]
    found = re.search("|".join(words), text, re.IGNORECASE) if words else None
    start = max(0, (found.start() if found else 0) - _SNIPPET // 3)
    cut = text[start : start + _SNIPPET]
    line = " ".join(cut.split())
    return f"{'…' if start else ''}{line}{'…' if start + _SNIPPET < len(text) else ''}"


def _reset_if_damaged(database: Database, error: StoreError) -> None:
    """Empties an index that is damaged, so that it fills again from the log. Raises any other error."""
    if not only_the_index(error.__cause__):
        raise error
    log.warning("the search index was damaged; it is being made anew from the log")
    database.write(_reset)


def _reset(connection: apsw.Connection) -> None:
    connection.execute("INSERT INTO search (search) VALUES ('delete-all')")
    connection.execute("UPDATE search_progress SET indexed = 0")


def _searchable(data: bytes | str) -> str:
    """What of a message can be found; nothing of one that can't be read, which the thorough check reports."""
    try:
        return "\n".join(_parts(_decode(data)))
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ""


def _parts(message: _Text) -> Iterator[str]:
    yield message.text
    for call in message.tool_calls:
        yield f"{call.name} {call.arguments}"

"""Full-text search over messages, newest first. The index follows the log and is always complete when it is asked."""

import re
from collections.abc import Iterator

import apsw
import msgspec

from hermes.errors import StoreError
from hermes.store.database import Database
from hermes.store.words import match_expression, split

_STEP = 500  # messages indexed in one transaction
_SNIPPET = 160  # characters

_BACKLOG = """
SELECT id, data FROM events WHERE role IS NOT NULL AND id > (SELECT indexed FROM search_progress) ORDER BY id LIMIT ?
"""
_FIND = """
SELECT events.session, events.seq, events.ts, events.role, sessions.title, events.data
FROM search CROSS JOIN events ON events.id = search.rowid CROSS JOIN sessions ON sessions.id = events.session
WHERE search MATCH ? AND (? = '' OR events.session = ?) ORDER BY search.rowid DESC LIMIT ?
"""


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
        if not match_expression(query, prefix=False):
            raise StoreError("nothing to search for", hint="Give at least one word (letters or digits).")
        self.catch_up()
        hits = self._matching(query, session, limit, prefix=False)
        if len(hits) < limit:
            known = {(hit.session, hit.seq) for hit in hits}
            more = self._matching(query, session, limit, prefix=True)
            hits += [hit for hit in more if (hit.session, hit.seq) not in known]
        return hits[:limit]

    def catch_up(self) -> None:
        """Indexes what was written since, here or by another process."""
        pending = "SELECT 1 FROM events WHERE role IS NOT NULL AND id > (SELECT indexed FROM search_progress) LIMIT 1"
        if self._db.read(lambda connection: connection.execute(pending).get) is None:
            return
        while self._db.write(index_step):
            pass

    def _matching(self, query: str, session: str, limit: int, *, prefix: bool) -> list[Hit]:
        values = (match_expression(query, prefix=prefix), session, session, limit)
        try:
            rows = self._db.read(lambda connection: connection.execute(_FIND, values).fetchall())
        except StoreError as error:
            if not _only_the_index(error.__cause__):
                raise
            self._db.write(reset)
            self.catch_up()
            rows = self._db.read(lambda connection: connection.execute(_FIND, values).fetchall())
        return [
            Hit(session=found, seq=seq, ts=ts, role=role, title=title, snippet=snippet(_searchable(data), query))
            for found, seq, ts, role, title, data in rows
        ]


def index_step(connection: apsw.Connection) -> bool:
    """Indexes the next messages, in the caller's transaction; True while there are more."""
    try:
        return _index_backlog(connection)
    except apsw.CorruptError as error:
        if not _only_the_index(error):
            raise
        reset(connection)
        return True


def forget(connection: apsw.Connection, session: str) -> None:
    """Takes a session's messages out of the index."""
    rows = (
        "SELECT id FROM events WHERE session = ? AND role IS NOT NULL AND id <= (SELECT indexed FROM search_progress)"
    )
    connection.execute(f"DELETE FROM search WHERE rowid IN ({rows})", (session,))  # noqa: S608 - our own text


def reset(connection: apsw.Connection) -> None:
    """Empties the index; it fills again from the log."""
    connection.execute("INSERT INTO search (search) VALUES ('delete-all')")
    connection.execute("UPDATE search_progress SET indexed = 0")


def snippet(text: str, query: str) -> str:
    """A line of the text around the first word that was asked for."""
    words = [re.escape(word) for word in re.findall(r"\w+", query)]
    found = re.search("|".join(words), text, re.IGNORECASE) if words else None
    start = max(0, (found.start() if found else 0) - _SNIPPET // 3)
    cut = text[start : start + _SNIPPET]
    line = " ".join(cut.split())
    return f"{'…' if start else ''}{line}{'…' if start + _SNIPPET < len(text) else ''}"


def _index_backlog(connection: apsw.Connection) -> bool:
    rows = connection.execute(_BACKLOG, (_STEP,)).fetchall()
    for row_id, data in rows:
        words, names = split(_searchable(data))
        values = (row_id, " ".join(words), " ".join(names))
        connection.execute("INSERT INTO search (rowid, words, names) VALUES (?, ?, ?)", values)
    if rows:
        connection.execute("UPDATE search_progress SET indexed = ?", (rows[-1][0],))
    return len(rows) == _STEP


def _searchable(data: str) -> str:
    return "\n".join(_parts(_decode(data)))


def _parts(message: _Text) -> Iterator[str]:
    yield message.text
    for call in message.tool_calls:
        yield f"{call.name} {call.arguments}"


def _only_the_index(error: BaseException | None) -> bool:
    """Whether SQLite found damage in the search index alone, which can be made anew."""
    return isinstance(error, apsw.CorruptError) and getattr(error, "extendedresult", 0) == apsw.SQLITE_CORRUPT_VTAB

"""Full-text search in SQLite, newest first. The index lags behind the log; newer messages are
searched without it.
"""

import time
from collections.abc import Callable
from typing import TypeVar

import apsw

from hermes.errors import StoreError
from hermes.store.log_row import STORED, Row, checked
from hermes.store.search import MessageHit, require_searchable, searchable, snippet
from hermes.store.sqlite.connection import log, only_the_index
from hermes.store.sqlite.database import Database
from hermes.store.sqlite.unindexed_search import find_unindexed
from hermes.store.tokenizer import match_expression, split

T = TypeVar("T")

_INDEX_BATCH_MESSAGES = 500  # per transaction
_INDEX_BATCH_CHARS = 512 * 1024  # and this much text, to keep that transaction short
CATCH_UP_S = 1.0
"""Seconds that a search spends on updating the index before it searches the rest without it."""

_BACKLOG = """
SELECT id, CAST(data AS BLOB) FROM events
WHERE role IS NOT NULL AND id > (SELECT indexed FROM search_progress) ORDER BY id LIMIT ?
"""
_PENDING = "SELECT 1 FROM events WHERE role IS NOT NULL AND id > (SELECT indexed FROM search_progress) LIMIT 1"
_FIND = f"""
SELECT {STORED} FROM search CROSS JOIN events ON events.id = search.rowid
WHERE search MATCH :words {{}} ORDER BY search.rowid DESC LIMIT :limit
"""  # noqa: S608 - our own names
# A session's rows lie between its first and its last, which bounds the search.
_IN_SESSION = """
AND events.session = :session
AND search.rowid >= (SELECT id FROM events WHERE session = :session ORDER BY seq LIMIT 1)
AND search.rowid <= (SELECT id FROM events WHERE session = :session ORDER BY seq DESC LIMIT 1)
"""
_FIND_ANYWHERE, _FIND_IN_SESSION = _FIND.format(""), _FIND.format(_IN_SESSION)


class MessageSearch:
    """Searches the messages of all sessions of one database."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def find(
        self, query: str, *, session: str = "", limit: int = 20
    ) -> list[MessageHit]:
        """Returns messages with all the words, then those with words that begin with them."""
        require_searchable(query)
        exact, loose = (
            match_expression(query, prefix=False),
            match_expression(query, prefix=True),
        )
        try:
            rows = self._rows(query, (exact, loose), session, limit)
        except StoreError as error:
            _reset_if_damaged(self._db, error)
            rows = self._rows(query, (exact, loose), session, limit)
        return [self._hit(row, query) for row in rows]

    def _rows(
        self, query: str, expressions: tuple[str, str], session: str, limit: int
    ) -> list[Row]:
        """Returns the rows of the first expression, then those of the second, newest first."""
        newer: list[list[Row]] = [[], []]
        if not self.catch_up(CATCH_UP_S):
            with self._db.separate_reader() as connection:
                newer = find_unindexed(connection, query, expressions, session, limit)
        found: dict[Row, None] = {}
        for rows, expression in zip(newer, dict.fromkeys(expressions), strict=False):
            if len(found) < limit:
                found |= dict.fromkeys(
                    [*rows, *self._matching(expression, session, limit)]
                )
        return list(found)[:limit]

    def _hit(self, row: Row, query: str) -> MessageHit:
        titles = self._db.select(
            "SELECT title FROM sessions WHERE id = ?", (row.session,)
        )
        title = str(titles[0][0]) if titles else ""
        return MessageHit(
            row.session,
            row.seq,
            row.ts,
            row.role or "",
            title,
            snippet(searchable(row.data), query),
        )

    def catch_up(self, timeout_s: float = float("inf")) -> bool:
        """Indexes new messages for a limited time. Returns whether the index is complete.

        In a read-only database the index stays as it is.
        """
        if self._db.read_only or not self._db.select(_PENDING):
            return not self._db.read_only
        deadline = time.monotonic() + timeout_s
        while write_indexed(self._db, index_step):
            if time.monotonic() > deadline:
                return False
        return True

    def _matching(self, expression: str, session: str, limit: int) -> list[Row]:
        statement = _FIND_IN_SESSION if session else _FIND_ANYWHERE
        values = {"words": expression, "session": session, "limit": limit}
        return self._db.run_on_reader(
            lambda connection: checked(connection.execute(statement, values))
        )


def write_indexed(database: Database, job: Callable[[apsw.Connection], T]) -> T:
    """Writes to the index. A damaged one is emptied first."""
    try:
        return database.write(job)
    except StoreError as error:
        _reset_if_damaged(database, error)
    return database.write(job)


def index_step(connection: apsw.Connection) -> bool:
    """Indexes the next messages in the caller's transaction. Returns True while there are more."""
    last = messages = characters = 0
    for row_id, data in connection.execute(_BACKLOG, (_INDEX_BATCH_MESSAGES,)):
        words, names = split(searchable(data))
        values = (row_id, " ".join(words), " ".join(names))
        connection.execute(
            "INSERT INTO search (rowid, words, names) VALUES (?, ?, ?)", values
        )
        last, messages, characters = row_id, messages + 1, characters + len(data)
        if characters > _INDEX_BATCH_CHARS:
            break
    if last:
        connection.execute("UPDATE search_progress SET indexed = ?", (last,))
    return messages == _INDEX_BATCH_MESSAGES or characters > _INDEX_BATCH_CHARS


def _reset_if_damaged(database: Database, error: StoreError) -> None:
    """Empties a damaged index, so that it is rebuilt from the log. Raises any other error."""
    # The statements here have no constraints that could fail.
    if not only_the_index(error.__cause__) and not isinstance(
        error.__cause__, apsw.ConstraintError
    ):
        raise error
    log.warning("the search index was damaged; it is being rebuilt from the log")
    database.write(_reset)


def _reset(connection: apsw.Connection) -> None:
    connection.execute("INSERT INTO search (search) VALUES ('delete-all')")
    connection.execute("UPDATE search_progress SET indexed = 0")

"""Checks that no session has an unreported missing row."""

from collections.abc import Iterator

import msgspec

from hermes.schema.events import SessionRecovered
from hermes.store.sql import SqlConnection
from hermes.text.translation import translator

t = translator(__name__)


def bad_sequences(connection: SqlConnection) -> list[str]:
    """Returns sessions whose rows have unexplained holes, and rows without a session."""
    return [*_holes(connection), *_orphans(connection)]


def _holes(connection: SqlConnection) -> Iterator[str]:
    query = """
    SELECT sessions.id, sessions.head, count(events.id), coalesce(max(events.seq), 0)
    FROM sessions LEFT JOIN events ON events.session = sessions.id GROUP BY sessions.id
    """
    for session, head, rows, last in connection.execute(query).fetchall():
        missing = head - rows - _known_lost(connection, session)
        if head != last or missing > 0:
            yield t.logged(
                "session {session}: {rows} rows, the last is {last} but should be {head}; {missing} missing",
                session=session,
                rows=rows,
                last=last,
                head=head,
                missing=missing,
            )


def _orphans(connection: SqlConnection) -> Iterator[str]:
    query = "SELECT DISTINCT session FROM events WHERE session NOT IN (SELECT id FROM sessions)"
    for (session,) in connection.execute(query):
        yield t.logged("session {session}: has rows but is not listed", session=session)


def _known_lost(connection: SqlConnection, session: str) -> int:
    """Returns the number of rows that recoveries reported as missing."""
    query = "SELECT data FROM events WHERE session = ? AND type = ?"
    notes = connection.execute(query, (session, SessionRecovered.topic)).fetchall()
    return max(
        (msgspec.json.decode(data, type=SessionRecovered).lost for (data,) in notes),
        default=0,
    )

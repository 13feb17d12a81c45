"""The full check: every page, checksum, sequence and projection."""

from collections.abc import Iterator

import apsw
import msgspec

from hermes.schema.events import SessionRecovered
from hermes.store import shared_text
from hermes.store.log_row import Row, is_whole

# Text as bytes, which are read also when they are no longer text.
_TEXTS = ("session", "type", "role", "turn", "data")
_COLUMNS = ", ".join(
    f"CAST({name} AS BLOB)" if name in _TEXTS else name for name in Row._fields
)
_ROWS = f"SELECT {_COLUMNS}, crc, CAST({shared_text.TEXT} AS BLOB) FROM events"  # noqa: S608 - our own names


class IntegrityReport(msgspec.Struct, frozen=True):
    """What was checked, and the problems found."""

    sessions: int
    rows: int
    problems: list[str]


def check(connection: apsw.Connection) -> IntegrityReport:
    """Checks everything; changes nothing."""
    try:
        check_pages(connection, indexes=True)
    except apsw.CorruptError as error:
        return IntegrityReport(0, 0, [f"damaged page: {error}"])
    sessions = connection.execute("SELECT count(*) FROM sessions").get
    rows = connection.execute("SELECT count(*) FROM events").get
    return IntegrityReport(
        int(sessions), int(rows), [*_bad_rows(connection), *_bad_sequences(connection)]
    )


def check_pages(connection: apsw.Connection, *, indexes: bool = False) -> None:
    """Reads every page; with `indexes`, their entries too. Raises apsw.CorruptError naming the
    first fault.
    """
    verdict = connection.execute(
        "PRAGMA integrity_check(1)" if indexes else "PRAGMA quick_check(1)"
    ).get
    if verdict != "ok":
        raise apsw.CorruptError(str(verdict))


def _bad_rows(connection: apsw.Connection) -> Iterator[str]:
    for (
        number,
        session,
        seq,
        epoch,
        ts,
        kind,
        role,
        turn,
        inner,
        crc,
        frame,
    ) in connection.execute(_ROWS):
        data = (
            _text(inner)
            if frame is None
            else shared_text.full_text(_text(frame), _text(inner))
        )
        row = Row(
            number,
            _text(session),
            seq,
            epoch,
            ts,
            _text(kind),
            role and _text(role),
            _text(turn),
            data,
        )
        if not is_whole(row, crc):
            yield f"session {row.session}, row {row.seq}: the content does not match its checksum"


def _text(value: bytes) -> str:
    return value.decode(errors="replace")


def _bad_sequences(connection: apsw.Connection) -> Iterator[str]:
    query = """
    SELECT sessions.id, sessions.head, count(events.id), coalesce(max(events.seq), 0)
    FROM sessions LEFT JOIN events ON events.session = sessions.id GROUP BY sessions.id
    """
    for session, head, rows, last in connection.execute(query).fetchall():
        missing = head - rows - _known_lost(connection, session)
        if head != last or missing > 0:
            yield f"session {session}: {rows} rows, the last is {last} but should be {head}; {missing} missing"
    orphans = "SELECT DISTINCT session FROM events WHERE session NOT IN (SELECT id FROM sessions)"
    for (session,) in connection.execute(orphans):
        yield f"session {session}: has rows but is not listed"


def _known_lost(connection: apsw.Connection, session: str) -> int:
    """Returns the number of rows that recoveries reported as missing."""
    query = "SELECT data FROM events WHERE session = ? AND type = ?"
    notes = connection.execute(query, (session, SessionRecovered.topic)).fetchall()
    return max(
        (msgspec.json.decode(data, type=SessionRecovered).lost for (data,) in notes),
        default=0,
    )

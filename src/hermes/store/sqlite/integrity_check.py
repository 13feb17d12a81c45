"""The full check: every page, checksum, sequence and projection."""

from collections.abc import Iterator

import apsw

from hermes.store import shared_text
from hermes.store.log_row import Row, damaged
from hermes.store.sequence_check import bad_sequences
from hermes.store.store import IntegrityReport
from hermes.text.translation import translator

t = translator(__name__)


# Text as bytes, which can be read even if they are not valid text.
_TEXTS = ("session", "type", "turn", "data")
_AS_BYTES = {name: f"CAST({name} AS BLOB)" for name in _TEXTS}
_AS_BYTES["role"] = "CAST(coalesce(role, '') AS BLOB)"
_COLUMNS = ", ".join(_AS_BYTES.get(name, name) for name in Row._fields)
_ROWS = f"SELECT {_COLUMNS}, crc, CAST({shared_text.TEXT} AS BLOB) FROM events"  # noqa: S608 - our own names


def check(connection: apsw.Connection) -> IntegrityReport:
    """Checks everything; changes nothing."""
    try:
        check_pages(connection, indexes=True)
    except apsw.CorruptError as error:
        return IntegrityReport(0, 0, [f"damaged page: {error}"])
    sessions = connection.execute("SELECT count(*) FROM sessions").get
    rows = connection.execute("SELECT count(*) FROM events").get
    return IntegrityReport(
        int(sessions), int(rows), [*_bad_rows(connection), *bad_sequences(connection)]
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
    for row in damaged(connection.execute(_ROWS)):
        yield t.logged(
            "session {session}, row {seq}: the content does not match its checksum",
            session=row.session,
            seq=row.seq,
        )

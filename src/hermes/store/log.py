"""The log: one append-only sequence of events per session. What `append` returned is on disk."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from typing import Any

import apsw
import msgspec

from hermes.core.ports import Clock
from hermes.errors import SessionNotFound, StoreError
from hermes.schema.event import Event
from hermes.schema.events import SessionCreated
from hermes.schema.messages import MESSAGES, Message
from hermes.store.database import Database
from hermes.store.leases import Lease, require
from hermes.store.projection import project
from hermes.store.row import COLUMNS, Draft, Row, checksum, draft

_INSERT = f"INSERT INTO events ({COLUMNS}, crc) VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608 - our own names
_PAGE = f"SELECT {COLUMNS} FROM events WHERE session = ? AND seq > ? ORDER BY seq LIMIT ?"  # noqa: S608 - our own names
_MESSAGES = "SELECT type, data FROM events WHERE session = ? AND role IS NOT NULL AND seq > ? ORDER BY seq"

_decoders: dict[str, Callable[[str], Any]] = {cls.topic: msgspec.json.Decoder(cls).decode for cls in MESSAGES}


class SessionLog:
    """Appends to and reads from the sessions of one database."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._db = database
        self._clock = clock

    def create(self, session: str, created: SessionCreated) -> Row:
        """Begins a session; its first row says so. A name that exists is an error."""
        entry = draft(created)

        def job(connection: apsw.Connection) -> Row:
            if _head(connection, session) is not None:
                raise StoreError(f"session {session} exists already")
            now = self._clock.now()
            return write_row(connection, Row(0, session, 1, new_epoch(now), now, *entry[:2], "", entry.data), created)

        return self._db.write(job)

    def append(self, session: str, *events: Event, turn: str = "", lease: Lease | None = None) -> tuple[Row, ...]:
        """Writes the events in order, all or none, and returns once they are on disk.

        With a lease, nothing is written unless that lease still holds.
        """
        return self._db.write(self._appending(session, events, turn, lease))

    def submit(
        self, session: str, *events: Event, turn: str = "", lease: Lease | None = None
    ) -> "Future[tuple[Row, ...]]":
        """As `append`, without waiting: the future resolves once the rows are on disk."""
        return self._db.submit(self._appending(session, events, turn, lease))

    def _appending(
        self, session: str, events: Sequence[Event], turn: str, lease: Lease | None
    ) -> Callable[[apsw.Connection], tuple[Row, ...]]:
        entries = [(draft(event), event) for event in events]

        def job(connection: apsw.Connection) -> tuple[Row, ...]:
            if lease is not None:
                require(connection, lease)
            head, epoch = head_of(connection, session)
            now = self._clock.now()
            return tuple(
                write_row(connection, Row(0, session, seq, epoch, now, *entry[:2], turn, entry.data), event)
                for seq, (entry, event) in enumerate(entries, head + 1)
            )

        return job

    def events(self, session: str, *, after: int = 0, limit: int = 1000) -> list[Row]:
        """Up to `limit` rows after the given seq, in order."""

        def job(connection: apsw.Connection) -> list[Row]:
            head_of(connection, session)
            return [Row(*columns) for columns in connection.execute(_PAGE, (session, after, limit))]

        return self._db.read(job)

    def every_event(self, session: str) -> Iterator[Row]:
        """All rows of a session, in pages, so that memory stays flat."""
        after = 0
        while page := self.events(session, after=after):
            yield from page
            after = page[-1].seq

    def messages(self, session: str, *, after: int = 0) -> list[Message]:
        """What was said, in order: the whole of it, whatever was compacted since."""

        def job(connection: apsw.Connection) -> list[tuple[str, str]]:
            head_of(connection, session)
            return connection.execute(_MESSAGES, (session, after)).fetchall()

        return [_decoders[kind](data) for kind, data in self._db.read(job)]

    def branch(self, session: str, new: str, *, at: int | None = None, surface: str = "") -> Row:
        """Begins `new` with a copy of the rows of `session` up to `at` (default: all); the parent is unchanged."""

        def job(connection: apsw.Connection) -> Row:
            head, _ = head_of(connection, session)
            last = head if at is None else at
            if not 1 <= last <= head:
                raise StoreError(f"session {session} has rows 1 to {head}, not {last}")
            if _head(connection, new) is not None:
                raise StoreError(f"session {new} exists already")
            root, cwd = connection.execute("SELECT root, cwd FROM sessions WHERE id = ?", (session,)).get
            created = SessionCreated(
                kind="branch", parent=session, parent_seq=last, root=root, surface=surface, cwd=cwd
            )
            entry = draft(created)
            now = self._clock.now()
            first = write_row(connection, Row(0, new, 1, new_epoch(now), now, *entry[:2], "", entry.data), created)
            copy_rows(connection, session, first, last)
            connection.execute("UPDATE sessions SET updated = ? WHERE id = ?", (now, new))
            return first

        return self._db.write(job)


def new_epoch(now: float) -> int:
    """A number no earlier incarnation of the session had: milliseconds of its beginning."""
    return int(now * 1000)


def head_of(connection: apsw.Connection, session: str) -> tuple[int, int]:
    """Last seq and epoch of a session that must exist."""
    found = _head(connection, session)
    if found is None:
        raise SessionNotFound(f"there is no session {session}", hint="`hermes sessions list` shows what there is.")
    return found


def write_row(connection: apsw.Connection, row: Row, event: Event | None) -> Row:
    """Inserts a row and folds it into the projections; the row comes back with its id."""
    entry = Draft(row.type, row.role, row.data)
    crc = checksum(row.session, row.seq, row.epoch, entry, row.turn)
    connection.execute(_INSERT, (*row[1:], crc))
    project(connection, row, event)
    return row._replace(id=connection.last_insert_rowid())


def copy_rows(connection: apsw.Connection, source: str, first: Row, last: int) -> None:
    """Copies rows 2 to `last` of `source` behind `first`, keeping their seq and time."""
    rows = connection.execute(_PAGE, (source, 1, last - 1)).fetchall()
    for columns in rows:
        row = Row(*columns)._replace(session=first.session, epoch=first.epoch)
        write_row(connection, row, row.event)


def _head(connection: apsw.Connection, session: str) -> tuple[int, int] | None:
    return connection.execute("SELECT head, epoch FROM sessions WHERE id = ?", (session,)).fetchone()

"""Exports and imports sessions as JSON lines: a header, then one event per line (see docs/events.md).

Also writes the optional JSON copies of sessions, for people and scripts that read files. The database stays
authoritative.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any

import msgspec

from hermes.core.ports import Clock
from hermes.errors import ImportRejected, StoreError
from hermes.primitives.files import (
    PRIVATE_FILE,
    make_private_folder,
    replace_file,
)
from hermes.schema.catalogue import CATALOGUE
from hermes.schema.event_base import ENVELOPE_FIELDS, Event
from hermes.schema.events import SessionCreated, SessionImported, SessionRecovered
from hermes.store.log_row import MAX_EVENT_BYTES, Row, draft
from hermes.store.ports import SqlDatabase
from hermes.store.session_log import SessionLog, new_epoch, require_free, write_row
from hermes.store.sql import SqlConnection
from hermes.store.store import Store
from hermes.text.translation import Later, translator

t = translator(__name__)


FORMAT = "hermes-session"
EXPORT_VERSION = 1

_FIT = r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}"
_MAX_SOURCE_ID_CHARS = 200  # of the id in the file

_encode = msgspec.json.Encoder().encode


class ExportHeader(msgspec.Struct, tag_field="format", tag=FORMAT):
    """The first line of an exported session."""

    version: int
    session_id: str


class ExportLine(msgspec.Struct):
    """The envelope part of every other line."""

    type: str
    ts: Annotated[float, msgspec.Meta(ge=0, le=253402300799)]  # until the year 9999
    seq: Annotated[int, msgspec.Meta(ge=1, le=2**53)]
    turn_id: str = ""


class Imported(msgspec.Struct, frozen=True):
    """The result of an import, with the session's id."""

    session: str
    rows: int
    source: str = ""  # the id in the file, if the session got another


class SessionTransfer:
    """Exports from and imports into one database."""

    def __init__(self, database: SqlDatabase, log: SessionLog, clock: Clock) -> None:
        self._db = database
        self._log = log
        self._clock = clock

    def export(self, session: str) -> Iterator[str]:
        """Yields the session as lines of JSON, without newlines."""
        first = self._log.events(session, limit=1)
        yield _encode(
            ExportHeader(version=EXPORT_VERSION, session_id=first[0].session)
        ).decode()
        for row in self._log.every_event(session):
            yield _encode(row.as_written()).decode()

    def import_lines(self, lines: Iterable[str], *, fresh_id: str) -> Imported:
        """Imports one session, all or nothing. It gets `fresh_id` if its id is taken or not valid here."""
        numbered = (
            (number, line) for number, line in enumerate(lines, 1) if line.strip()
        )
        header = _header(next(numbered, (1, "")))
        source = header.session_id[:_MAX_SOURCE_ID_CHARS]
        rows = list(_rows(numbered))
        if not rows:
            raise ImportRejected(
                t.later("the file holds no events"),
                hint=t.later("Nothing was imported."),
            )

        def job(connection: SqlConnection) -> Imported:
            session = header.session_id if _is_fit(header.session_id) else fresh_id
            if connection.execute(
                "SELECT 1 FROM sessions WHERE id = ?", (session,)
            ).get:
                session = fresh_id
            require_free(connection, session)
            now = self._clock.now()
            epoch = new_epoch(now)
            for row, event in rows:
                placed = row._replace(session=session, epoch=epoch)
                write_row(self._db.insert_row, connection, placed, event)
            note = SessionImported(source=source, rows=len(rows))
            entry = draft(note)
            last = Row(
                0,
                session,
                rows[-1][0].seq + 1,
                epoch,
                now,
                entry.type,
                entry.role,
                "",
                entry.data,
            )
            write_row(self._db.insert_row, connection, last, note)
            return Imported(session, len(rows), source)

        return self._db.write(job)


def _header(first: tuple[int, str]) -> ExportHeader:
    number, line = first
    try:
        header = msgspec.json.decode(line, type=ExportHeader)
    except msgspec.MsgspecError as error:
        raise _rejected(
            number, t.later("this is not the beginning of an exported session")
        ) from error
    if header.version > EXPORT_VERSION:
        raise _rejected(
            number,
            t.later(
                "the file has version {version}; this Hermes reads up to {export_version}",
                version=header.version,
                export_version=EXPORT_VERSION,
            ),
        )
    return header


def _is_fit(session: str) -> bool:
    """Returns whether a file's id is valid here: it is typed, shown and used in file names, and
    `last` is reserved.
    """
    return session != "last" and re.fullmatch(_FIT, session) is not None


def _rows(numbered: Iterable[tuple[int, str]]) -> Iterator[tuple[Row, Event | None]]:
    """Yields the events in order. Rows may only be missing where a recovery reported it."""
    seq = count = lost = number = 0
    for number, line in numbered:
        if len(line) > MAX_EVENT_BYTES:
            raise _rejected(number, t.later("the line is too long"))
        row, event = _parse(number, line)
        if row.seq <= seq:
            raise _rejected(number, f"seq {row.seq} comes after {seq}")
        if (seq == 0) != isinstance(event, SessionCreated) or (
            seq == 0 and row.seq != 1
        ):
            raise _rejected(
                number,
                t.later(
                    "a session begins with session.created, seq 1, and has it only once"
                ),
            )
        if isinstance(event, SessionRecovered):
            lost = max(lost, event.lost)
        seq, count = row.seq, count + 1
        yield row, event
    if seq - count > lost:
        raise _rejected(
            number,
            t.later(
                "of the {seq} rows up to here, {missing} are missing",
                seq=seq,
                missing=seq - count - lost,
            ),
        )


def _parse(number: int, line: str) -> tuple[Row, Event | None]:
    try:
        place = msgspec.json.decode(line, type=ExportLine)
        fields: dict[str, Any] = {
            name: value
            for name, value in msgspec.json.decode(line).items()
            if name not in ENVELOPE_FIELDS
        }
        cls = CATALOGUE.get(place.type)
        event = msgspec.convert(fields, cls) if cls else None
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise _rejected(number, str(error)) from error
    if cls and not cls.durable:
        raise _rejected(
            number, t.later("{type} is not an event of a log", type=place.type)
        )
    role = cls.role if cls else None
    data = _encode(fields).decode()
    return Row(
        0, "", place.seq, 0, place.ts, place.type, role, place.turn_id, data
    ), event


def _rejected(number: int, what: str | Later) -> ImportRejected:
    return ImportRejected(
        t.later("line {number}: {what}", number=number, what=what),
        hint=t.later("Nothing was imported."),
    )


def event_document(store: Store, session: str) -> Any:
    """Returns a session as its events."""
    info = store.sessions.find(session)
    events = [row.envelope() for row in store.log.every_event(session)]
    return {"session": info, "events": events}


def write_snapshot(
    store: Store,
    session: str,
    folder: Path,
    document_of: Callable[[Store, str], Any] = event_document,
) -> Path:
    """Writes `session_<id>.json` atomically. A file with more messages or events, as before an undo, stays as it is."""
    if "/" in session:
        raise StoreError(
            t.later("session {session!r} can't be exported to a file", session=session),
            hint=t.later("Its id is not a file name."),
        )
    content = msgspec.json.encode(document_of(store, session))
    target = make_private_folder(folder) / f"session_{session}.json"
    if _is_longer(target, content):
        return target
    replace_file(
        target, msgspec.json.format(content, indent=2), mode=PRIVATE_FILE, alone=False
    )
    return target


class _SnapshotRows(msgspec.Struct):
    """What a JSON copy holds, in either format."""

    messages: list[msgspec.Raw] = []
    events: list[msgspec.Raw] = []


def _is_longer(target: Path, content: bytes) -> bool:
    """Whether the copy that is there has more rows than the new one."""
    try:
        old = msgspec.json.decode(target.read_bytes(), type=_SnapshotRows)
    except (OSError, ValueError):  # there is none, or it is no copy of ours
        return False
    new = msgspec.json.decode(content, type=_SnapshotRows)
    if bool(old.events) != bool(new.events):  # the format was changed
        return False
    return len(old.messages) > len(new.messages) or len(old.events) > len(new.events)

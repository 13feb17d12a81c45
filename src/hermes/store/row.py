"""A row of the log: an event with its place `(session, epoch, seq)`, as stored and as an envelope."""

import zlib
from collections.abc import Iterable
from typing import Any, NamedTuple

import apsw
import msgspec

from hermes.errors import StoreError
from hermes.schema.catalogue import CATALOGUE
from hermes.schema.event import Event, complete
from hermes.store import frames

MAX_EVENT_BYTES = 32 * 1024 * 1024

_encode = msgspec.json.Encoder().encode
_decoders = {topic: msgspec.json.Decoder(cls) for topic, cls in CATALOGUE.items()}
_plain = msgspec.json.Decoder(dict[str, Any])


class Draft(NamedTuple):
    """An event made ready to be written: checked and encoded, without a place yet."""

    type: str
    role: str | None
    data: str


class Row(NamedTuple):
    """A written event. `data` is the event's fields as JSON text."""

    id: int
    session: str
    seq: int
    epoch: int
    ts: float
    type: str
    role: str | None
    turn: str
    data: str

    @property
    def event(self) -> Event | None:
        """The typed event; None when this Hermes can't read it: a newer one has added or changed it."""
        decoder = _decoders.get(self.type)
        try:
            return decoder.decode(self.data) if decoder else None
        except msgspec.DecodeError:
            return None

    def envelope(self) -> dict[str, Any]:
        """The event as every feed shows it: all its fields at top level, with type, time and cursor."""
        kind = CATALOGUE.get(self.type)  # None for what a newer Hermes wrote
        fields = _plain.decode(self.data)
        return self._place() | (complete(kind, fields) if kind else fields)

    def as_written(self) -> dict[str, Any]:
        """The same with only those fields that are in the log: the others are at their default."""
        return self._place() | _plain.decode(self.data)

    def _place(self) -> dict[str, Any]:
        place = {"type": self.type, "ts": self.ts, "session_id": self.session, "turn_id": self.turn}
        return place | {"epoch": self.epoch, "seq": self.seq}


COLUMNS = ", ".join(Row._fields)

STORED = f"{COLUMNS}, crc, {frames.TEXT}"
"""What a query selects for `checked`."""


def checked(stored: Iterable[tuple[Any, ...]]) -> list[Row]:
    """Rows of the log from `STORED` columns. Raises apsw.CorruptError when one is not what was written."""
    rows: list[Row] = []
    for number, session, seq, epoch, ts, kind, role, turn, inner, crc, frame in stored:
        data = inner if frame is None else frames.set_in(frame, inner)
        # As `checksum`, in one step: this is done for every row that is read.
        written = f"{session}\0{seq}\0{epoch}\0{ts!r}\0{kind}\0{role or ''}\0{turn}\0{data}"
        if zlib.crc32(written.encode()) != crc:
            raise apsw.CorruptError(f"session {session}, row {seq}: the content does not match its checksum")
        rows.append(Row(number, session, seq, epoch, ts, kind, role, turn, data))
    return rows


def draft(event: Event) -> Draft:
    """Encodes an event for the log. Raises before anything is written."""
    cls = type(event)
    if not cls.durable or cls.topic not in CATALOGUE:
        raise StoreError(f"{cls.__name__} is not an event of the log")
    try:
        data = _encode(event)
    except UnicodeEncodeError as error:
        hint = "Replace it before saving; half a surrogate pair is not a character."
        raise StoreError(f"not saved: text with an invalid character ({cls.topic})", hint=hint) from error
    if len(data) > MAX_EVENT_BYTES:
        raise StoreError(
            f"not saved: an event of {len(data):,} bytes ({cls.topic}); the limit is {MAX_EVENT_BYTES:,}",
            hint="Put the content into a file and refer to it.",
        )
    return Draft(cls.topic, cls.role, data.decode())


def checksum(row: Row) -> int:
    """Tells a row that was read from a row that was written, whatever happened to the pages in between."""
    head = f"{row.session}\0{row.seq}\0{row.epoch}\0{float(row.ts)!r}\0{row.type}\0{row.role or ''}\0{row.turn}\0"
    return zlib.crc32(row.data.encode(), zlib.crc32(head.encode()))

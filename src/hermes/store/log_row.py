"""A row of the log: an event with its position `(session, epoch, seq)`, as stored and as an envelope."""

import struct
import zlib
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgspec

from hermes.errors import StoreError
from hermes.schema.catalogue import CATALOGUE
from hermes.schema.event_base import Event, complete
from hermes.store import shared_text

MAX_EVENT_BYTES = 32 * 1024 * 1024

_FRAMES_SINCE_VERSION = (
    1 << 32
)  # set in current checksums, which are faster than the earlier ones
_PLACE = struct.Struct("<qqd").pack

_encode = msgspec.json.Encoder().encode
_decoders = {topic: msgspec.json.Decoder(cls) for topic, cls in CATALOGUE.items()}
_plain = msgspec.json.Decoder(dict[str, Any])


class DamagedRow(Exception):
    """A row that is not what was written, or that can't be read."""


class EncodedEvent(NamedTuple):
    """An event ready to be written: validated and encoded, without a position yet."""

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
        """The typed event; None if this Hermes can't read it because a newer one added or changed it."""
        decoder = _decoders.get(self.type)
        try:
            return decoder.decode(self.data) if decoder else None
        except msgspec.DecodeError:
            return None

    def envelope(self) -> dict[str, Any]:
        """Returns the event as every feed shows it: all fields at top level, with type, time and cursor."""
        kind = CATALOGUE.get(self.type)  # None for a newer Hermes' event
        fields = _plain.decode(self.data)
        return self._place() | (complete(kind, fields) if kind else fields)

    def as_written(self) -> dict[str, Any]:
        """Returns the envelope with only the fields in the log, without defaults."""
        return self._place() | _plain.decode(self.data)

    def _place(self) -> dict[str, Any]:
        place = {
            "type": self.type,
            "ts": self.ts,
            "session_id": self.session,
            "turn_id": self.turn,
        }
        return place | {"epoch": self.epoch, "seq": self.seq}


COLUMNS = ", ".join(Row._fields)

STORED = f"{COLUMNS}, crc, {shared_text.TEXT}"
"""The columns a query selects for `checked`."""


MESSAGE_COLUMNS = "type, role, turn, seq, epoch, ts, crc, CAST(data AS BLOB)"
"""The columns a query selects for `checked_messages`."""


def checked_messages(
    session: str, stored: Iterable[tuple[Any, ...]]
) -> Iterator[tuple[str, bytes]]:
    """Yields type and JSON of each message. Raises DamagedRow if one does not match its checksum.

    Half as dear as `checked`: no rows are built, and the text is never decoded. Messages have no frames.
    """
    heads: dict[tuple[str, str | None, str], int] = {}
    crc32 = zlib.crc32
    for kind, role, turn, seq, epoch, ts, crc, blob in stored:
        data = b""
        try:
            # PostgreSQL's is text
            data = blob if isinstance(blob, bytes) else blob.encode()
            head = heads.get((kind, role, turn))
            if head is None:
                row = Row(0, session, 0, 0, 0.0, kind, role, turn, "")
                head = heads[kind, role, turn] = _head_sum(row)
            whole = crc == _FRAMES_SINCE_VERSION | crc32(
                data, crc32(_PLACE(seq, epoch, ts), head)
            )
            if not whole and crc < _FRAMES_SINCE_VERSION:
                text = data.decode()
                row = Row(0, session, seq, epoch, ts, kind, role, turn, text)
                whole = is_whole(row, crc)
        except (TypeError, AttributeError, UnicodeDecodeError, struct.error):
            whole = False
        if not whole:
            raise _mismatch(session, seq)
        yield kind, data


def _mismatch(session: str, seq: object) -> DamagedRow:
    return DamagedRow(
        f"session {session}, row {seq}: the content does not match its checksum"
    )


def checked(stored: Iterable[tuple[Any, ...]]) -> list[Row]:
    """Builds rows from `STORED` columns. Raises DamagedRow if one does not match its checksum."""
    rows: list[Row] = []
    heads: dict[tuple[str, str, str | None, str], int] = {}
    crc32 = zlib.crc32
    make: Any = tuple.__new__  # half as slow as Row(...)
    for number, session, seq, epoch, ts, kind, role, turn, inner, crc, frame in stored:
        data = inner if frame is None else shared_text.full_text(frame, inner)
        row = make(Row, (number, session, seq, epoch, ts, kind, role, turn, data))
        try:  # `is_whole`, inlined: this runs for every row read
            if crc < _FRAMES_SINCE_VERSION:
                whole = is_whole(row, crc)
            else:
                head = heads.get((session, kind, role, turn))
                if head is None:
                    head = heads[session, kind, role, turn] = _head_sum(row)
                whole = crc == _FRAMES_SINCE_VERSION | crc32(
                    data.encode(), crc32(_PLACE(seq, epoch, ts), head)
                )
        except (
            TypeError,
            AttributeError,
            struct.error,
        ):  # wrong types
            whole = False
        if not whole:
            raise _mismatch(session, seq)
        rows.append(row)
    return rows


def draft(event: Event) -> EncodedEvent:
    """Encodes an event for the log. Raises before anything is written."""
    cls = type(event)
    if not cls.durable or cls.topic not in CATALOGUE:
        raise StoreError(f"{cls.__name__} is not an event of the log")
    try:
        data = _encode(event)
    except UnicodeEncodeError as error:
        hint = "Replace it before saving; half a surrogate pair is not a character."
        raise StoreError(
            f"not saved: text with an invalid character ({cls.topic})", hint=hint
        ) from error
    if len(data) > MAX_EVENT_BYTES:
        raise StoreError(
            f"not saved: an event of {len(data):,} bytes ({cls.topic}); the limit is {MAX_EVENT_BYTES:,}",
            hint="Put the content into a file and refer to it.",
        )
    return EncodedEvent(cls.topic, cls.role, data.decode())


def checksum(row: Row) -> int:
    """Returns a row's checksum, which detects any change between writing and reading."""
    place = zlib.crc32(_PLACE(row.seq, row.epoch, row.ts), _head_sum(row))
    return _FRAMES_SINCE_VERSION | zlib.crc32(row.data.encode(), place)


def earlier_checksum(row: Row) -> int:
    """Returns the checksum of rows written before there were frames."""
    head = f"{row.session}\0{row.seq}\0{row.epoch}\0{float(row.ts)!r}\0{row.type}\0{row.role or ''}\0{row.turn}\0"
    return zlib.crc32(row.data.encode(), zlib.crc32(head.encode()))


def is_whole(row: Row, crc: int) -> bool:
    """Returns whether a row matches its checksum."""
    try:
        return crc == (
            checksum(row) if crc >= _FRAMES_SINCE_VERSION else earlier_checksum(row)
        )
    except (TypeError, ValueError, struct.error):  # wrong types
        return False


def _head_sum(row: Row) -> int:
    return zlib.crc32(
        f"{row.session}\0{row.type}\0{row.role or ''}\0{row.turn}".encode()
    )

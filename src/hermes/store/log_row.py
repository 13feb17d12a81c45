"""A row of the log: an event with its position `(session, epoch, seq)`, as stored and as an envelope."""

import struct
import zlib
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice, repeat
from operator import itemgetter
from typing import Any, NamedTuple

import msgspec

from hermes.errors import StoreError
from hermes.schema.catalogue import CATALOGUE
from hermes.schema.event_base import Event, complete
from hermes.store import shared_text
from hermes.text.translation import translator

t = translator(__name__)


MAX_EVENT_BYTES = 32 * 1024 * 1024

_FRAMES_SINCE_VERSION = (
    1 << 32
)  # set in current checksums, which are faster than the earlier ones
_PLACE = struct.Struct("<qqd").pack
_BATCH_ROWS = 64  # rows checked together, which are in memory at once
_ROW_COLUMNS = itemgetter(slice(9))  # the fields of Row in `STORED`

_encoded = str.encode

_encode = msgspec.json.Encoder().encode
_decoders: dict[str, msgspec.json.Decoder[Event]] = {}
_plain = msgspec.json.Decoder(dict[str, Any])


def _decoder(topic: str) -> "msgspec.json.Decoder[Event] | None":
    """Creates the decoder of an event type on first use: creating all of them would slow down every start."""
    kind = CATALOGUE.get(topic)
    if kind is None:  # a newer Hermes wrote it; topics are not remembered without bound
        return None
    return _decoders.setdefault(topic, msgspec.json.Decoder(kind))


class DamagedRow(Exception):
    """A row that differs from what was written, or can't be read."""


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
        try:
            decoder = _decoders[self.type]
        except KeyError:
            decoder = _decoder(self.type)
        try:
            return decoder.decode(self.data) if decoder else None
        except msgspec.DecodeError:
            return None

    def envelope(self) -> dict[str, Any]:
        """Returns the event in the form of every feed: all fields at top level, with type, time and cursor."""
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


_new_row: Any = partial(tuple.__new__, Row)  # twice as fast as Row(...)

COLUMNS = ", ".join(Row._fields)

STORED = f"{COLUMNS}, crc, {shared_text.TEXT}"
"""The columns a query selects for `checked`."""


MESSAGE_COLUMNS = (
    "type, role, turn, seq, epoch, ts, crc, CAST(data AS BLOB)"  # not translated
)
"""The columns a query selects for `checked_messages`."""


def checked_messages(
    session: str, stored: Iterable[tuple[Any, ...]]
) -> Iterator[tuple[str, bytes]]:
    """Yields type and JSON of each message. Raises DamagedRow if one does not match its checksum.

    Cheaper than `checked`: no rows are built, and the text is never decoded. Messages have no frames.
    """
    heads = _HeadSums()
    for batch in _batches(stored):
        kinds, roles, turns, seqs, epochs, times, sums, texts = zip(*batch, strict=True)
        if isinstance(texts[0], str):  # PostgreSQL's
            texts = tuple(map(_encoded, texts))
        sessions = repeat(session, len(batch))
        common = heads.of(sessions, kinds, roles, turns)
        if not _match(common, _Columns(seqs, epochs, times, texts), sums):
            for row, crc in zip(batch, sums, strict=True):
                _require_whole(_message_row(session, row), crc)
        yield from zip(kinds, texts, strict=True)


def checked(stored: Iterable[tuple[Any, ...]]) -> list[Row]:
    """Builds rows from `STORED` columns. Raises DamagedRow if one does not match its checksum."""
    rows: list[Row] = []
    heads = _HeadSums()
    for raw in _batches(stored):
        _, sessions, seqs, epochs, times, kinds, roles, turns, texts, sums, frames = (
            zip(*raw, strict=True)
        )
        batch = raw
        if any(frames):
            batch = [_with_frame(row) for row in raw]
            texts = tuple(row[8] for row in batch)
        new = list(map(_new_row, map(_ROW_COLUMNS, batch)))
        common = heads.of(sessions, kinds, roles, turns)
        columns = _Columns(seqs, epochs, times, map(_encoded, texts))
        if not _match(common, columns, sums):
            for row, crc in zip(new, sums, strict=True):
                _require_whole(row, crc)
        rows += new
    return rows


def checked_lazily(stored: Iterable[tuple[Any, ...]]) -> Iterator[Row]:
    """Does the same as `checked`, for a search that usually ends after a few rows."""
    for columns in stored:
        yield from checked((columns,))


def damaged(stored: Iterable[tuple[Any, ...]]) -> Iterator[Row]:
    """Yields each row that does not match its checksum.

    Takes `STORED` columns with all text as bytes, which are readable even if they are not valid text, and b"" for a row
    without a role.
    """
    for batch in _batches(stored):
        _, sessions, seqs, epochs, times, kinds, roles, turns, texts, sums, frames = (
            zip(*batch, strict=True)
        )
        if any(frames):
            texts = tuple(map(_full_bytes, texts, frames))
        heads = map(
            zlib.crc32,
            map(b"\0".join, zip(sessions, kinds, roles, turns, strict=True)),
        )
        if not _match(heads, _Columns(seqs, epochs, times, texts), sums):
            for row, text, crc in zip(batch, texts, sums, strict=True):
                found: Row = _new_row(map(_as_text, (*row[:8], text)))
                if not is_whole(found, crc):
                    yield found


def _full_bytes(inner: bytes, frame: bytes | None) -> bytes:
    return inner if frame is None else shared_text.full_bytes(frame, inner)


def _as_text(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return value


class _HeadSums(dict[tuple[Any, ...], int]):
    """Caches the checksum of the columns that many rows share: session, type, role."""

    def __missing__(self, key: tuple[Any, ...]) -> int:
        session, kind, role = key
        row = Row(0, session, 0, 0, 0.0, kind, role, "", "")
        self[key] = _head_sum(row)
        return self[key]

    def of(self, sessions: Any, kinds: Any, roles: Any, turns: Any) -> Iterator[int]:
        """Returns the checksum of each row of a batch up to its turn, from columns."""
        common = map(self.__getitem__, zip(sessions, kinds, roles, strict=True))
        return map(zlib.crc32, map(_encoded, turns), common)


class _Columns(NamedTuple):
    """The other columns that the checksum of each row in a batch covers."""

    seqs: Iterable[Any]
    epochs: Iterable[Any]
    times: Iterable[Any]
    texts: Iterable[Any]


def _match(common: Iterable[int], columns: _Columns, sums: tuple[Any, ...]) -> bool:
    """Returns whether all rows of a batch match their current checksums. `common` are those of `_HeadSums.of`.

    Every row that is read is checked here, so it uses `map`, which is faster than loops in Python.
    """
    crc32 = zlib.crc32
    places = map(crc32, map(_PLACE, *columns[:3]), common)
    try:
        found = tuple(
            map(_FRAMES_SINCE_VERSION.__or__, map(crc32, columns.texts, places))
        )
    except (TypeError, AttributeError, UnicodeEncodeError, struct.error):
        return False  # wrong types
    return found == sums


def _batches(stored: Iterable[tuple[Any, ...]]) -> Iterator[list[tuple[Any, ...]]]:
    rows = iter(stored)
    while batch := list(islice(rows, _BATCH_ROWS)):
        yield batch


def _with_frame(stored: tuple[Any, ...]) -> tuple[Any, ...]:
    *_, inner, _, frame = stored
    if frame is None:
        return stored
    try:
        return (*stored[:8], shared_text.full_text(frame, inner))
    except (TypeError, AttributeError):  # wrong types match no checksum
        return (*stored[:8], None)


def _message_row(session: str, stored: tuple[Any, ...]) -> Row:
    kind, role, turn, seq, epoch, ts, _, data = stored
    if isinstance(data, bytes):
        data = data.decode(errors="surrogateescape")  # never encodes again if invalid
    return Row(0, session, seq, epoch, ts, kind, role, turn, data)


def _require_whole(row: Row, crc: int) -> None:
    if not is_whole(row, crc):
        raise DamagedRow(
            t.logged(
                "session {session}, row {seq}: the content does not match its checksum",
                session=row.session,
                seq=row.seq,
            )
        )


def draft(event: Event) -> EncodedEvent:
    """Encodes an event for the log. Raises before anything is written."""
    cls = type(event)
    if not cls.durable or cls.topic not in CATALOGUE:
        raise StoreError(
            t.later("{name} is not an event of the log", name=cls.__name__)
        )
    try:
        data = _encode(event)
    except UnicodeEncodeError as error:
        hint = t.later(
            "Replace it before saving; half a surrogate pair is not a character."
        )
        raise StoreError(
            t.later(
                "not saved: text with an invalid character ({topic})", topic=cls.topic
            ),
            hint=hint,
        ) from error
    if len(data) > MAX_EVENT_BYTES:
        raise StoreError(
            t.later(
                "not saved: an event of {count:,} bytes ({topic}); the limit is {max_event_bytes:,}",
                count=len(data),
                topic=cls.topic,
                max_event_bytes=MAX_EVENT_BYTES,
            ),
            hint=t.later("Put the content into a file and refer to it."),
        )
    return EncodedEvent(cls.topic, cls.role, data.decode())


def checksum(row: Row) -> int:
    """Returns a row's checksum, which detects any change between writing and reading."""
    place = zlib.crc32(_PLACE(row.seq, row.epoch, row.ts), _head_sum(row))
    return _FRAMES_SINCE_VERSION | zlib.crc32(row.data.encode(), place)


def earlier_checksum(row: Row) -> int:
    """Returns the checksum of rows written before frames existed."""
    head = f"{row.session}\0{row.seq}\0{row.epoch}\0{float(row.ts)!r}\0{row.type}\0{row.role or ''}\0{row.turn}\0"
    return zlib.crc32(row.data.encode(), zlib.crc32(head.encode()))


def is_whole(row: Row, crc: int) -> bool:
    """Returns whether a row matches its checksum."""
    try:
        _PLACE(row.seq, row.epoch, row.ts)  # raises for wrong types
        return crc == (
            checksum(row) if crc >= _FRAMES_SINCE_VERSION else earlier_checksum(row)
        )
    except (TypeError, ValueError, AttributeError, struct.error):  # wrong types
        return False


def _head_sum(row: Row) -> int:
    return zlib.crc32(
        f"{row.session}\0{row.type}\0{row.role or ''}\0{row.turn}".encode()
    )

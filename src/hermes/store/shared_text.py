"""Frames: text that many rows share, stored once.

A session's prompt has several thousand bytes of instructions and tools that hardly ever differ, and a few bytes of its
own. Its row stores only the latter; the frame stores the rest, with a NUL in their place. A row's checksum covers the
whole text, so a frame can't change unnoticed.
"""

import msgspec

from hermes.schema.event_base import Event
from hermes.schema.events import SessionPrompted
from hermes.store.sql import SqlConnection

TEXT = "(SELECT text FROM frames WHERE frames.id = frame)"  # not translated
"""The expression a query selects to read the frame of each row."""

FORGET = "DELETE FROM frames WHERE NOT EXISTS (SELECT 1 FROM events WHERE events.frame = frames.id)"
"""Deletes frames that no row uses any more."""

_MIN_SHARED_BYTES = 512  # not worth a lookup if shorter
_PLACE = "\0"  # never in JSON
_encode = msgspec.json.Encoder().encode


def full_text(frame: str, inner: str) -> str:
    """Returns the whole text of a row."""
    return frame.replace(_PLACE, inner, 1)


def full_bytes(frame: bytes, inner: bytes) -> bytes:
    """Returns the whole text of a row, encoded."""
    return frame.replace(_PLACE.encode(), inner, 1)


def frame_id(frame: str) -> int:
    """Returns a frame's id, derived from its text, so that a salvaged frame can be verified."""
    from hashlib import blake2b  # imported here, because it loads OpenSSL

    return int.from_bytes(blake2b(frame.encode(), digest_size=8).digest(), "big") >> 1


def keep_frame(
    connection: SqlConnection, event: Event | None, data: str
) -> tuple[str, int | None]:
    """Saves the frame of a text if it is new. Returns the part that the row stores, and the frame's id."""
    parts = _divided(event, data)
    if parts is None:
        return data, None
    frame, inner = parts
    number = frame_id(frame)
    known = connection.execute("SELECT text FROM frames WHERE id = ?", (number,)).get
    if known is None:
        connection.execute(
            "INSERT INTO frames (id, text) VALUES (?, ?)", (number, frame)
        )
    elif known != frame:
        return data, None
    return inner, number


def _divided(event: Event | None, data: str) -> tuple[str, str] | None:
    """Splits a prompt into the part that sessions share and the session's own."""
    if not isinstance(event, SessionPrompted) or not event.system:
        return None
    shared = _encode(msgspec.structs.replace(event, system=event.system[:1])).decode()
    before = f'{{"system":[{_encode(event.system[0]).decode()}'
    after = shared[len(before) :]
    fits = (
        shared.startswith(before) and data.startswith(before) and data.endswith(after)
    )
    if not fits or len(data) < len(shared) or len(shared) < _MIN_SHARED_BYTES:
        return None
    return f"{before}{_PLACE}{after}", data[len(before) : len(data) - len(after)]

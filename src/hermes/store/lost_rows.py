"""What can be told about rows that a damaged `state.db` no longer holds. Only reads, and leaves nothing beside it."""

from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import apsw

from hermes.store.connection import glance, has_wal
from hermes.store.write_ahead_log import content, overlay

_MAGIC = b"SQLite format 3\0"
_HEADER_BYTES = 100
_MAX_PAGE_BYTES = 65536


class SessionHead(NamedTuple):
    """How far a session had come."""

    epoch: int
    seq: int


def what_is_gone(path: Path) -> str:
    """Why nobody can say how many rows are missing, or nothing where the whole file is there."""
    main, wal = content(path), content(path.with_name(path.name + "-wal"))
    if not path.is_file():
        return "the file is gone"
    if not main:
        return "the file is empty"
    size = int.from_bytes(main[16:18], "big")
    size = _MAX_PAGE_BYTES if size == 1 else size
    if (
        len(main) < _HEADER_BYTES
        or main[:16] != _MAGIC
        or size < 512
        or size & (size - 1)
    ):
        return "the file has lost its header"
    stated, last = int.from_bytes(main[28:32], "big"), len(main) // size
    if not stated or main[24:28] != main[92:96]:
        return "the header does not say how long the file was"
    newer = overlay(wal, size).whole
    if any(number not in newer for number in range(last + 1, stated + 1)):
        return f"the file ends after page {last:,} of {stated:,}"
    return ""


def known_heads(path: Path) -> dict[str, SessionHead]:
    """The last row of each session by the list of sessions, as far as that can be read.

    Nothing where a newer list may be in the write-ahead log: it may have had sessions deleted.
    """
    if not path.is_file() or has_wal(path):
        return {}
    heads: dict[str, SessionHead] = {}
    written = 0
    try:
        with closing(glance(path)) as connection:
            connection.execute(
                "PRAGMA writable_schema=ON"
            ).fetchall()  # also reads a file that is too short
            written = (
                connection.execute(
                    "SELECT seq FROM sqlite_sequence WHERE name = 'events'"
                ).get
                or 0
            )
            for session, epoch, head in connection.execute(
                "SELECT id, epoch, head FROM sessions"
            ):
                heads[session] = SessionHead(int(epoch), int(head))
    except (apsw.Error, UnicodeDecodeError, TypeError, ValueError):
        pass  # what was read until here is as good as anything
    # A list that speaks of more rows than were ever written is itself damaged.
    return heads if sum(head.seq for head in heads.values()) <= written else {}

"""Estimates which rows a damaged `state.db` has lost. Only reads, and leaves nothing beside it."""

from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import apsw

from hermes.store.sqlite.connection import glance, has_wal
from hermes.store.sqlite.write_ahead_log import content, overlay
from hermes.text.translation import translator

t = translator(__name__)


_MAGIC = b"SQLite format 3\0"
_HEADER_BYTES = 100
_MAX_PAGE_BYTES = 65536


class SessionHead(NamedTuple):
    """The last row of a session."""

    epoch: int
    seq: int


def unknown_loss_reason(path: Path) -> str:
    """Returns why the number of missing rows is unknown; empty if the file is complete."""
    main, wal = content(path), content(path.with_name(path.name + "-wal"))
    if not path.is_file():
        return t.logged("the file is gone")
    if not main:
        return t.logged("the file is empty")
    size = int.from_bytes(main[16:18], "big")
    size = _MAX_PAGE_BYTES if size == 1 else size
    if (
        len(main) < _HEADER_BYTES
        or main[:16] != _MAGIC
        or size < 512
        or size & (size - 1)
    ):
        return t.logged("the file has lost its header")
    stated, last = int.from_bytes(main[28:32], "big"), len(main) // size
    if not stated or main[24:28] != main[92:96]:
        return t.logged("the header does not say how long the file was")
    newer = overlay(wal, size).whole
    if any(number not in newer for number in range(last + 1, stated + 1)):
        return t.logged(
            "the file ends after page {last:,} of {stated:,}", last=last, stated=stated
        )
    return ""


def known_heads(path: Path) -> dict[str, SessionHead]:
    """Returns the last row of each session from the list of sessions, as far as readable.

    Returns nothing if a newer list may be in the write-ahead log: sessions may have been deleted
    since.
    """
    if not path.is_file() or has_wal(path):
        return {}
    heads: dict[str, SessionHead] = {}
    written = 0
    try:
        with closing(glance(path)) as connection:
            connection.execute(
                "PRAGMA writable_schema=ON"
            ).fetchall()  # also reads a truncated file
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
        pass  # keep what was read so far
    # A list with more rows than were ever written is itself damaged.
    if sum(head.seq for head in heads.values()) <= written:
        return heads
    return {}

"""Reads rows of `events` straight from the pages of a damaged database, without SQLite's help.

Every page of the file, as overlaid by the committed part of its write-ahead log, is examined on its own; a cell that
decodes into a row with the right checksum is a row. So a lost root page, a truncated file or a broken header costs only
the contents of the bad pages, and nothing is invented. Format: https://www.sqlite.org/fileformat2.html
"""

import struct
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from hermes.store.log_row import MAX_EVENT_BYTES, Row, is_whole
from hermes.store.shared_text import frame_id, full_text
from hermes.store.sqlite.write_ahead_log import (
    MAX_PAGES_IN_MEMORY,
    Content,
    content,
    overlay,
    page_size,
    release_memory,
)

PAGE_BYTES = 4096  # of every file that Hermes creates

_TABLE_LEAF = 0x0D
_PAGE_SIZES = frozenset(1 << n for n in range(9, 17))
_COLUMNS = (
    10,
    11,
)  # columns of `events`, including the row's id: before frames existed, and since
_FRAME_COLUMNS = 2
_MAX_RECORD_BYTES = 2 * MAX_EVENT_BYTES  # of a record; more means a corrupt length

_Value = int | float | str | bytes | None


def salvage(path: Path) -> Iterator[Row]:
    """Yields every readable row of the log, in no particular order; the same row may occur twice."""
    main, wal = content(path), content(path.with_name(path.name + "-wal"))
    stated = (page_size(wal), int.from_bytes(main[16:18], "big"))
    for size in dict.fromkeys((PAGE_BYTES, *stated)):
        found = False
        for row in _rows_with(main, wal, size) if size in _PAGE_SIZES else ():
            found = True
            yield row
        if found:
            return


class _Carved(NamedTuple):
    """A row as found; part of its text may be in a frame."""

    row: Row
    crc: int
    frame: int | None


class _Frame(NamedTuple):
    id: int
    text: str


def _rows_with(main: Content, wal: Content, size: int) -> Iterator[Row]:
    """Yields every row with a correct checksum. Rows with a frame come last, because the frame may be anywhere."""
    images = overlay(wal, size)
    texts: dict[int, str] = {}
    framed: list[_Carved] = []
    for newer in (
        (images.regular, images.whole)
        if images.whole != images.regular
        else (images.regular,)
    ):
        pages = Pages(main, wal, size, newer)
        for found in chain.from_iterable(
            _found_on(pages, number) for number in pages.numbers()
        ):
            if isinstance(found, _Frame):
                texts[found.id] = found.text
            elif found.frame is not None:
                framed.append(found)
            elif is_whole(found.row, found.crc):
                yield found.row
    for found in framed:
        if (text := texts.get(found.frame or 0)) is not None:
            row = found.row._replace(data=full_text(text, found.row.data))
            if is_whole(row, found.crc):
                yield row


class Pages:
    """The pages of a database file, overlaid with those of its write-ahead log."""

    def __init__(
        self, main: Content, wal: Content, size: int, newer: dict[int, int]
    ) -> None:
        self.size = size
        self._main = main
        self._wal = wal
        self._newer = newer

    def numbers(self) -> Iterator[int]:
        """Yields the numbers of all pages, from 1, without keeping the files in memory."""
        last = -(-len(self._main) // self.size)
        for number in chain(
            range(1, last + 1),
            (number for number in sorted(self._newer) if number > last),
        ):
            if number % MAX_PAGES_IN_MEMORY == 0:
                release_memory(self._main)
                release_memory(self._wal)
            yield number

    def __getitem__(self, number: int) -> bytes:
        at = self._newer.get(number)
        if at is not None:
            return self._wal[at : at + self.size]
        start = (number - 1) * self.size
        return self._main[start : start + self.size]


def _found_on(pages: Pages, number: int) -> Iterator[_Carved | _Frame]:
    page = pages[number]
    head = 100 if number == 1 else 0
    if len(page) < head + 8 or page[head] != _TABLE_LEAF:
        return
    cells = int.from_bytes(page[head + 3 : head + 5], "big")
    for i in range(head + 8, min(head + 8 + 2 * cells, len(page) - 1), 2):
        try:
            found = _cell(pages, page, int.from_bytes(page[i : i + 2], "big"))
        except (IndexError, ValueError, struct.error):
            continue  # not a cell: a real row has a valid checksum
        if found:
            yield found


def _cell(pages: Pages, page: bytes, at: int) -> _Carved | _Frame | None:
    """Returns the cell at an offset, if it has the shape of an event or a frame."""
    length, at = _varint(page, at)
    row_id, at = _varint(page, at)
    values = _record(_payload(pages, page, at, length))
    if len(values) == _FRAME_COLUMNS and isinstance(text := values[1], str):
        return _Frame(row_id, text) if frame_id(text) == row_id else None
    if len(values) not in _COLUMNS:
        return None
    session, seq, epoch, ts, kind, role, turn, data, crc, frame = [*values, None][1:11]
    if not (
        isinstance(session, str)
        and isinstance(kind, str)
        and isinstance(turn, str)
        and isinstance(data, str)
    ):
        return None
    if not (
        isinstance(seq, int)
        and isinstance(epoch, int)
        and isinstance(ts, int | float)
        and isinstance(crc, int)
    ):
        return None
    known_role = role if isinstance(role, str) else None
    row = Row(row_id, session, seq, epoch, float(ts), kind, known_role, turn, data)
    return _Carved(row, crc, frame if isinstance(frame, int) else None)


def _payload(pages: Pages, page: bytes, at: int, length: int) -> bytes:
    """Returns a record's bytes, including its overflow pages."""
    if length > _MAX_RECORD_BYTES:
        raise ValueError
    if length <= pages.size - 35:
        return page[at : at + length]
    least = (pages.size - 12) * 32 // 255 - 23
    local = least + (length - least) % (pages.size - 4)
    local = local if local <= pages.size - 35 else least
    parts, missing = [page[at : at + local]], length - local
    following = int.from_bytes(page[at + local : at + local + 4], "big")
    while missing > 0 and following:
        overflow = pages[following]
        following = int.from_bytes(overflow[:4], "big")
        parts.append(overflow[4 : min(pages.size, 4 + missing)])
        missing -= len(parts[-1])
        if not parts[-1]:
            raise ValueError
    return b"".join(parts)


def _record(payload: bytes) -> list[_Value]:
    head_end, at = _varint(payload, 0)
    kinds: list[int] = []
    while at < head_end:
        kind, at = _varint(payload, at)
        kinds.append(kind)
    values: list[_Value] = []
    for kind in kinds:
        size = _size(kind)
        if at + size > len(payload):
            raise ValueError
        values.append(_value(kind, payload[at : at + size]))
        at += size
    return values


def _size(kind: int) -> int:
    if kind >= 12:
        return (kind - 12) // 2
    return (0, 1, 2, 3, 4, 6, 8, 8, 0, 0, 0, 0)[kind]


def _value(kind: int, raw: bytes) -> _Value:
    if kind >= 12:
        return raw.decode() if kind % 2 else raw
    if kind == 7:
        return float(struct.unpack(">d", raw)[0])
    if kind in (8, 9):
        return kind - 8
    return int.from_bytes(raw, "big", signed=True) if raw else None


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for i in range(8):
        byte = data[at + i]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at + i + 1
    return value << 8 | data[at + 8], at + 9

"""Reads rows of `events` straight from the pages of a damaged database, without SQLite's help.

Every page of the file, as overlaid by the committed part of its write-ahead log, is looked at for itself; a cell that
decodes into a row with the right checksum is a row. So a lost root page, a cut file or a broken header costs only
what stood on the bad pages, and nothing is invented. Format: https://www.sqlite.org/fileformat2.html
"""

import mmap
import struct
from collections.abc import Iterator
from pathlib import Path

from hermes.store.row import Draft, Row, checksum

_TABLE_LEAF = 0x0D
_WAL_HEADER, _FRAME_HEADER = 32, 24
_PAGE_SIZES = frozenset(1 << n for n in range(9, 17))
_COLUMNS = 10  # of `events`, the row's id included

_Value = int | float | str | bytes | None


def salvage(path: Path) -> Iterator[Row]:
    """Every readable row of the log, in no particular order, each once."""
    pages = Pages(_content(path), _content(path.with_name(path.name + "-wal")))
    seen: set[tuple[str, int, int]] = set()
    for number in pages.numbers():
        for row in _rows_of(pages, number):
            key = (row.session, row.epoch, row.seq)
            if key not in seen:
                seen.add(key)
                yield row


def _content(path: Path) -> bytes | mmap.mmap:
    if not path.is_file() or not path.stat().st_size:
        return b""
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


class Pages:
    """The pages of a database file with its write-ahead log laid over them."""

    def __init__(self, main: bytes | mmap.mmap, wal: bytes | mmap.mmap) -> None:
        self.size = _page_size(main, wal)
        self._main = main
        self._newer = dict(_committed(wal, self.size))
        self._reserved = main[20] if len(main) > 20 and main[20] <= 64 else 0

    def numbers(self) -> Iterator[int]:
        """Numbers of all pages there are, from 1."""
        last = max([-(-len(self._main) // self.size), *self._newer])
        return iter(range(1, last + 1))

    def __getitem__(self, number: int) -> bytes:
        start = (number - 1) * self.size
        return self._newer.get(number) or self._main[start : start + self.size]

    @property
    def usable(self) -> int:
        """Bytes of a page that hold content."""
        return self.size - self._reserved


def _page_size(main: bytes | mmap.mmap, wal: bytes | mmap.mmap) -> int:
    candidates = [int.from_bytes(wal[8:12], "big"), int.from_bytes(main[16:18], "big")]
    return next((size for size in candidates if size in _PAGE_SIZES), 4096)


def _committed(wal: bytes | mmap.mmap, size: int) -> Iterator[tuple[int, bytes]]:
    """Pages of the write-ahead log up to its last whole transaction, oldest first."""
    if len(wal) < _WAL_HEADER or int.from_bytes(wal[:4], "big") & ~1 != 0x377F0682:
        return
    order = ">" if wal[3] & 1 else "<"
    salts, total = wal[16:24], _wal_sum(order, wal[:24], (0, 0))
    waiting: list[tuple[int, bytes]] = []
    for start in range(_WAL_HEADER, len(wal) - _FRAME_HEADER - size + 1, _FRAME_HEADER + size):
        head, page = wal[start : start + _FRAME_HEADER], wal[start + _FRAME_HEADER : start + _FRAME_HEADER + size]
        total = _wal_sum(order, head[:8] + page, total)
        if head[8:16] != salts or struct.unpack(">II", head[16:]) != total:
            return
        waiting.append((int.from_bytes(head[:4], "big"), page))
        if head[4:8] != b"\0\0\0\0":
            yield from waiting
            waiting = []


def _wal_sum(order: str, data: bytes, start: tuple[int, int]) -> tuple[int, int]:
    one, two = start
    words = struct.unpack(f"{order}{len(data) // 4}I", data)
    for even, odd in zip(words[::2], words[1::2], strict=True):
        one = (one + even + two) & 0xFFFFFFFF
        two = (two + odd + one) & 0xFFFFFFFF
    return one, two


def _rows_of(pages: Pages, number: int) -> Iterator[Row]:
    page = pages[number]
    head = 100 if number == 1 else 0
    if len(page) < head + 8 or page[head] != _TABLE_LEAF:
        return
    cells = int.from_bytes(page[head + 3 : head + 5], "big")
    for i in range(head + 8, min(head + 8 + 2 * cells, len(page) - 1), 2):
        try:
            row = _row(pages, page, int.from_bytes(page[i : i + 2], "big"))
        except (IndexError, ValueError, struct.error):
            continue  # a cell that is not one: the checksum of a real row would have told
        if row:
            yield row


def _row(pages: Pages, page: bytes, at: int) -> Row | None:
    """The cell at an offset, if it holds an event whose checksum is right."""
    length, at = _varint(page, at)
    row_id, at = _varint(page, at)
    values = _record(_payload(pages, page, at, length))
    if len(values) != _COLUMNS:
        return None
    _, session, seq, epoch, ts, kind, role, turn, data, crc = values
    if not (isinstance(session, str) and isinstance(kind, str) and isinstance(turn, str) and isinstance(data, str)):
        return None
    if not (isinstance(seq, int) and isinstance(epoch, int) and isinstance(ts, int | float)):
        return None
    known_role = role if isinstance(role, str) else None
    if checksum(session, seq, epoch, Draft(kind, known_role, data), turn) != crc:
        return None
    return Row(row_id, session, seq, epoch, float(ts), kind, known_role, turn, data)


def _payload(pages: Pages, page: bytes, at: int, length: int) -> bytes:
    """A record's bytes, followed through its overflow pages."""
    if length <= pages.usable - 35:
        return page[at : at + length]
    least = (pages.usable - 12) * 32 // 255 - 23
    local = least + (length - least) % (pages.usable - 4)
    local = local if local <= pages.usable - 35 else least
    parts, missing = [page[at : at + local]], length - local
    following = int.from_bytes(page[at + local : at + local + 4], "big")
    while missing > 0 and following:
        overflow = pages[following]
        following = int.from_bytes(overflow[:4], "big")
        parts.append(overflow[4 : min(pages.usable, 4 + missing)])
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

"""The write-ahead log as a file: which page images it contains, and whether some of them are damaged.

SQLite reads such a log up to the first frame with a wrong checksum and treats that as its end. A frame's checksum
continues that of the previous frame, so valid frames after a bad one can still be told from garbage. Format:
https://www.sqlite.org/fileformat2.html#the_write_ahead_log
"""

import mmap
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, TypeAlias

Content: TypeAlias = bytes | mmap.mmap
_Sum: TypeAlias = tuple[int, int]

MAX_PAGES_IN_MEMORY = 1_024  # pages kept in memory while a file is read from end to end
_HEADER, _FRAME = 32, 24
_MAGIC = 0x377F0682


class WalOverlay(NamedTuple):
    """The offset of each page's newest image in the log: as SQLite reads it, and including what follows a bad frame."""

    regular: dict[int, int]
    whole: dict[int, int]


def content(path: Path) -> Content:
    """Returns a file's bytes without reading them all into memory; empty if there is no file."""
    if not path.is_file() or not path.stat().st_size:
        return b""
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def release_memory(mapped: Content) -> None:
    """Frees the memory that reading a mapped file has filled; pages are loaded again when needed."""
    if isinstance(mapped, mmap.mmap):
        mapped.madvise(mmap.MADV_DONTNEED)


def page_size(wal: Content) -> int:
    """Returns the page size from the log's header."""
    return int.from_bytes(wal[8:12], "big")


def commits_after(wal: Content, frames: int, size: int) -> int:
    """Returns how many transactions of the log's current round follow the frames that SQLite accepts."""
    salts = _salts(wal)
    starts = range(
        _HEADER + frames * (_FRAME + size), len(wal) - _FRAME - size + 1, _FRAME + size
    )
    return sum(
        wal[at + 8 : at + 16] == salts and wal[at + 4 : at + 8] != b"\0\0\0\0"
        for at in starts
    )


def overlay(wal: Content, size: int) -> WalOverlay:
    """Finds the page images of every complete transaction."""
    regular: dict[int, int] = {}
    whole: dict[int, int] = {}
    waiting: dict[int, int] = {}
    unbroken = True
    for at, sound in _frames(wal, size):
        unbroken = unbroken and sound
        if not sound:
            continue
        waiting[int.from_bytes(wal[at : at + 4], "big")] = at + _FRAME
        if wal[at + 4 : at + 8] != b"\0\0\0\0":
            whole |= waiting
            if unbroken:
                regular |= waiting
            waiting = {}
    return WalOverlay(regular, whole)


def _frames(wal: Content, size: int) -> Iterator[tuple[int, bool]]:
    """Yields where each frame begins, and whether it belongs to this round and has the right checksum."""
    if len(wal) < _HEADER:
        return
    order, salts = _order(wal), _salts(wal)
    before = [_stored(wal, _HEADER), _sum(order, wal[:24], (0, 0))]
    for number, at in enumerate(
        range(_HEADER, len(wal) - _FRAME - size + 1, _FRAME + size), 1
    ):
        if number % MAX_PAGES_IN_MEMORY == 0:
            release_memory(wal)
        summed = wal[at : at + 8] + wal[at + _FRAME : at + _FRAME + size]
        sums = [_sum(order, summed, start) for start in dict.fromkeys(before)]
        stored = _stored(wal, at + _FRAME)
        yield at, stored in sums and wal[at + 8 : at + 16] == salts
        before = [stored, sums[0]]


def _salts(wal: Content) -> bytes:
    """Returns the numbers that distinguish this round's frames from those of earlier rounds."""
    sound = (
        _stored(wal, _HEADER) == _sum(_order(wal), wal[:24], (0, 0))
        if len(wal) >= _HEADER
        else False
    )
    if sound:
        return wal[16:24]
    return wal[_HEADER + 8 : _HEADER + 16]


def _order(wal: Content) -> str:
    magic = int.from_bytes(wal[:4], "big")
    if magic & ~1 != _MAGIC:
        return "<" if sys.byteorder == "little" else ">"
    return ">" if magic & 1 else "<"


def _stored(wal: Content, end: int) -> _Sum:
    one, two = struct.unpack(">II", wal[end - 8 : end])
    return one, two


def _sum(order: str, data: bytes, start: _Sum) -> _Sum:
    one, two = start
    words = struct.unpack(f"{order}{len(data) // 4}I", data)
    for even, odd in zip(words[::2], words[1::2], strict=True):
        one = (one + even + two) & 0xFFFFFFFF
        two = (two + odd + one) & 0xFFFFFFFF
    return one, two

"""A spool: records on disk, in order, that wait for acknowledgement. Each has a number and a checksum.

A spool belongs to one process, which holds its lock. After that process has ended, another can take it over. When `add`
returns, the record survives the process, but not a power cut.
"""

import contextlib
import logging
import os
import shutil
import struct
import threading
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

from hermes.errors import HermesError
from hermes.primitives.file_lock import FileLock
from hermes.primitives.files import make_private_folder, open_private
from hermes.text.translation import translator

t = translator(__name__)

log = logging.getLogger("hermes.bridge")

MAX_SPOOL_BYTES = 64 * 1024 * 1024
MAX_RECORDS = 100_000
MAX_SEGMENT_BYTES = 4 * 1024 * 1024
_MAX_ACKED_BYTES = (
    64 * 1024
)  # of acknowledged records that may remain in the last segment
_HEAD = struct.Struct("<IIQ")  # length, checksum, number
_MARK = struct.Struct("<QI")  # what was acknowledged, checksum
_LOCK = "lock"
_MAX_ORPHANS = 200


class Spool:
    """A folder of segments of records. `add` may be called from any thread, the rest from one thread."""

    def __init__(
        self,
        folder: Path,
        *,
        gap: Callable[[int], bytes] | None = None,
        max_bytes: int = MAX_SPOOL_BYTES,
        max_records: int = MAX_RECORDS,
    ) -> None:
        self.folder = folder
        self._gap = gap
        self._max_bytes = max_bytes
        self._max_records = max_records
        self._lock = (
            threading.RLock()
        )  # a signal handler may publish while its thread is here
        self._waiting: deque[bytes] = deque()
        self._writing = False
        self._missing = 0
        self._handle = -1
        self._sizes: dict[
            int, int
        ] = {}  # of the segments, by the number they begin with
        self._segment = 0
        self._place = (0, 0)  # where reading continues: segment, offset
        self.size = 0
        self.last = 0
        self.acked = 0
        self.dropped = 0
        """How many records were refused because the spool or the disk was full."""
        self.torn = 0
        """How many records were damaged."""
        self._failing = False
        self._file_lock = _take_lock(folder)
        self._recover()

    def add(self, data: bytes) -> None:
        """Writes a record. If there is no room, counts it; a gap record later takes its place."""
        with self._lock:
            self._waiting.append(data)
            if (
                self._writing
            ):  # this thread is in the middle of a write, further up the stack
                return
            self._writing = True
            try:
                while self._waiting:
                    self._accept(self._waiting.popleft())
            finally:
                self._writing = False

    def read(self, most: int) -> list[tuple[int, bytes]]:
        """Returns the next records in order, about `most` bytes; empty at the end. `rewind` starts again."""
        records: list[tuple[int, bytes]] = []
        taken = 0
        while taken < most:
            segment, offset = self._place
            with self._lock:
                size, following = self._sizes.get(segment, 0), self._after(segment)
            if offset >= size:
                if following is None:
                    break
                self._place = (following, 0)
                continue
            content = _pread(
                self._path(segment),
                offset,
                min(size - offset, max(most - taken, _MAX_ACKED_BYTES)),
            )
            end = 0
            for number, data, behind in _records(content):
                end = behind
                if number > self.acked:
                    records.append((number, data))
                    taken += len(data)
            if (
                not end and len(content) < size - offset
            ):  # a record larger than the chunk read
                end = self._read_large(segment, offset, records)
            if not end:
                break
            self._place = (segment, offset + end)
        return records

    def rewind(self) -> None:
        """Reads again from the first unacknowledged record."""
        with self._lock:
            self._place = (min(self._sizes), 0)

    def ack(self, number: int) -> None:
        """Acknowledges and deletes the records up to a number."""
        with self._lock:
            if number <= self.acked:
                return
            self.acked = min(number, self.last)
            with contextlib.suppress(
                OSError
            ):  # on a full disk the mark is lost, and some records are sent again
                os.pwrite(self._file_lock.fd, _mark(self.acked), 0)
            for segment in sorted(self._sizes)[:-1]:
                following = self._after(segment)
                if following is None or following > self.acked + 1:
                    break
                self._remove(segment)
            if self.acked == self.last and self._sizes[self._segment] > min(
                _MAX_ACKED_BYTES, self._max_bytes // 4
            ):
                os.ftruncate(self._handle, 0)
                self._resize(self._segment, 0)
                self._place = (self._segment, 0)

    @property
    def waiting(self) -> int:
        """How many records are not acknowledged yet."""
        return self.last - self.acked

    def close(self) -> None:
        """Closes the spool, and removes it if it is empty. Idempotent."""
        with self._lock:
            if self._file_lock.fd < 0:
                return
            if not self.waiting:
                shutil.rmtree(self.folder, ignore_errors=True)
            os.close(self._handle)
            self._handle = -1
            self._file_lock.close()

    def _accept(self, data: bytes) -> None:
        if self._file_lock.fd < 0 or not self._has_room(len(data)):
            self.dropped += 1
            self._missing += 1
            return
        if self._missing and (
            self._gap is None or self._write(self._gap(self._missing))
        ):
            self._missing = 0
        if not self._write(data):
            self.dropped += 1
            self._missing += 1

    def _has_room(self, length: int) -> bool:
        spare = 2 if self._missing else 1
        return (
            self.size + length + spare * 512 <= self._max_bytes
            and self.waiting + spare <= self._max_records
        )

    def _write(self, data: bytes) -> bool:
        number, size = self.last + 1, self._sizes[self._segment]
        record = _HEAD.pack(len(data), _checksum(number, data), number) + data
        try:
            if size >= MAX_SEGMENT_BYTES:
                self._begin(number)
                size = 0
            written = os.write(self._handle, record)
        except OSError as error:
            if not self._failing:  # once, until it works again
                log.error("events can't be saved: %s (%s)", self.folder, error)  # noqa: TRY400 - no more to say
            self._failing = True
            return False
        if written != len(record):  # the disk is full: remove the partial record
            os.ftruncate(self._handle, size)
            return False
        self.last = number
        self._failing = False
        self._resize(self._segment, size + written)
        return True

    def _begin(self, number: int) -> None:
        handle = open_private(self._path(number), os.O_RDWR | os.O_CREAT | os.O_APPEND)
        if self._handle >= 0:
            os.close(self._handle)
        self._handle, self._segment = handle, number
        self._sizes[number] = 0

    def _recover(self) -> None:
        """Reads the folder, up to the first damaged record of each segment."""
        self.acked = _marked(os.pread(self._file_lock.fd, _MARK.size, 0))
        expected = self.acked + 1 if self.acked else 0
        damaged = 0
        for path in sorted(
            path for path in self.folder.glob("*.log") if path.stem.isdecimal()
        ):
            content = path.read_bytes()
            expected = expected or int(path.stem)
            end = 0
            for number, _, behind in _records(content):
                self.torn += max(0, number - expected)
                expected, end = max(expected, number + 1), behind
            self._sizes[int(path.stem)] = end
            damaged = len(content) - end
            if damaged:
                os.truncate(path, end)
                log.warning(
                    "%d bytes of %s were damaged and are left out", damaged, path
                )
        self.torn += bool(damaged)  # how many records follow is unknown
        self.last = max(0, expected - 1)
        self.size = sum(self._sizes.values())
        if (
            not self._sizes
            or max(self._sizes) > self.last
            or self._sizes[max(self._sizes)] >= MAX_SEGMENT_BYTES
        ):
            self._begin(self.last + 1)
        else:
            self._begin_again(max(self._sizes))
        self._place = (min(self._sizes), 0)

    def _begin_again(self, segment: int) -> None:
        size = self._sizes[segment]
        self._begin(segment)
        self._sizes[segment] = size

    def _read_large(
        self, segment: int, offset: int, records: list[tuple[int, bytes]]
    ) -> int:
        path = self._path(segment)
        length = _HEAD.unpack(_pread(path, offset, _HEAD.size))[0]
        for number, data, behind in _records(_pread(path, offset, _HEAD.size + length)):
            if number > self.acked:
                records.append((number, data))
            return behind
        return 0

    def _remove(self, segment: int) -> None:
        self._resize(segment, 0)
        del self._sizes[segment]
        self._path(segment).unlink(missing_ok=True)
        if self._place[0] == segment:
            self._place = (min(self._sizes), 0)

    def _resize(self, segment: int, size: int) -> None:
        self.size += size - self._sizes[segment]
        self._sizes[segment] = size

    def _after(self, segment: int) -> int | None:
        return min((number for number in self._sizes if number > segment), default=None)

    def _path(self, segment: int) -> Path:
        return self.folder / f"{segment:020}.log"


def left_behind(place: Path) -> Iterator[Path]:
    """The spool folders in `place`, oldest first."""
    with contextlib.suppress(FileNotFoundError):
        yield from sorted(
            (folder for folder in place.iterdir() if (folder / _LOCK).exists()),
            key=lambda folder: folder.name,
        )


def thin_out(place: Path, most: int = _MAX_ORPHANS) -> int:
    """Removes the oldest orphaned spools if there are too many. Returns how many records were lost."""
    try:
        if sum(1 for _ in place.iterdir()) <= most:
            return 0
    except FileNotFoundError:
        return 0
    lost = 0
    for folder in list(left_behind(place))[:-most]:
        with contextlib.suppress(SpoolTaken, OSError):
            spool = Spool(folder)
            lost += spool.waiting
            spool.ack(spool.last)
            spool.close()
    if lost:
        log.warning("%d events that nobody fetched are removed from %s", lost, place)
    return lost


class SpoolTaken(HermesError):
    """Another process owns the spool."""


def _take_lock(folder: Path) -> FileLock:
    lock = FileLock(make_private_folder(folder) / _LOCK)
    # The file is gone when the last owner has just removed it.
    if lock.try_acquire() and lock.path.exists():
        return lock
    lock.close()
    raise SpoolTaken(t.later("another process is using {folder}", folder=folder))


def _records(content: bytes) -> Iterator[tuple[int, bytes, int]]:
    """Yields the number, content and end of each record, up to the first damaged one."""
    offset = 0
    while offset + _HEAD.size <= len(content):
        length, checksum, number = _HEAD.unpack_from(content, offset)
        data = content[offset + _HEAD.size : offset + _HEAD.size + length]
        if len(data) < length or _checksum(number, data) != checksum:
            return
        offset += _HEAD.size + length
        yield number, data, offset


def _mark(number: int) -> bytes:
    return _MARK.pack(number, zlib.crc32(b"%d" % number))


def _marked(data: bytes) -> int:
    """Returns the number in an acknowledgement mark; 0 if the mark is damaged, and then everything is sent again."""
    number = _MARK.unpack(data)[0] if len(data) == _MARK.size else 0
    return number if data == _mark(number) else 0


def _checksum(number: int, data: bytes) -> int:
    return zlib.crc32(data, number & 0xFFFFFFFF)


def _pread(path: Path, offset: int, length: int) -> bytes:
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.pread(handle, length, offset)
    finally:
        os.close(handle)

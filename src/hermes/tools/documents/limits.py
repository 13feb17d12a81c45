"""Limits of the process that reads a document."""

import time
from typing import IO

import msgspec

_MB = 1024**2


class ReaderLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits on reading one document. The reading process is killed when it exceeds them."""

    cpu_s: int = 120
    memory_bytes: int = 2048 * _MB
    """Of address space, which is more than the memory in use."""
    ocr_memory_bytes: int = 4096 * _MB
    """For kinds that may need OCR, whose libraries reserve a lot of address space."""
    unpacked_bytes: int = 500 * _MB
    """For documents that are ZIP archives inside."""
    entries: int = 50_000


class TimeBudget:
    """The CPU time after which a reader stops by itself and returns what it has: half of the limit."""

    def __init__(self, limits: ReaderLimits) -> None:
        self._end_s = time.process_time() + limits.cpu_s / 2

    @property
    def is_spent(self) -> bool:
        """Whether to stop."""
        return time.process_time() > self._end_s


class TimeSpent(Exception):
    """Reading took too long."""


class TimedFile:
    """A file whose reads raise TimeSpent when the time is up. For libraries that don't stop reading by themselves."""

    def __init__(self, file: IO[bytes], budget: TimeBudget) -> None:
        self._file = file
        self._budget = budget

    def read(self, size: int = -1) -> bytes:
        """The next bytes."""
        if self._budget.is_spent:
            raise TimeSpent
        return self._file.read(size)

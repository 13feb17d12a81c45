"""Limits on what a command may use of shared resources: processes and disk. Checked a few times a second."""

import contextlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec

_LOADAVG = Path("/proc/loadavg")
_MIN_GROWTH_BYTES = 32 * 1024 * 1024
_MAX_COUNTED_FILES = 20_000


class ResourceLimits(msgspec.Struct, frozen=True):
    """The maximum that a command may use."""

    processes: int = 1000
    temporary: int = 2 * 1024**3
    """Bytes in the temporary folder."""
    free: int = 256 * 1024**2
    """Bytes that must stay free on the disks to which it can write."""


class ResourceWatch:
    """Watches one command."""

    def __init__(
        self,
        limits: ResourceLimits,
        temporary: Path,
        folders: tuple[Path, ...],
        count: Callable[[], int],
    ) -> None:
        self._limits = limits
        self._temporary = temporary
        self._count = count
        self._tasks = tasks()
        self._disks = [
            (folder, free)
            for folder in folders
            if (free := _free(folder)) >= limits.free
        ]
        self._counted = _free(temporary)

    def problem(self) -> str:
        """Says why the command must be stopped now; empty if it may continue."""
        limits = self._limits
        if (
            tasks() - self._tasks > limits.processes // 2
            and self._count() > limits.processes
        ):
            return f"it had started more than {limits.processes:,} processes"
        for folder, _ in self._disks:
            if _free(folder) < limits.free:
                return f"less than {limits.free / 1024**2:,.0f} MiB were left on the disk of {folder}"
        free = _free(self._temporary)
        if self._counted - free > min(_MIN_GROWTH_BYTES, limits.temporary // 4):
            self._counted = free
            if size_of(self._temporary) > limits.temporary:
                return f"its temporary files took more than {limits.temporary / 1024**2:,.0f} MiB, and were deleted"
        return ""


def size_of(folder: Path) -> int:
    """Returns the disk space of the files in a folder; if there are very many, only of some."""
    total = count = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                total += os.lstat(f"{place}/{name}").st_blocks * 512
        count += len(names)
        if count > _MAX_COUNTED_FILES:
            break
    return total


def emptied(folder: Path) -> None:
    """Deletes everything in a folder."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path, ignore_errors=True)
            else:
                Path(entry.path).unlink(missing_ok=True)


def tasks() -> int:
    """Returns how many tasks the machine runs: the cheapest sign of a fork bomb."""
    try:
        return int(_LOADAVG.read_bytes().split()[3].partition(b"/")[2])
    except (OSError, ValueError, IndexError):
        return 0


def _free(folder: Path) -> int:
    try:
        info = os.statvfs(folder)
    except OSError:
        return 0
    return info.f_bavail * info.f_frsize

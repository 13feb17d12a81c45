"""Records which confined commands are running, so that project notes they write are not trusted before they have ended.

Each running command has a marker in Hermes' home: a file that describes the workspace when the command began. The
Hermes process that runs the command holds a lock on it. A marker without a lock was left by a process that was killed:
until `restore.settle_left_over` has examined that workspace, everything that changed there counts as written by the
command.
"""

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, TypeAlias

import msgspec

from hermes.primitives.file_lock import FileLock
from hermes.primitives.files import make_private_folder, sync_folder

FOLDER = "run/commands"
CLOCK_NS = 100_000_000
"""How far the kernel's clock for files may lag behind."""
Stamps: TypeAlias = dict[str, tuple[int, ...]]


class CommandStart(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a workspace when a command began."""

    workspace: str
    began_ns: int
    notes: Stamps
    """The project notes that the command may be able to write."""
    read_only: tuple[str, ...] = ()
    """The project notes that the kernel protects from it."""
    is_cut: bool = False
    """Whether there were more folders than the search covers."""
    is_product_cut: bool = False
    """Whether there were more folders made by builds than the search covers."""


class CommandMarker:
    """The marker of one running command."""

    def __init__(self, hermes_home: Path, start: CommandStart) -> None:
        folder = make_private_folder(hermes_home / FOLDER)
        self._lock = FileLock(folder / os.urandom(8).hex())
        try:
            self._lock.try_acquire()  # before it has any content: an empty marker does not count yet
            self.write(start)
        except BaseException:
            self.remove()
            raise

    def write(self, start: CommandStart) -> None:
        """Stores the state when the command began."""
        data = to_json(msgspec.to_builtins(start))
        os.pwrite(self._lock.fd, data.ljust(os.fstat(self._lock.fd).st_size), 0)

    def sync(self) -> None:
        """Makes the marker survive a power cut."""
        os.fsync(self._lock.fd)
        sync_folder(self._lock.path.parent)

    def remove(self) -> None:
        """Removes the marker, because the command has ended."""
        with contextlib.suppress(OSError):
            self._lock.path.unlink()
        self._lock.close()


class LeftOver(NamedTuple):
    """A marker of a process that was killed."""

    path: Path
    start: CommandStart


def running_starts(hermes_home: Path) -> Iterator[CommandStart]:
    """The state of each workspace when its command began, for all commands that are not known to have ended."""
    for path in _markers(hermes_home):
        if (start := _read(path)) is not None:
            yield start


def left_over(hermes_home: Path) -> Iterator[LeftOver]:
    """The markers of processes that were killed, each locked while the caller examines it."""
    for path in _markers(hermes_home):
        with contextlib.suppress(OSError), FileLock(path, create=False) as lock:
            if lock.try_acquire() and (start := _read(path)) is not None:
                yield LeftOver(path, start)


def to_json(value: object) -> bytes:
    """Encodes file names even if they are not UTF-8, which msgspec refuses: a command chooses them."""
    return json.dumps(value).encode()


def _markers(hermes_home: Path) -> list[Path]:
    try:
        with os.scandir(hermes_home / FOLDER) as entries:
            return [Path(entry.path) for entry in entries]
    except OSError:
        return []


def _read(path: Path) -> CommandStart | None:
    try:
        return msgspec.convert(json.loads(path.read_bytes()), CommandStart)
    except (OSError, ValueError):
        return None

"""Records what files looked like when the model last saw them, so that a later change is never overwritten."""

import os
from collections.abc import Callable
from pathlib import Path

import msgspec


class Stamp(msgspec.Struct, frozen=True):
    """What a file looked like: its content if that is known, else its size and times."""

    size: int
    changed: int
    inode: int
    digest: int | None = None

    @classmethod
    def of(cls, status: os.stat_result, digest: int | None = None) -> "Stamp":
        """Returns the stamp of a file with this status."""
        return cls(status.st_size, status.st_mtime_ns, status.st_ino, digest)

    def matches(self, now: "Stamp") -> bool:
        """Whether a file still looks like this."""
        if self.digest is not None and now.digest is not None:
            return self.digest == now.digest
        return (self.size, self.changed, self.inode) == (
            now.size,
            now.changed,
            now.inode,
        )


def digest_of(data: bytes) -> int:
    """Returns a hash of a content, valid within one process."""
    return hash(data)


class FileStamps:
    """The files one session has read or written."""

    def __init__(self) -> None:
        self._stamps: dict[Path, Stamp] = {}
        self._on_write: list[Callable[[Path], None]] = []

    def note(self, path: Path, stamp: Stamp) -> None:
        """Records that the model knows the file as it is now."""
        self._stamps[path] = stamp

    def wrote(self, path: Path, stamp: Stamp | None) -> None:
        """Records that the model changed the file or, without a stamp, deleted it."""
        if stamp is not None:
            self.note(path, stamp)
        for callback in self._on_write:
            callback(path)

    def on_write(self, callback: Callable[[Path], None]) -> None:
        """Calls `callback` with each file the model changes from now on."""
        self._on_write.append(callback)

    def is_current(self, path: Path, now: Stamp) -> bool:
        """Whether the file is as the model last saw it; a file it never saw counts as current."""
        known = self._stamps.get(path)
        return known is None or known.matches(now)

    def forget(self) -> None:
        """Forgets what the model knows about files that were restored."""
        self._stamps.clear()

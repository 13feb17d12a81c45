"""A small file system of its own, to be filled up. Mounting one needs root."""

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest


class SmallDisk:
    """A mounted file system that can be filled up and emptied again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._other = folder / "other"

    def fill_up(self, leave_bytes: int) -> None:
        """Takes all space but so much, as another program would."""
        status = os.statvfs(self.folder)
        free_bytes = status.f_bavail * status.f_frsize
        with self._other.open("wb") as other:
            os.posix_fallocate(other.fileno(), 0, free_bytes - leave_bytes)

    def make_room(self) -> None:
        """Gives the space back."""
        self._other.unlink()


@contextlib.contextmanager
def small_disk(folder: Path, megabytes: int = 210) -> Iterator[SmallDisk]:
    """Mounts a file system there for a test, which is skipped where that is not possible."""
    folder.mkdir()
    options = f"size={megabytes}m"
    mount = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    if (
        os.geteuid()
        or subprocess.run(mount, capture_output=True, check=False).returncode
    ):
        pytest.skip("a file system can't be mounted here")
    try:
        yield SmallDisk(folder)
    finally:
        subprocess.run(["umount", str(folder)], check=True)

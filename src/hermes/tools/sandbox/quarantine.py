"""Moves files that a command left out of the way, and puts files back, never through a link that the command prepared.

Hermes itself is not confined while it does this. So every step goes through a folder that is held open, and a name is
used only within such a folder: wherever a link leads, nothing is read or written there.
"""

import contextlib
import errno
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_OLD = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_BLOCKED = (errno.ENOTDIR, errno.ELOOP)
_COPY_BYTES = 1024 * 1024


class QuarantineFolder:
    """A folder of Hermes' own to which no command can write. It receives the files that are moved away."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @contextlib.contextmanager
    def within(self, top: Path, folder: Path, *, make: bool) -> Iterator[int]:
        """Holds a folder below `top` open. Anything in its way is moved here. Yields -1 if it does not exist and should
        not be created."""
        handle = os.open(top, _FOLDER)
        try:
            for name in folder.relative_to(top).parts:
                inner = self._step(handle, name, make=make)
                os.close(handle)
                handle = inner
                if handle < 0:
                    break
            yield handle
        finally:
            if handle >= 0:
                os.close(handle)

    def take(self, folder: int, name: str) -> None:
        """Moves the entry with this name in an open folder here, if there is one."""
        try:
            mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
        except FileNotFoundError:
            return
        own = os.open(self._folder, _FOLDER)
        new = f"{os.urandom(3).hex()}-{name}"
        try:
            os.rename(name, new, src_dir_fd=folder, dst_dir_fd=own)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            _copy(folder, name, own, new)
            if stat.S_ISDIR(mode):
                shutil.rmtree(name, dir_fd=folder)
            else:
                os.unlink(name, dir_fd=folder)
        finally:
            os.close(own)

    def _step(self, folder: int, name: str, *, make: bool) -> int:
        try:
            return os.open(name, _FOLDER, dir_fd=folder)
        except OSError as error:
            if error.errno in _BLOCKED:
                self.take(folder, name)
            elif error.errno != errno.ENOENT:
                raise
        if not make:
            return -1
        os.mkdir(name, dir_fd=folder)
        return os.open(name, _FOLDER, dir_fd=folder)


def put(folder: int, name: str, mode: int, content: bytes | str) -> None:
    """Creates a file or a link in an open folder; there must be nothing of that name."""
    if stat.S_ISLNK(mode):
        os.symlink(content, name, dir_fd=folder)
        return
    handle = os.open(name, _NEW, 0o600, dir_fd=folder)
    with open(handle, "wb") as file:  # noqa: PTH123 - a file held open, by number
        file.write(content if isinstance(content, bytes) else content.encode())
        os.fchmod(handle, stat.S_IMODE(mode))


def _copy(folder: int, name: str, to: int, new: str) -> None:
    """Copies from one disk to another. Pipes, sockets and devices have no content to keep."""
    mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    if stat.S_ISLNK(mode):
        os.symlink(os.readlink(name, dir_fd=folder), new, dir_fd=to)
    elif stat.S_ISREG(mode):
        _copy_file(folder, name, to, new)
    elif stat.S_ISDIR(mode):
        os.mkdir(new, 0o700, dir_fd=to)
        inside, target = (
            os.open(name, _FOLDER, dir_fd=folder),
            os.open(new, _FOLDER, dir_fd=to),
        )
        try:
            for entry in os.listdir(inside):  # noqa: PTH208 - a folder held open, by number
                _copy(inside, entry, target, entry)
        finally:
            os.close(inside)
            os.close(target)


def _copy_file(folder: int, name: str, to: int, new: str) -> None:
    with (
        open(os.open(name, _OLD, dir_fd=folder), "rb") as source,  # noqa: PTH123 - held open, by number
        open(os.open(new, _NEW, 0o600, dir_fd=to), "wb") as target,  # noqa: PTH123
    ):
        shutil.copyfileobj(source, target, _COPY_BYTES)

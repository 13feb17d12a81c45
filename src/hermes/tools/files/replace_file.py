"""Replaces a user's file in one step: no reader and no crash ever sees half of it, and its mode is preserved.

The path was resolved before, so no part of it is a link. If a part has become one since, it is not followed: only what
was judged is written.
"""

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from hermes.tools.files.file_stamps import Stamp, digest_of

_FOLDER = (
    os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)
)


class StagedFile:
    """New content for a file, complete and on the same disk, to be moved into place. `close` must be called."""

    def __init__(self, path: Path, data: bytes, *, mode: int | None = None) -> None:
        self.path = path
        self.made: list[Path] = []
        """The folders that were created for it, outermost first."""
        self._temporary = f".{os.urandom(8).hex()}.new"
        self._is_placed = False
        self._folder = -1
        try:
            self._folder = _open_folder(path.parent, self.made)
            old = mode_of(self._folder, path)
            self.stamp = self._write(data, old if mode is None else mode)
        except BaseException:
            self.close()
            raise

    def commit(self) -> Stamp:
        """Moves the content into place."""
        os.replace(
            self._temporary,
            self.path.name,
            src_dir_fd=self._folder,
            dst_dir_fd=self._folder,
        )
        self._is_placed = True
        return self.stamp

    def close(self) -> None:
        """Removes content that was not moved into place, and the folders created for it. Idempotent."""
        if self._folder >= 0:
            if not self._is_placed:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(self._temporary, dir_fd=self._folder)
            os.close(self._folder)
            self._folder = -1
        if not self._is_placed:
            remove_folders(self.made)

    def _write(self, data: bytes, mode: int | None) -> Stamp:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        handle = os.open(self._temporary, flags, 0o666, dir_fd=self._folder)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            if mode is not None:
                os.fchmod(handle, mode)
            return Stamp.of(os.fstat(handle), digest_of(data))


class FileMovedAside:
    """A file to be deleted. It is moved aside first, so that it can be restored. `close` must be called."""

    def __init__(self, path: Path) -> None:
        self._name = path.name
        self._hidden = f".{os.urandom(8).hex()}.old"
        self._folder = _open_folder(path.parent, None)
        try:
            os.rename(
                self._name,
                self._hidden,
                src_dir_fd=self._folder,
                dst_dir_fd=self._folder,
            )
        except BaseException:
            os.close(self._folder)
            raise

    def bring_back(self) -> None:
        """Moves the file back."""
        os.rename(
            self._hidden, self._name, src_dir_fd=self._folder, dst_dir_fd=self._folder
        )

    def close(self) -> None:
        """Deletes the file, unless it was restored."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._hidden, dir_fd=self._folder)
        os.close(self._folder)


@contextlib.contextmanager
def folder_of(path: Path) -> Iterator[int]:
    """Opens the folder of a resolved path without following any link."""
    folder = _open_folder(path.parent, None)
    try:
        yield folder
    finally:
        os.close(folder)


def mode_of(folder: int, path: Path) -> int | None:
    """Returns the mode of a file; None if it is new. Raises OSError for anything but a file."""
    try:
        status = os.stat(path.name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, "is a directory", str(path))
    if stat.S_ISLNK(status.st_mode):
        raise OSError(
            errno.ELOOP, "it has become a link since it was looked at", str(path)
        )
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "is not a regular file", str(path))
    if not os.access(path.name, os.W_OK, dir_fd=folder):
        raise PermissionError(errno.EACCES, "is read-only", str(path))
    return stat.S_IMODE(status.st_mode)


def remove_folders(made: list[Path]) -> None:
    """Removes folders that were created for a file that was not written, unless they are in use."""
    for folder in reversed(made):
        with contextlib.suppress(OSError):
            folder.rmdir()


def _open_folder(path: Path, made: list[Path] | None) -> int:
    """Opens a folder step by step. With `made`, creates missing ones and adds them to it."""
    handle = os.open(path.anchor, _FOLDER)
    place = Path(path.anchor)
    for part in path.parts[1:]:
        place /= part
        try:
            inner = _enter(handle, part, place, made)
        finally:
            os.close(handle)
        handle = inner
    return handle


def _enter(handle: int, part: str, place: Path, made: list[Path] | None) -> int:
    try:
        return os.open(part, _FOLDER, dir_fd=handle)
    except FileNotFoundError:
        if made is None:
            raise
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR) and place.is_symlink():
            raise OSError(
                errno.ELOOP,
                f"{place} has become a link since it was looked at",
                str(place),
            ) from error
        raise
    with contextlib.suppress(FileExistsError):
        os.mkdir(part, dir_fd=handle)
        made.append(place)
    return os.open(part, _FOLDER, dir_fd=handle)

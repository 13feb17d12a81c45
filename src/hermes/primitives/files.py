"""Files and folders for this user alone, and files that change atomically.

Functions raise OSError; the caller turns it into a message.
"""

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from io import BufferedWriter
from pathlib import Path

PRIVATE_FILE = 0o600
PRIVATE_FOLDER = 0o700


def open_private(path: Path | bytes, flags: int, *, follow_links: bool = False) -> int:
    """Opens a file as a descriptor and sets its mode to 0600, whatever the umask. Children don't inherit it."""
    if not follow_links:
        flags |= os.O_NOFOLLOW
    fd = os.open(path, flags | os.O_CLOEXEC, PRIVATE_FILE)
    try:
        if stat.S_IMODE(os.fstat(fd).st_mode) != PRIVATE_FILE:
            os.fchmod(fd, PRIVATE_FILE)
    except BaseException:
        os.close(fd)
        raise
    return fd


def open_beneath(folder: Path, name: Path, flags: int) -> int:
    """Opens a file inside a folder as a descriptor, following no link on the way, not even one just created.

    `name` is relative. Only links above `folder` are followed. Raises OSError.
    """
    if name.is_absolute() or not name.parts or ".." in name.parts:
        raise OSError(errno.EINVAL, "Not a path inside the folder", str(name))
    flags |= os.O_NOFOLLOW | os.O_CLOEXEC
    to_folder = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    above = os.open(folder, to_folder)
    try:
        for part in name.parts[:-1]:
            below = os.open(part, to_folder, dir_fd=above)
            os.close(above)
            above = below
        return os.open(name.parts[-1], flags, dir_fd=above)
    finally:
        os.close(above)


def create_private(path: Path | bytes) -> BufferedWriter:
    """Opens a new file with mode 0600 for writing. Raises FileExistsError if there is one."""
    return os.fdopen(open_private(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb")


def make_private(*paths: Path) -> None:
    """Sets the mode of existing files to 0600."""
    for path in paths:
        with contextlib.suppress(FileNotFoundError):
            if stat.S_IMODE(path.stat().st_mode) != PRIVATE_FILE:
                path.chmod(PRIVATE_FILE)


def make_private_folder(folder: Path) -> Path:
    """Creates a folder and its missing parents with mode 0700, whatever the umask. Existing ones keep their mode."""
    missing = [folder]
    while not missing[-1].parent.exists():
        missing.append(missing[-1].parent)
    for path in reversed(missing):
        try:
            path.mkdir(mode=PRIVATE_FOLDER)
        except FileExistsError:
            if not path.is_dir():
                raise
            continue
        with contextlib.suppress(FileNotFoundError):  # another process removed it
            path.chmod(PRIVATE_FOLDER)
    return folder


@contextlib.contextmanager
def replacing(
    target: Path, *, mode: int | None = None, durable: bool = True, alone: bool = True
) -> Iterator[BufferedWriter]:
    """Writes a file beside `target` that replaces it when the block ends without an error.

    A reader sees the old content or the new, never a part. A device, a pipe or a socket is not replaced. With `durable`
    the new content survives a power cut once the block has ended. The mode is `mode`, or else that of the old file, or
    else 0600.

    `alone` says that nobody else writes `target` now, for example because the caller holds a lock. The file beside it
    then has a fixed name, so the next writer removes what a killed one left.
    """
    old = _replaceable(target)
    if mode is None:
        mode = PRIVATE_FILE if old is None else stat.S_IMODE(old.st_mode)
    writer = "" if alone else f".{os.urandom(6).hex()}"
    draft = target.with_name(f".{target.name}{writer}.new")
    draft.unlink(missing_ok=True)
    try:
        with create_private(draft) as file:
            yield file
            file.flush()
            os.fchmod(file.fileno(), mode)
            if durable:
                os.fsync(file.fileno())
        draft.replace(target)
    except BaseException:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)
        raise
    if durable:
        sync_folder(target.parent)


def _replaceable(target: Path) -> os.stat_result | None:
    """Returns the status of the old file, if it exists. Raises OSError for a device, a pipe or a socket."""
    try:
        old = target.stat()
    except FileNotFoundError:
        return None
    if not (stat.S_ISREG(old.st_mode) or stat.S_ISDIR(old.st_mode)):
        raise OSError(errno.EINVAL, "Not a regular file", str(target))
    return old


def replace_file(
    target: Path,
    data: bytes,
    *,
    mode: int | None = None,
    durable: bool = True,
    alone: bool = True,
) -> None:
    """Sets the content of a file atomically; see `replacing`."""
    with replacing(target, mode=mode, durable=durable, alone=alone) as file:
        file.write(data)


def sync_folder(folder: Path) -> None:
    """Makes names that were added, changed or removed in a folder survive a power cut."""
    fd = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)

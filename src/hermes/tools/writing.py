"""Replacing a file of the user's in one step: a reader or a crash never sees half of it, and its mode is kept."""

import contextlib
import os
import stat
from pathlib import Path

from hermes.tools.seen import Stamp, digest_of


def replace_file(path: Path, data: bytes) -> Stamp:
    """Writes `data` to `path`, creating its folder if need be. Raises OSError; then the old file is as it was."""
    path.parent.mkdir(parents=True, exist_ok=True)
    mode = _mode(path)
    temporary = path.with_name(f".{os.urandom(8).hex()}.new")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            if mode is not None:
                os.fchmod(handle, mode)
            status = os.fstat(handle)
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            temporary.unlink()
        raise
    return Stamp.of(status, digest_of(data))


def _mode(path: Path) -> int | None:
    """The mode of the file as it is; None if it is new. Anything but a file can't be replaced."""
    try:
        status = path.lstat()
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(21, "is a directory", str(path))
    if not stat.S_ISREG(status.st_mode):
        raise OSError(22, "is not a regular file", str(path))
    if not os.access(path, os.W_OK):
        raise PermissionError(13, "is read-only", str(path))
    return stat.S_IMODE(status.st_mode)

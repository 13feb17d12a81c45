"""Replacing a file so that a reader, a crash or a second writer never sees half of it."""

import contextlib
import fcntl
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from hermes.errors import SettingsError

_LOCK_SECONDS = 10.0


@contextlib.contextmanager
def locked(path: Path) -> Iterator[Path]:
    """Hold the lock beside `path` (or beside the file it links to) while changing it. Yields that file."""
    target = path.resolve()
    lock = target.with_name(f".{target.name}.lock")
    try:
        handle = os.open(
            lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600
        )
    except OSError as error:
        raise _unwritable(target, error) from error
    try:
        _acquire(handle, target)
        yield target
    finally:
        os.close(handle)


def _acquire(handle: int, target: Path) -> None:
    deadline = time.monotonic() + _LOCK_SECONDS
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if time.monotonic() > deadline:
                raise SettingsError(
                    f"Another process is changing {target}.",
                    hint="Nothing was changed; try again when it is done.",
                ) from error
            time.sleep(0.005)
        else:
            return


def replace(target: Path, text: str, *, mode: int | None = None) -> None:
    """Write `text` to `target` in one step. The mode is `mode`, else that of the old file, else 0600.

    The caller holds the lock, or nobody else writes `target`: what is written first has one name, so that the next
    writer takes away what a killed one left.
    """
    if mode is None:
        mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else 0o600
    temporary = target.with_name(f".{target.name}.new")
    try:
        temporary.unlink(missing_ok=True)
        handle = os.open(
            temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600
        )
        with os.fdopen(handle, "wb") as file:
            file.write(text.encode())
            file.flush()
            os.fchmod(handle, mode)
            os.fsync(handle)
        temporary.replace(target)
        _sync_folder(target.parent)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise _unwritable(target, error) from error


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _unwritable(target: Path, error: OSError) -> SettingsError:
    return SettingsError(
        f"{target} can't be written ({(error.strerror or str(error)).lower()}).",
        hint="Nothing was changed. Check the permissions of its folder, the free space, and HERMES_HOME.",
    )

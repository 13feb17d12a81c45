"""Replaces a settings file atomically, under a lock. Failures are SettingsErrors."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from hermes.errors import SettingsError, os_reason
from hermes.primitives.file_lock import FileLock
from hermes.primitives.files import replace_file
from hermes.text.translation import translator

t = translator(__name__)


_SETTINGS_LOCK_TIMEOUT_S = 10.0


@contextlib.contextmanager
def locked(path: Path) -> Iterator[Path]:
    """Holds the lock beside `path` (or beside the file it links to) during the block. Yields that file."""
    target = path.resolve()
    try:
        lock = FileLock(target.with_name(f".{target.name}.lock"))
    except OSError as error:
        raise _unwritable(target, error) from error
    with lock:
        if not lock.acquire(_SETTINGS_LOCK_TIMEOUT_S):
            raise SettingsError(
                t.later("Another process is changing {target}.", target=target),
                hint=t.later(
                    "Nothing was changed. Try again when that process is done."
                ),
            )
        yield target


def replace(target: Path, content: str | bytes, *, mode: int | None = None) -> None:
    """Writes `content` to `target` atomically. The mode is `mode`, else that of the old file, else
    0600.

    The caller holds the lock, or nobody else writes `target`.
    """
    data = content.encode() if isinstance(content, str) else content
    try:
        replace_file(target, data, mode=mode)
    except OSError as error:
        raise _unwritable(target, error) from error


def _unwritable(target: Path, error: OSError) -> SettingsError:
    return SettingsError(
        t.later(
            "{target} can't be written ({error}).",
            target=target,
            error=os_reason(error),
        ),
        hint=t.later(
            "Nothing was changed. Check the permissions of its folder, the free space, and HERMES_HOME."
        ),
    )

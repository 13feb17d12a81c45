"""Files that only their owner may read, whatever the umask says."""

import os
import stat
from collections.abc import Iterable
from pathlib import Path

_MODE = 0o600


def open_private(path: Path, flags: int) -> int:
    """A file descriptor of a file with mode 0600, made if `flags` say so."""
    fd = os.open(path, flags | os.O_CLOEXEC, _MODE)
    if stat.S_IMODE(os.fstat(fd).st_mode) != _MODE:
        os.fchmod(fd, _MODE)
    return fd


def make_private(paths: Iterable[Path]) -> None:
    """Takes others' permissions away from files that came from elsewhere: a restored backup, a damaged copy."""
    for path in paths:
        if path.exists() and stat.S_IMODE(path.stat().st_mode) != _MODE:
            path.chmod(_MODE)

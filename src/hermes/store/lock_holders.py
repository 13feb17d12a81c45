"""Finds which process holds the lock that this one is waiting for, as far as the kernel reports it."""

import logging
import os
import socket
from pathlib import Path

from hermes.text.translation import translator

t = translator(__name__)


TELL_AFTER_S = 1.0
"""Seconds of waiting before the person is informed."""
log = logging.getLogger("hermes.waiting")
"""Messages logged here are for the person who is waiting; surfaces show them."""

_LOCKS = Path("/proc/locks")


def log_wait(path: Path, timeout: float) -> None:
    """Logs which process this one is waiting for, and for how long at most."""
    text = t.logged(
        "Waiting for {holder} to release {path} ({seconds:.0f} s at most) ...",
        holder=holder_of(path),
        path=path,
        seconds=timeout,
    )
    log.warning("%s", text)


def holder_of(path: Path) -> str:
    """Describes the process that has locked a database or a lock file."""
    files = [path, path.with_name(f"{path.name}-shm")]
    wanted = {found.st_ino for file in files if (found := _stat(file)) is not None}
    own = os.getpid()
    pids = [
        pid
        for pid, inode in _exclusive_locks()
        if inode in wanted and pid not in (own, -1)
    ]
    return process_in_words(pids[0]) if pids else t.logged("another process")


def owner_in_words(owner: str) -> str:
    """Describes the owner of a lease: `host:pid:birth`."""
    host, _, rest = owner.rpartition(":")[0].rpartition(":")
    return (
        process_in_words(int(rest))
        if host == socket.gethostname() and rest.isdigit()
        else owner
    )


def process_in_words(pid: int) -> str:
    """Describes a process: `hermes gateway run (process 123)`."""
    return f"{_command(pid)} (process {pid})"


def _exclusive_locks() -> list[tuple[int, int]]:
    """Yields the process and the file of each exclusive lock; nothing if the kernel does not list them."""
    try:
        lines = _LOCKS.read_text().splitlines()
    except OSError:
        return []
    rows = [line.split() for line in lines if " -> " not in line]
    return [
        (int(row[4]), int(row[5].rpartition(":")[2]))
        for row in rows
        if len(row) > 5 and row[3] == "WRITE"
    ]


def _stat(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except OSError:
        return None


def _command(pid: int) -> str:
    """Returns the command line of a process: the program and its first arguments."""
    try:
        words = (
            Path(f"/proc/{pid}/cmdline")
            .read_bytes()
            .decode(errors="replace")
            .split("\0")
        )
    except OSError:
        return "another process"
    names = [
        word.rpartition("/")[2] for word in words if word and not word.startswith("-")
    ]
    at = next((place for place, name in enumerate(names) if name == "hermes"), 0)
    return " ".join(names[at : at + 3]) or "another process"

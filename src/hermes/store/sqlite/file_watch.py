"""Tells by the files of `state.db` whether another process may have written to it."""

import time
from pathlib import Path

_CLOCK_STEP_S = (
    1.0  # for which a file counts as just changed: its clock has large steps
)


class FileWatch:
    """Watches the database's files. Most looks only compare their times and sizes."""

    def __init__(self, state: Path) -> None:
        self._state = state
        self._stamp: tuple[int, ...] = ()

    async def wait(self, timeout_s: float) -> None:
        """Waits for the whole time: files don't tell when they change."""
        import asyncio  # a command that only reads the log never needs it

        await asyncio.sleep(timeout_s)

    def changed(self) -> bool:
        """Returns whether somebody may have written since the last call."""
        stamp, newest = _stamp(self._state)
        changed = stamp != self._stamp or time.time() - newest < _CLOCK_STEP_S
        self._stamp = stamp
        return changed

    def forget(self) -> None:
        """Makes the next look find a change: what changed was not read."""
        self._stamp = ()

    def close(self) -> None:
        """Does nothing: there is nothing to end."""


def _stamp(state: Path) -> tuple[tuple[int, ...], float]:
    """Times and sizes of the database's files, and the newest of the times."""
    stamp: list[int] = []
    newest = 0.0
    for path in (state, state.with_name(state.name + "-wal")):
        try:
            info = path.stat()
        except FileNotFoundError:  # there is no write-ahead log while nobody writes
            continue
        stamp += [info.st_mtime_ns, info.st_size]
        newest = max(newest, info.st_mtime)
    return tuple(stamp), newest

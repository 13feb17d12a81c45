"""Follows what other processes write into the shared log, and publishes it here, in the order it was written.

Only a look at the file's times is needed to see that nothing happened.
"""

import asyncio
import time
from pathlib import Path

from hermes.app.app import App
from hermes.errors import StoreError

LISTEN = 0.15
"""Seconds between looks."""

READING = "reading what other processes write"
"""What it is called when it fails."""

_FRESH = (
    1.0  # seconds for which a file counts as just changed: its clock has large steps
)
_PAGE = 1000  # rows


class LogFollower:
    """Runs as a task. Rows of this process are published where they are written, not here."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._file = DatabaseFiles(app.home.state)

    async def run(self) -> None:
        """From the newest row on, until it is cancelled."""
        log_of_all = self._app.store.log
        log_of_all.remember()
        last = await asyncio.to_thread(log_of_all.newest)
        while True:
            try:
                while self._file.changed():
                    before = last
                    last, rows = log_of_all.since(before, limit=_PAGE)
                    for row in rows:
                        self._app.publish(row, foreign=True)
                    if last < before + _PAGE:
                        break
                    await asyncio.sleep(0)
            except (StoreError, OSError) as error:
                self._file.forget()
                await asyncio.sleep(self._app.errors.note(READING, error))
            else:
                self._app.errors.succeeded(READING)
            await asyncio.sleep(LISTEN)


class DatabaseFiles:
    """The database's files, as they were at the last look."""

    def __init__(self, state: Path) -> None:
        self._state = state
        self._stamp: tuple[int, ...] = ()

    def changed(self) -> bool:
        """Whether somebody may have written since the last look."""
        stamp, newest = _stamp(self._state)
        changed = stamp != self._stamp or time.time() - newest < _FRESH
        self._stamp = stamp
        return changed

    def forget(self) -> None:
        """Makes the next look find a change: what changed was not read."""
        self._stamp = ()


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

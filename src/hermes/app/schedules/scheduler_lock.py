"""Tells whether a process runs the schedules of a home. Each scheduler holds a shared lock on a file, which the system
releases when the process ends, however it ends."""

import contextlib
import logging
import threading
from collections.abc import Iterator
from pathlib import Path

from hermes.errors import HermesError
from hermes.primitives.file_lock import FileLock
from hermes.settings import Home

log = logging.getLogger("hermes.schedules")

_SCHEDULER_LOCK_TIMEOUT_S = 5.0  # others hold it exclusively only while they look


@contextlib.contextmanager
def on_watch(home: Home) -> Iterator[None]:
    """Inside, this process counts as a scheduler."""
    with contextlib.ExitStack() as stack:
        try:
            home.ensure(_path(home).parent)
            lock = stack.enter_context(FileLock(_path(home)))
            if not lock.acquire(_SCHEDULER_LOCK_TIMEOUT_S, shared=True):
                raise TimeoutError("another process holds the lock")
        except (OSError, HermesError) as error:
            # Jobs run all the same; only others can't see this process.
            log.warning("others can't see that this process runs schedules: %s", error)
        yield


class Lookout:
    """Looks for a process that runs due jobs. Only one look at a time, as two would take each other for a scheduler."""

    def __init__(self, home: Home) -> None:
        self._file = _path(home)
        self._looking = threading.Lock()

    def is_watched(self) -> bool:
        """Whether there is one now."""
        with self._looking:
            try:
                with FileLock(self._file, create=False) as lock:
                    return not lock.try_acquire()
            except OSError:  # there never was one, or the file can't be read
                return False


def _path(home: Home) -> Path:
    return home.root / "run" / "schedules.lock"

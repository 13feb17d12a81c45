"""Whether a process looks after the schedules of a home. Each one that does shares a lock on a file, which the system
lets go of with the process, however that ends."""

import contextlib
import fcntl
import logging
import os
import threading
from collections.abc import Iterator
from pathlib import Path

from hermes.errors import HermesError
from hermes.settings import Home

log = logging.getLogger("hermes.schedules")


@contextlib.contextmanager
def on_watch(home: Home) -> Iterator[None]:
    """While inside, this process looks after the schedules."""
    handle = -1
    try:
        home.ensure(_path(home).parent)
        handle = os.open(
            _path(home), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600
        )
        fcntl.flock(handle, fcntl.LOCK_SH)
    except (
        OSError,
        HermesError,
    ) as error:  # jobs run all the same; only others can't see it
        log.warning("others can't see that this process runs schedules: %s", error)
    try:
        yield
    finally:
        if handle >= 0:
            os.close(handle)


class Lookout:
    """Looks for a process that runs what is due. One look at a time: two would take each other for such a process."""

    def __init__(self, home: Home) -> None:
        self._file = _path(home)
        self._looking = threading.Lock()

    def is_watched(self) -> bool:
        """Whether there is one now."""
        with self._looking:
            try:
                handle = os.open(self._file, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
            except OSError:  # never was one, or nothing can be said
                return False
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
            finally:
                os.close(handle)
            return False


def _path(home: Home) -> Path:
    return home.root / "run" / "schedules.lock"

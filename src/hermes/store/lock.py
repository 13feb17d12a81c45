"""A lock file beside `state.db`: everyone who has the database open holds it shared; whoever replaces or rebuilds the
file needs it alone. So no process ever goes on writing to a database that was renamed under it."""

import fcntl
import os
import time
from pathlib import Path

from hermes.errors import StoreBusy
from hermes.store.holders import TELL_AFTER_S, tell
from hermes.store.private import open_private


class FileLock:
    """An advisory lock that ends with its process, however that ends.

    Going from one kind to the other lets go in between: look again at what the lock protects.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd = open_private(path, os.O_RDWR | os.O_CREAT)

    def share(self, *, timeout: float) -> None:
        """Holds it together with others."""
        self._take(fcntl.LOCK_SH, timeout)

    def own(self, *, timeout: float) -> None:
        """Holds it alone."""
        self._take(fcntl.LOCK_EX, timeout)

    def close(self) -> None:
        """Lets go."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _take(self, kind: int, timeout: float) -> None:
        began = time.monotonic()
        told = False
        while True:
            try:
                fcntl.flock(self._fd, kind | fcntl.LOCK_NB)
            except BlockingIOError:
                waited = time.monotonic() - began
                if waited > TELL_AFTER_S and not told:
                    told = True
                    tell(self.path, timeout)
                if waited > timeout:
                    hint = "Nothing was changed. Stop the other Hermes processes of this home, then try again."
                    raise StoreBusy(f"another Hermes process is using {self.path.parent}", hint=hint) from None
                time.sleep(0.01)
            else:
                return

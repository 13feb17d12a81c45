"""A lock between processes, on a file."""

import fcntl
import os
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from hermes.primitives.files import open_private

_LOCK_POLL_INTERVAL_S = 0.005
_ASYNC_POLL_INTERVAL_S = 0.02


class FileLock:
    """An advisory lock. The system releases it with the process, or with the last child that inherited `fd`.

    Changing between shared and exclusive releases the lock in between, so check the protected data again.
    """

    def __init__(
        self, path: Path, *, create: bool = True, follow_links: bool = False
    ) -> None:
        self.path = path
        flags = os.O_RDWR | (os.O_CREAT if create else 0)
        self.fd = open_private(path, flags, follow_links=follow_links)

    def try_acquire(self, *, shared: bool = False) -> bool:
        """Acquires the lock without waiting. Returns whether this process has it now."""
        kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        try:
            fcntl.flock(self.fd, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def acquire(self, timeout_s: float, *, shared: bool = False) -> bool:
        """Acquires the lock, waiting up to `timeout_s`. Returns whether this process has it now."""
        deadline = time.monotonic() + timeout_s
        while not self.try_acquire(shared=shared):
            if time.monotonic() >= deadline:
                return False
            time.sleep(_LOCK_POLL_INTERVAL_S)
        return True

    async def acquire_async(self, timeout_s: float) -> bool:
        """Does the same as `acquire`, without blocking the event loop."""
        import asyncio  # most users of a lock have no event loop

        deadline = time.monotonic() + timeout_s
        while not self.try_acquire():
            if time.monotonic() >= deadline:
                return False
            await asyncio.sleep(_ASYNC_POLL_INTERVAL_S)
        return True

    def close(self) -> None:
        """Releases the lock and closes the file. Idempotent."""
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

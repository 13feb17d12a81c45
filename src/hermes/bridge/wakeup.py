"""Wakes a thread that waits for a connection."""

import contextlib
import os
import select


class Wakeup:
    """One thread waits; any thread may wake it."""

    def __init__(self) -> None:
        self._heard, self._rung = os.pipe()
        for handle in (self._heard, self._rung):
            os.set_blocking(handle, False)

    def wake(self) -> None:
        """Ends a wait, or the next one."""
        with contextlib.suppress(OSError):  # full: the thread is awake already
            os.write(self._rung, b"!")

    def wait(self, handle: int, also_write: bool, seconds: float) -> bool:
        """Waits for a connection or a wake-up. Returns whether the connection is ready."""
        poll = select.poll()
        poll.register(handle, select.POLLIN | (select.POLLOUT if also_write else 0))
        poll.register(self._heard, select.POLLIN)
        ready = {one for one, _ in poll.poll(max(0.0, seconds) * 1000)}
        if self._heard in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(self._heard, 4096)
        return handle in ready

    def close(self) -> None:
        os.close(self._heard)
        os.close(self._rung)

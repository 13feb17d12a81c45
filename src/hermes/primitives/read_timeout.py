"""A timeout for many short reads in a row.

`asyncio.timeout` creates a timer for every use. A stream has hundreds of reads per second and a timeout of minutes, so
here one timer serves them all: when it fires too early, it is set again.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")


class ReadTimeout:
    """Ends a read that takes too long. For one task at a time."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._reading: asyncio.Task[object] | None = None
        self._due = 0.0
        self._has_expired = False

    async def wait(self, read: Callable[[], Awaitable[T]], limit_s: float) -> T:
        """Returns what `read` returns. Raises TimeoutError if it takes longer than `limit_s`."""
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - a coroutine runs in a task
        cancelled_before = task.cancelling()
        self._due, self._reading = self._loop.time() + limit_s, task
        if self._timer is None or self._timer.when() > self._due:
            self._set_timer()
        try:
            return await read()
        except asyncio.CancelledError as error:
            if self._has_expired and task.cancelling() - 1 <= cancelled_before:
                raise TimeoutError from error
            raise
        finally:
            if self._has_expired:
                task.uncancel()
            self._reading, self._has_expired = None, False

    def close(self) -> None:
        """Removes the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _set_timer(self) -> None:
        self.close()
        self._timer = self._loop.call_at(self._due, self._expire)

    def _expire(self) -> None:
        self._timer = None
        if self._reading is None:
            return
        if self._loop.time() < self._due:
            self._set_timer()
            return
        self._has_expired = True
        self._reading.cancel()

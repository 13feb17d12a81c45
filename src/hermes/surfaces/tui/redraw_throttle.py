"""Limits how often something is redrawn: no more often than anyone sees, and less often if drawing is slow."""

import time
from collections.abc import Callable
from types import TracebackType

_PAUSE_FACTOR = 8.0  # the pause, in multiples of the CPU time that the drawing took
_MIN_INTERVAL_S = 0.014  # about 70 in a second; screens show 60
_MAX_PAUSE_S = 0.5


class RedrawThrottle:
    """Tells when the next drawing is due. As a context manager, measures one drawing."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        cpu_clock: Callable[[], float] = time.thread_time,
    ) -> None:
        self._clock = clock
        self._cpu_clock = cpu_clock  # a busy machine does not count as slow drawing
        self._began = self._cpu_began = 0.0
        self._next = float("-inf")

    @property
    def wait(self) -> float:
        """Seconds until the next drawing is due; zero or less if it is due now."""
        return self._next - self._clock()

    def __enter__(self) -> None:
        self._began, self._cpu_began = self._clock(), self._cpu_clock()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        pause = min(_MAX_PAUSE_S, (self._cpu_clock() - self._cpu_began) * _PAUSE_FACTOR)
        self._next = max(self._began + _MIN_INTERVAL_S, self._clock() + pause)

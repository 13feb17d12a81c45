"""Limits how often something slow is redrawn, so that drawing takes only a small share of the time."""

import time
from collections.abc import Callable
from types import TracebackType

_PAUSE_FACTOR = 8.0  # the pause, in multiples of the drawing's duration
_MAX_PAUSE_S = 0.5


class RedrawThrottle:
    """Tells when the next drawing is due. As a context manager, measures one drawing."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began = 0.0
        self._next = float("-inf")
        self.is_wanted = False
        """Whether there is something new to draw."""

    @property
    def wait(self) -> float:
        """Seconds until the next drawing is due; zero or less if it is due now."""
        return self._next - self._clock()

    def ask(self, *, now: bool = False) -> None:
        """Requests a drawing; with `now`, without a pause."""
        self.is_wanted = True
        if now:
            self._next = float("-inf")

    def forget(self) -> None:
        """Withdraws the request."""
        self.is_wanted = False

    def __enter__(self) -> None:
        self._began = self._clock()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        now = self._clock()
        self._next = now + min(_MAX_PAUSE_S, (now - self._began) * _PAUSE_FACTOR)
        self.is_wanted = False

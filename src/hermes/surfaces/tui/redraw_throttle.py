"""How often something is drawn that takes its time: so often that it takes a small part of the whole, and no less."""

import time
from collections.abc import Callable
from types import TracebackType

_PAUSE_FACTOR = 8.0  # times as long as the drawing took
_MAX_PAUSE_S = 0.5  # seconds without a new picture


class RedrawThrottle:
    """Says when the next drawing is due. As a context manager it takes the time of one."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began = 0.0
        self._next = float("-inf")
        self.is_wanted = False
        """Whether there is something new to draw."""

    @property
    def wait(self) -> float:
        """Seconds until it may be drawn; nothing or less when that is now."""
        return self._next - self._clock()

    def ask(self, *, now: bool = False) -> None:
        """There is something new; `now` when it must be in the next picture."""
        self.is_wanted = True
        if now:
            self._next = float("-inf")

    def forget(self) -> None:
        """There is nothing to draw any more."""
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

"""Ctrl-C at a prompt where nothing runs: only two in a row leave."""

import time
from collections.abc import Callable

_DOUBLE_PRESS_S = 2.0  # seconds


class DoublePress:
    """Remembers the last press for a moment. Any other key makes it forget."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last = float("-inf")

    def again(self) -> bool:
        """Takes notice of a press. Returns whether it is the second in a row."""
        before, self._last = self._last, self._clock()
        return self._last - before <= _DOUBLE_PRESS_S

    def forget(self) -> None:
        """Something else was done."""
        self._last = float("-inf")

"""Delays between attempts that fail repeatedly."""

_MAX_DOUBLINGS = 60


def delay_s(failures: int, *, first_s: float, max_s: float) -> float:
    """Returns the delay after this many failures in a row: `first_s`, then twice as long each time, up to `max_s`."""
    return min(max_s, first_s * 2.0 ** min(failures - 1, _MAX_DOUBLINGS))


class Backoff:
    """The delays of one caller, each longer or shorter by up to `jitter`, so that callers spread out."""

    def __init__(
        self, first_s: float = 1.0, max_s: float = 30.0, *, jitter: float = 0.2
    ) -> None:
        self._first_s = first_s
        self._max_s = max_s
        self._jitter = jitter
        self._failures = 0

    def next_s(self) -> float:
        """Counts a failure and returns how many seconds to wait."""
        self._failures += 1
        delay = delay_s(self._failures, first_s=self._first_s, max_s=self._max_s)
        if not self._jitter:
            return delay
        from random import uniform

        return delay * uniform(1 - self._jitter, 1 + self._jitter)  # noqa: S311 - only spreads the load

    def reset(self) -> None:
        """Starts again with the first delay, after a success."""
        self._failures = 0

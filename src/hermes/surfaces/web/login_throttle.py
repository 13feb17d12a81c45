"""Slows down guessing: after five wrong credentials of a kind each further one doubles the wait, up to a minute."""

from collections.abc import Callable

from hermes.primitives.backoff import delay_s

_FREE = 5  # failures that cost nothing
_LONGEST = 60.0  # seconds
_FORGOTTEN = 600.0  # seconds without a failure after which it begins anew


class Throttle:
    """Counts failures by kind of credential, wherever they come from: this machine is no exception."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._kinds: dict[str, tuple[int, float, float]] = {}
        self.failures = 0

    def wait(self, kind: str) -> float:
        """Seconds until the next try counts; 0 for now."""
        _, until, _ = self._kinds.get(kind, (0, 0.0, 0.0))
        return max(0.0, until - self._clock())

    def failed(self, kind: str) -> None:
        """Notes a wrong credential. One that comes too early lengthens nothing: it was not even looked at."""
        now = self._clock()
        count, until, last = self._kinds.get(kind, (0, 0.0, 0.0))
        self.failures += 1
        if now < until:
            return
        count = 1 if now - last > _FORGOTTEN else count + 1
        penalty = 0.0
        if count >= _FREE:
            penalty = delay_s(count - _FREE + 1, first_s=1.0, max_s=_LONGEST)
        self._kinds[kind] = (count, now + penalty, now)

    def succeeded(self, kind: str) -> None:
        """Begins anew."""
        self._kinds.pop(kind, None)

"""Measures the slowest call of a subscription."""

from collections.abc import Callable

from hermes.events.subscription import Subscription

# A clock that is being adjusted runs this much too fast or slow at most; more is a jump.
MAX_SLEW = 0.0005
TOLERANCE_S = 0.001  # seconds


class Stopwatch:
    """Records durations measured with the wall clock.

    An event needs the wall clock anyway, and reading a second clock for each would cost more than
    the delivery itself. The wall clock may be set, so a new record is checked against a steady
    clock before it counts.
    """

    __slots__ = ("_clock", "_offset", "_since", "_steady")

    def __init__(self, clock: Callable[[], float], steady: Callable[[], float]) -> None:
        self._clock = clock
        self._steady = steady
        self._since = steady()
        self._offset = clock() - self._since

    def record(self, subscription: Subscription, seconds: float) -> None:
        """Records `seconds` if no call took longer and the clock wasn't set meanwhile."""
        now = self._steady()
        offset = self._clock() - now
        jump = offset - self._offset
        # A jump that is longer than the call can't have happened during the call.
        if TOLERANCE_S + MAX_SLEW * (now - self._since) < jump <= seconds:
            seconds -= jump
        self._since, self._offset = now, offset
        subscription.slowest = max(subscription.slowest, seconds)

"""How long to wait between attempts: twice as long each time, up to a bound, and never all at the same moment."""

import random

import msgspec


class RetryDelays(msgspec.Struct, frozen=True):
    """Seconds between the first attempts, and at most."""

    first: float = 1.0
    most: float = 30.0


class Backoff:
    """The waits of one who tries again and again."""

    def __init__(self, pace: RetryDelays) -> None:
        self._pace = pace
        self._delay = pace.first

    def reset(self) -> None:
        """It went well: the next wait is short again."""
        self._delay = self._pace.first

    def next(self) -> float:
        """Seconds to wait now."""
        delay, self._delay = self._delay, min(self._delay * 2, self._pace.most)
        return delay * random.uniform(0.8, 1.2)  # noqa: S311 - only spreads the load

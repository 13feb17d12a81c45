"""A clock that only the test moves."""


class FakeClock:
    """Implements the `Clock` port."""

    def __init__(self, now: float = 1_800_000_000.0) -> None:
        self._now = now

    def now(self) -> float:
        """The time that the test has set."""
        return self._now

    def advance(self, seconds: float) -> None:
        """Moves the time, forwards or backwards."""
        self._now += seconds

"""A clock that stands still until the test moves it."""


class FakeClock:
    """Implements the `Clock` port."""

    def __init__(self, now: float = 1_800_000_000.0) -> None:
        self._now = now

    def now(self) -> float:
        """The time the test chose."""
        return self._now

    def advance(self, seconds: float) -> None:
        """Moves time; backwards too, as real clocks do when they are set."""
        self._now += seconds

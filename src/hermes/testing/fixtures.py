"""What a test controls instead of the machine: the clock, ids, and the home folder."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path


class FakeClock:
    """Implements the `Clock` port."""

    def __init__(self, now: float = 1_800_000_000.0) -> None:
        self._now = now

    def now(self) -> float:
        """Returns the time that the test has set."""
        return self._now

    def advance(self, seconds: float) -> None:
        """Moves the time, forwards or backwards."""
        self._now += seconds


class FakeIds:
    """Implements the `Ids` port: `session-1`, `turn-1`..."""

    def __init__(self) -> None:
        self._sessions = count(1)
        self._turns = count(1)

    def session(self) -> str:
        """Returns the next session id."""
        return f"session-{next(self._sessions)}"

    def turn(self) -> str:
        """Returns the next turn id."""
        return f"turn-{next(self._turns)}"


@contextmanager
def temporary_home() -> Iterator[Path]:
    """Creates an empty home folder, which is removed with all its contents at the end."""
    with tempfile.TemporaryDirectory(prefix="hermes-home-") as folder:
        yield Path(folder)

"""Predictable ids."""

from itertools import count


class FakeIds:
    """Implements the `Ids` port: `session-1`, `turn-1`..."""

    def __init__(self) -> None:
        self._sessions = count(1)
        self._turns = count(1)

    def session(self) -> str:
        """The next session id."""
        return f"session-{next(self._sessions)}"

    def turn(self) -> str:
        """The next turn id."""
        return f"turn-{next(self._turns)}"

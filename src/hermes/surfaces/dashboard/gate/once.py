"""Things that are good for one use and a short time: the link to the first visit, the ticket of a WebSocket."""

import hashlib
import secrets
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")

_MOST = 1000  # that wait to be used


class Once(Generic[T]):
    """Hands out codes that stand for a value, once. Only their hashes are kept."""

    def __init__(self, seconds: float, clock: Callable[[], float]) -> None:
        self.seconds = seconds
        self._clock = clock
        self._waiting: dict[str, tuple[float, T]] = {}

    def issue(self, value: T) -> str:
        """A new code; the oldest give way when there are very many."""
        now = self._clock()
        self._waiting = {name: held for name, held in self._waiting.items() if held[0] > now}
        if len(self._waiting) >= _MOST:
            del self._waiting[next(iter(self._waiting))]
        code = secrets.token_urlsafe(24)
        self._waiting[_digest(code)] = (now + self.seconds, value)
        return code

    def redeem(self, code: str) -> T | None:
        """What the code stands for, the first time and in time."""
        expires, value = self._waiting.pop(_digest(code), (0.0, None))
        return value if expires > self._clock() else None


def _digest(code: str) -> str:
    return hashlib.sha256(code.encode(errors="replace")).hexdigest()

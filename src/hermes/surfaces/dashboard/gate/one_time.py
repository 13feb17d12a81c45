"""Things that are good for one use and a short time: the link to the first visit, the ticket of a WebSocket."""

import hashlib
import secrets
from collections.abc import Callable
from typing import Generic, TypeVar

from hermes.primitives.recent import RecentDict

T = TypeVar("T")

_MOST = 1000  # that wait to be used


class OneTimeCodes(Generic[T]):
    """Hands out codes that stand for a value, once. Only their hashes are kept.

    `era` tells one time from another: a code of an earlier one is void.
    """

    def __init__(
        self, seconds: float, clock: Callable[[], float], era: Callable[[], str] = str
    ) -> None:
        self.seconds = seconds
        self._clock = clock
        self._era = era
        self._waiting: RecentDict[str, tuple[float, str, T]] = RecentDict(_MOST)

    def issue(self, value: T) -> str:
        """A new code; the oldest give way when there are very many."""
        now = self._clock()
        expired = [name for name, held in self._waiting.items() if held[0] <= now]
        for name in expired:
            del self._waiting[name]
        code = secrets.token_urlsafe(24)
        self._waiting[_digest(code)] = (now + self.seconds, self._era(), value)
        return code

    def redeem(self, code: str) -> T | None:
        """What the code stands for, the first time and in time."""
        expires, era, value = self._waiting.pop(_digest(code), (0.0, "", None))
        return value if expires > self._clock() and era == self._era() else None


def _digest(code: str) -> str:
    return hashlib.sha256(code.encode(errors="replace")).hexdigest()

"""What a server may send without being asked: the few kinds that mean something here, at a bounded rate."""

import time
from collections.abc import Callable

LIST_CHANGED = "notifications/tools/list_changed"
PROGRESS = "notifications/progress"
_ADMITTED = frozenset((PROGRESS, "notifications/cancelled"))
_PER_SECOND = 20.0
_BURST = 40.0


class NotificationFilter:
    """Decides message by message. Answers always pass; the rest is dropped when too much comes."""

    def __init__(
        self,
        on_list_changed: Callable[[], None],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._on_list_changed = on_list_changed
        self._now = now
        self._left = _BURST
        self._filled = now()
        self.dropped = 0

    def admits(self, method: str | None, *, wants_answer: bool) -> bool:
        """Whether a message goes on. `method` is None for an answer."""
        if method is None:
            return True
        if method == LIST_CHANGED:
            self._on_list_changed()
            return False
        if not wants_answer and method not in _ADMITTED:
            return False
        now = self._now()
        self._left = min(_BURST, self._left + (now - self._filled) * _PER_SECOND)
        self._filled = now
        if self._left < 1:
            self.dropped += 1
            return False
        self._left -= 1
        return True

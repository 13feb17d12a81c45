"""Limits on a server: how long one call may take, and how much it may send without being asked."""

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Self

LIST_CHANGED = "notifications/tools/list_changed"
PROGRESS = "notifications/progress"
LOG_MESSAGE = "notifications/message"
_ADMITTED = frozenset((PROGRESS, LOG_MESSAGE, "notifications/cancelled"))
_MESSAGES_PER_S = 20.0
_BURST_MESSAGES = 40.0
_MAX_EXTENSION = 10
"""Progress can extend a call to this many times its timeout."""


class CallTimeout:
    """The timeout of one call, after which it raises TimeoutError. Progress extends it, and it is paused while the
    user is asked."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._timeout = asyncio.timeout(seconds)
        self._latest = asyncio.get_running_loop().time() + seconds * _MAX_EXTENSION
        self._pauses = 0
        self._is_over = False

    async def __aenter__(self) -> Self:
        await self._timeout.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        self._is_over = True  # a question can outlive its call
        return await self._timeout.__aexit__(kind, error, trace)

    def extend(self) -> None:
        """Starts the timeout again, because the server reported progress."""
        if not self._pauses and not self._is_over and not self._timeout.expired():
            now = asyncio.get_running_loop().time()
            self._timeout.reschedule(min(now + self._seconds, self._latest))

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Stops the clock while somebody is asked."""
        began = asyncio.get_running_loop().time()
        self._pauses += 1
        if not self._is_over and not self._timeout.expired():
            self._timeout.reschedule(None)
        try:
            yield
        finally:
            self._pauses -= 1
            self._latest += asyncio.get_running_loop().time() - began
            self.extend()


class NotificationFilter:
    """Decides which messages of a server pass. Answers always do; others only if Hermes handles their kind, and at a
    limited rate."""

    def __init__(
        self,
        on_list_changed: Callable[[], None],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._on_list_changed = on_list_changed
        self._now = now
        self._left = _BURST_MESSAGES
        self._refilled_at = now()
        self.dropped = 0

    def admits(self, method: str | None, *, wants_answer: bool) -> bool:
        """Whether a message passes. `method` is None for an answer."""
        if method is None:
            return True
        if method == LIST_CHANGED:
            self._on_list_changed()
            return False
        if not wants_answer and method not in _ADMITTED:
            return False
        now = self._now()
        refilled = self._left + (now - self._refilled_at) * _MESSAGES_PER_S
        self._left = min(_BURST_MESSAGES, refilled)
        self._refilled_at = now
        if self._left < 1:
            self.dropped += 1
            return False
        self._left -= 1
        return True

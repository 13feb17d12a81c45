"""Events as an async iterator, with a bounded queue between the publisher and the reader.

Owns the queue: what is dropped when it is full, the `gap` events that report it, and waking the
reader. A publisher never waits, and wakes the reader once for all that arrived while it slept.
"""

import threading
from collections import deque
from typing import TYPE_CHECKING, Literal, Protocol, Self, get_args

from hermes.events.background import running_loop
from hermes.events.envelope import Envelope, seal
from hermes.events.subscription import Subscription

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Future

Policy = Literal["drop_oldest", "drop_newest", "close"]

GAP = "gap"


class StreamHost(Protocol):
    """What a stream needs from its bus."""

    def attach(self, stream: "Stream") -> Subscription: ...

    def unsubscribe(self, handle: object) -> bool: ...

    def count_dropped(self, subscription: Subscription) -> None: ...

    def now(self) -> float: ...


class Stream:
    """One reader's events. Starts with `async with` and ends when that is left."""

    def __init__(
        self,
        host: StreamHost,
        pattern: str,
        maxsize: int,
        policy: Policy,
        owner: str | None,
    ) -> None:
        if not isinstance(maxsize, int) or isinstance(maxsize, bool) or maxsize < 1:
            raise ValueError(
                f"maxsize must be a whole number of at least 1, not {maxsize!r}"
            )
        if policy not in get_args(Policy):
            raise ValueError(
                f"policy must be one of {', '.join(get_args(Policy))}, not {policy!r}"
            )
        self.pattern = pattern
        self.maxsize = maxsize
        self.policy: Policy = policy
        self.owner = owner
        self._host = host
        self._subscription: Subscription | None = None
        self._loop: AbstractEventLoop | None = None
        # Reentrant, because a signal handler may publish while its own thread is in here.
        self._lock = threading.RLock()
        # Each event with the number of those that are missing right before it.
        self._queue: deque[tuple[int, Envelope]] = deque()
        self._missing = 0  # at the front with drop_oldest, at the back otherwise
        self._waiting: Future[None] | None = None
        self._is_over = False

    async def __aenter__(self) -> Self:
        if self._subscription is not None:
            raise RuntimeError("a stream can be entered once; make another one")
        self._loop = running_loop()
        self._subscription = self._host.attach(self)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def __aiter__(self) -> "Stream":
        return self

    async def __anext__(self) -> Envelope:
        if self._subscription is None or self._loop is None:
            raise RuntimeError("a stream begins with `async with`")
        while True:
            with self._lock:
                event = self._take()
                if event is not None:
                    return event
                if self._is_over:
                    raise StopAsyncIteration
                if self._waiting is not None and not self._waiting.done():
                    raise RuntimeError(
                        "a stream has one reader; make a stream for each"
                    )
                waiting = self._waiting = self._loop.create_future()
            await waiting

    def close(self) -> None:
        """Ends the stream and drops what is queued; safe to call again."""
        if self._subscription is not None:
            self._host.unsubscribe(self._subscription)
        with self._lock:
            self._queue.clear()
            self._missing = 0
        self.finish()

    def finish(self) -> None:
        """Ends the stream after the reader has read what is queued."""
        with self._lock:
            self._is_over = True
            waiting, self._waiting = self._waiting, None
        self._wake(waiting)

    def put(self, event: Envelope) -> None:
        """Queues an event. Called by the publisher, in any thread."""
        with self._lock:
            if self._is_over:
                return
            is_dropped = len(self._queue) >= self.maxsize
            if not is_dropped:
                self._append(event)
            elif self.policy == "drop_oldest":
                self._queue.popleft()
                self._queue.append((0, event))
            self._missing += is_dropped
            waiting, self._waiting = self._waiting, None
        if is_dropped and self._subscription is not None:
            self._host.count_dropped(self._subscription)
            if self.policy == "close":
                self._host.unsubscribe(self._subscription)
        self._wake(waiting)

    def _append(self, event: Envelope) -> None:
        if self.policy == "drop_newest" and self._missing:
            self._queue.append((self._missing, event))
            self._missing = 0
        else:
            self._queue.append((0, event))

    def _take(self) -> Envelope | None:
        """Returns the next event or gap, or None if there is nothing to read."""
        if self._missing and (self.policy == "drop_oldest" or not self._queue):
            missing, self._missing = self._missing, 0
            return self._gap(missing)
        if not self._queue:
            return None
        missing, event = self._queue[0]
        if missing:
            self._queue[0] = (0, event)
            return self._gap(missing)
        self._queue.popleft()
        return event

    def _gap(self, missing: int) -> Envelope:
        content = {"dropped": missing, "pattern": self.pattern, "policy": self.policy}
        return seal(content, GAP, GAP, self._host.now())

    def _wake(self, waiting: "Future[None] | None") -> None:
        loop = self._loop
        if waiting is None or loop is None:
            return
        if running_loop() is loop:
            _resolve(waiting)
            return
        try:
            loop.call_soon_threadsafe(_resolve, waiting)
        except RuntimeError:  # the loop is closed, and the reader went with it
            self.finish()


def _resolve(waiting: "Future[None]") -> None:
    if not waiting.done():
        waiting.set_result(None)

"""Async callbacks: on which loop each runs, and what becomes of its task."""

import logging
import sys
from time import perf_counter
from typing import TYPE_CHECKING, Any, cast

from hermes.events.envelope import Envelope
from hermes.events.subscription import Callback, Subscription
from hermes.events.tally import Outcomes

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Task
    from collections.abc import Awaitable

log = logging.getLogger("hermes.events")

# What a delivery returns when there was no loop for it.
DROPPED = object()


def running_loop() -> "AbstractEventLoop | None":
    """The loop that runs in this thread. Where asyncio was never loaded there is none, and loading it is slow."""
    asyncio = sys.modules.get("asyncio")
    if asyncio is None:
        return None
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


class Background:
    """Runs the async callback of one subscription, a task per event, and keeps the tasks alive until they are done."""

    __slots__ = ("_books", "_callback", "_home", "_in_flight", "_subscription")

    def __init__(self, subscription: Subscription, callback: Callback, totals: Outcomes) -> None:
        self._subscription = subscription
        self._callback = callback
        self._books = (subscription.outcomes, totals)
        self._home = running_loop()
        self._in_flight: dict[AbstractEventLoop, set[object]] = {}

    def deliver(self, event: Envelope) -> object:
        """Run the callback on the publishing thread's loop, or else on the one that it was subscribed from."""
        loop = running_loop()
        if loop is not None:
            self._start(loop, event)
            for book in self._books:
                book.scheduled.add()
            return None
        home = self._home
        if home is None or home.is_closed():
            return DROPPED
        waiting = object()
        self._flying(home).add(waiting)
        try:
            home.call_soon_threadsafe(self._start, home, event, waiting)
        except RuntimeError:  # closed a moment ago
            self._flying(home).discard(waiting)
            return DROPPED
        for book in self._books:
            book.scheduled.add()
        return None

    def settle(self) -> None:
        """Count what was still in flight on a loop when that was closed as dropped: it will never be done."""
        for loop in [loop for loop in list(self._in_flight) if loop.is_closed()]:
            for _ in self._in_flight.pop(loop, ()):
                for book in self._books:
                    book.finished.add()
                    book.dropped.add()

    def _flying(self, loop: "AbstractEventLoop") -> set[object]:
        flying = self._in_flight.get(loop)
        if flying is None:
            self.settle()
            flying = self._in_flight.setdefault(loop, set())
        return flying

    def _start(self, loop: "AbstractEventLoop", event: Envelope, waiting: object = None) -> None:
        flying = self._flying(loop)
        task = loop.create_task(self._run(event), name=f"hermes.events {self._subscription.callback}")
        flying.add(task)
        flying.discard(waiting)
        task.add_done_callback(self._done)

    def _done(self, task: "Task[None]") -> None:
        self._flying(task.get_loop()).discard(task)
        for book in self._books:
            book.finished.add()

    async def _run(self, event: Envelope) -> None:
        from asyncio import CancelledError

        started = perf_counter()
        try:
            await cast("Awaitable[Any]", self._callback(event))
        except (CancelledError, KeyboardInterrupt):
            raise
        except BaseException:
            for book in self._books:
                book.failed.add()
            log.exception("%r failed on the event %r", self._subscription, event.get("type"))
        finally:
            self._subscription.slowest = max(self._subscription.slowest, perf_counter() - started)

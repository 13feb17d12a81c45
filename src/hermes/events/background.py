"""Runs async callbacks: chooses the loop of each, and tracks its task."""

import logging
import sys
from time import perf_counter
from typing import TYPE_CHECKING, Any, cast

from hermes.events.envelope import Envelope
from hermes.events.subscription import Callback, Outcomes, Subscription

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Task
    from collections.abc import Awaitable

log = logging.getLogger("hermes.events")

# What a delivery returns when there was no loop for it.
DROPPED = object()


def running_loop() -> "AbstractEventLoop | None":
    """Returns the loop that runs in this thread. If asyncio was never loaded there is none, and
    loading it is slow.
    """
    asyncio = sys.modules.get("asyncio")
    if asyncio is None:
        return None
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


class InFlight:
    """Every event of a bus that an async callback has yet to finish. Asyncio itself doesn't keep
    tasks alive.
    """

    __slots__ = ("_by_loop", "_totals")

    def __init__(self, totals: Outcomes) -> None:
        self._by_loop: dict[AbstractEventLoop, dict[object, Outcomes]] = {}
        self._totals = totals

    def begin(
        self, loop: "AbstractEventLoop", flight: object, outcomes: Outcomes
    ) -> None:
        """Keeps `flight`, a task or its stand-in, until it ends on this loop."""
        flights = self._by_loop.get(loop)
        if flights is None:
            self.settle()
            flights = self._by_loop.setdefault(loop, {})
        flights[flight] = outcomes
        outcomes.scheduled.add()
        self._totals.scheduled.add()

    def end(self, loop: "AbstractEventLoop", flight: object) -> None:
        """Releases `flight`; a second call changes nothing."""
        outcomes = self._by_loop.get(loop, {}).pop(flight, None)
        if outcomes is not None:
            outcomes.finished.add()
            self._totals.finished.add()

    def settle(self) -> None:
        """Counts as dropped what was in flight on a loop when it was closed."""
        for loop in [loop for loop in self._by_loop.copy() if loop.is_closed()]:
            for flight, outcomes in self._by_loop[loop].copy().items():
                outcomes.dropped.add()
                self._totals.dropped.add()
                self.end(loop, flight)
            self._by_loop.pop(loop, None)


class AsyncCallbacks:
    """Runs the async callback of one subscription, a task per event."""

    __slots__ = ("_callback", "_home", "_in_flight", "_subscription", "_totals")

    def __init__(
        self,
        subscription: Subscription,
        callback: Callback,
        in_flight: InFlight,
        totals: Outcomes,
    ) -> None:
        self._subscription = subscription
        self._callback = callback
        self._in_flight = in_flight
        self._totals = totals
        self._home = running_loop()

    def deliver(self, event: Envelope) -> object:
        """Runs the callback on the publishing thread's loop, or else on the one it was subscribed from."""
        loop = running_loop()
        if loop is not None:
            self._start(loop, event)
            return None
        home = self._home
        if home is None or home.is_closed():
            return DROPPED
        waiting = object()
        self._in_flight.begin(home, waiting, self._subscription.outcomes)
        try:
            home.call_soon_threadsafe(self._start, home, event, waiting)
        except RuntimeError:  # closed a moment ago
            self._in_flight.end(home, waiting)
            return DROPPED
        return None

    def _start(
        self, loop: "AbstractEventLoop", event: Envelope, waiting: object = None
    ) -> None:
        task = loop.create_task(
            self._run(event), name=f"hermes.events {self._subscription.callback}"
        )
        self._in_flight.begin(loop, task, self._subscription.outcomes)
        self._in_flight.end(loop, waiting)
        task.add_done_callback(self._done)

    def _done(self, task: "Task[None]") -> None:
        self._in_flight.end(task.get_loop(), task)

    async def _run(self, event: Envelope) -> None:
        from asyncio import CancelledError

        started = perf_counter()
        try:
            await cast("Awaitable[Any]", self._callback(event))
        except (CancelledError, KeyboardInterrupt):
            raise
        except BaseException:
            self._subscription.outcomes.failed.add()
            self._totals.failed.add()
            log.exception(
                "%r failed on the event %r", self._subscription, event.get("type")
            )
        finally:
            self._subscription.slowest = max(
                self._subscription.slowest, perf_counter() - started
            )

"""The bus: who is subscribed to what, and the way of an event from its publisher to them.

Owns the subscriptions, the cache of routes and the delivery. Publishing takes no lock: a route is looked up in a dict
that is only ever added to, and every change of the subscriptions puts a new, empty dict in its place.

The plain counters here (`calls`, `_under_way`) are advanced by statements without a call in them. CPython
gives other threads their turn at calls and at the end of a loop's body only, so that none of these steps is lost.
"""

import itertools
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from operator import attrgetter
from typing import Any, NamedTuple

from hermes.events.background import DROPPED, AsyncCallbacks, InFlight
from hermes.events.envelope import (
    FLAT,
    Envelope,
    Foreign,
    Unencodable,
    require_mapping,
    seal,
)
from hermes.events.nesting import RecursionGuard, Stop
from hermes.events.stream import Policy, Stream
from hermes.events.subscription import (
    Callback,
    Counter,
    Outcomes,
    Stopwatch,
    Subscription,
    SubscriptionStats,
    is_async,
    require_callback,
)
from hermes.events.trie import Trie

log = logging.getLogger("hermes.events")

RECURSION_STOPPED = "bus.recursion_stopped"
MAX_PUBLISH_DEPTH = 64
MAX_CACHED_ROUTES = 4096
MAX_CACHED_TOPIC_CHARS = 512  # a longer topic is not cached

_owner: ContextVar[str | None] = ContextVar("hermes_events_owner", default=None)
_fill_in = dict.setdefault  # an envelope refuses its own


class BusStats(NamedTuple):
    """Totals since the bus was created, including ended subscriptions, and the live subscriptions
    in order of delivery.
    """

    delivered: int
    failed: int
    dropped: int
    pending: int
    refused: int  # publishes that were nested too deep
    unencodable: int  # events with a value that JSON can't hold; where they are sent on, a string takes its place
    subscriptions: tuple[SubscriptionStats, ...]


class _Route:
    """The subscribers of one topic."""

    __slots__ = ("only", "source", "subscriptions", "topic")

    def __init__(self, topic: str, subscriptions: tuple[Subscription, ...]) -> None:
        self.topic = topic
        self.source = topic.partition(".")[0]
        self.subscriptions = subscriptions
        self.only = subscriptions[0] if len(subscriptions) == 1 else None


class Bus:
    """Carries events from publishers to subscribers in one process. Every method may be called from any thread."""

    __slots__ = (
        "_changes",
        "_changing",
        "_clock",
        "_ended_calls",
        "_guard",
        "_in_flight",
        "_live",
        "_lock",
        "_numbers",
        "_outcomes",
        "_routes",
        "_same",
        "_stopwatch",
        "_trie",
        "_under_way",
        "_unencodable",
    )

    def __init__(
        self,
        *,
        max_depth: int = MAX_PUBLISH_DEPTH,
        clock: Callable[[], float] = time.time,
        steady_clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._clock = clock
        self._stopwatch = Stopwatch(clock, steady_clock)
        self._guard = RecursionGuard(max_depth, Bus.publish.__code__)
        self._trie: Trie[Subscription] = Trie()
        self._routes: dict[str, _Route] = {}
        self._same: dict[tuple[Subscription, ...], tuple[Subscription, ...]] = {}
        self._live: dict[Subscription, None] = {}
        self._numbers = itertools.count()
        # Reentrant, because a finalizer that runs in the middle of a change may end a subscription itself.
        self._lock = threading.RLock()
        self._changes: deque[tuple[bool, Subscription]] = deque()
        self._changing = False
        self._under_way = 0
        self._ended_calls = 0
        self._outcomes = Outcomes()
        self._unencodable = Counter()
        self._in_flight = InFlight(self._outcomes)

    def publish(self, topic: str, payload: Mapping[str, Any] | None = None) -> None:  # noqa: C901, PLR0912
        """Delivers an event to every subscription whose pattern matches `topic`.

        Raises for an empty topic and for a payload that is not a mapping, never because of a
        subscriber or the payload's content.
        """
        # Long, because on this path each function call would cost a tenth of the total. For the same reason
        # the one subscriber that most events have is called right here.
        try:
            route = self._routes[topic]
        except (KeyError, TypeError):
            route = self._find(topic)
        if not route.subscriptions:
            require_mapping(payload)  # a publisher learns of that in any case
            return
        if self._under_way >= self._guard.alarm and self._refuses(route):
            return
        self._under_way += 1
        try:
            clock = self._clock
            started = clock()
            if type(payload) is dict:
                try:
                    event = Envelope(**payload)
                except TypeError:  # a name isn't a string
                    event = self._seal(payload, route, started)
                for value in event.values():
                    kind = type(value)
                    if (
                        kind is not str
                        and kind is not int
                        and (
                            kind not in FLAT or (kind is float and value - value)
                        )  # not a number, or no end to it
                    ):
                        event = (
                            self._seal(payload, route, started)
                            if type(event) is Envelope
                            else event
                        )
                        started = clock()  # sealing may take its time, and that isn't the first subscriber's
                        break
                else:
                    _fill_in(event, "type", route.topic)
                    _fill_in(event, "ts", started)
                    _fill_in(event, "src", route.source)
            elif type(payload) is Foreign:
                event = payload
            else:
                event = self._seal(payload, route, started)
                started = clock()
            only = route.only
            if only is None:
                self._deliver(route, event, started)
                return
            only.calls += 1
            call = (
                only.call
            )  # in two steps: as a method it would be looked up the slow way
            try:
                result = call(event)
                if result is not None and self._examine(only, result):
                    self._warn_of_dropped(route.topic, 1)
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # noqa: BLE001 - a subscriber's failure is its own
                self._note_failure(only, route.topic, error, clock() - started)
                return
            seconds = clock() - started
            if seconds > only.slowest:
                self._stopwatch.record(only, seconds)
        finally:
            self._under_way -= 1

    def has_subscribers(self, topic: str) -> bool:
        """Returns whether a topic has subscribers now, for publishers whose payload is expensive to
        build.
        """
        route = self._routes.get(topic) or self._find(topic)
        return bool(route.subscriptions)

    def subscribe(
        self, pattern: str, callback: Callback, *, owner: str | None = None
    ) -> Subscription:
        """Calls `callback` with every event whose topic matches `pattern`. The returned handle ends
        it.

        Without an owner the subscription belongs to the surrounding `owned_by`, if there is one.
        """
        _check("pattern", pattern)
        require_callback(callback)
        subscription = Subscription(
            pattern, callback, owner or _owner.get(), next(self._numbers)
        )
        if is_async(callback):
            subscription.call = AsyncCallbacks(
                subscription, callback, self._in_flight, self._outcomes
            ).deliver
        self._begin(subscription)
        return subscription

    def unsubscribe(self, handle: object) -> bool:
        """Ends a subscription. Returns True if it was live; False for an ended one and for anything
        that is not a handle.
        """
        if not isinstance(handle, Subscription):
            return False
        try:
            del self._live[handle]
        except KeyError:
            return False
        calls = handle.end()
        self._ended_calls += calls
        self._change(False, handle)
        return True

    def stream(
        self,
        pattern: str,
        maxsize: int = 1000,
        policy: Policy = "drop_oldest",
        *,
        owner: str | None = None,
    ) -> Stream:
        """Returns events as an async iterator, with a bounded queue between the publisher and the
        reader.

        `async with bus.stream("a.**") as events: async for event in events: ...`. When the queue is
        full, `policy` decides what is dropped, and a `gap` event marks where something is missing.
        """
        _check("pattern", pattern)
        return Stream(self, pattern, maxsize, policy, owner or _owner.get())

    def stats(self) -> BusStats:
        """Returns statistics on the events so far."""
        self._in_flight.settle()
        live = sorted(self._live.copy(), key=_by_number)
        calls = self._ended_calls + sum(subscription.calls for subscription in live)
        outcomes = self._outcomes
        failed, dropped, pending = (
            outcomes.failed.value,
            outcomes.dropped.value,
            outcomes.pending,
        )
        return BusStats(
            delivered=max(calls - failed - dropped - pending, 0),
            failed=failed,
            dropped=dropped,
            pending=pending,
            refused=self._guard.refused.value,
            unencodable=self._unencodable.value,
            subscriptions=tuple(subscription.stats() for subscription in live),
        )

    @contextmanager
    def owned_by(self, owner: str) -> Iterator[None]:
        """Makes `owner` own what is subscribed inside, also by tasks started inside."""
        token = _owner.set(owner)
        try:
            yield
        finally:
            _owner.reset(token)

    def end_owned(self, owner: str) -> int:
        """Ends every subscription and stream of `owner`. Returns how many there were."""
        owned = [
            subscription
            for subscription in self._live.copy()
            if subscription.owner == owner
        ]
        return sum(self.unsubscribe(subscription) for subscription in owned)

    def end_all(self) -> int:
        """Ends every subscription and stream. Returns how many there were."""
        return sum(self.unsubscribe(subscription) for subscription in self._live.copy())

    def attach(self, stream: Stream) -> Subscription:
        """Starts the subscription of a stream."""
        subscription = Subscription(
            stream.pattern, stream.put, stream.owner, next(self._numbers)
        )
        subscription.on_end = stream.finish
        self._begin(subscription)
        return subscription

    def now(self) -> float:
        """Returns the time for an envelope built now."""
        return self._clock()

    def count_dropped(self, subscription: Subscription) -> None:
        """Counts an event that a subscription received and dropped."""
        subscription.outcomes.dropped.add()
        self._outcomes.dropped.add()

    def _deliver(self, route: _Route, event: Envelope, started: float) -> None:
        """Calls several subscribers one after the other."""
        clock, dropped = self._clock, 0
        for subscription in route.subscriptions:
            subscription.calls += 1
            call = subscription.call
            try:
                result = call(event)
                if result is not None:
                    dropped += self._examine(subscription, result)
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # noqa: BLE001 - a subscriber's failure is its own
                self._note_failure(subscription, route.topic, error, clock() - started)
                started = clock()
                continue
            ended = clock()
            if ended - started > subscription.slowest:
                self._stopwatch.record(subscription, ended - started)
            started = ended
        if dropped:
            self._warn_of_dropped(route.topic, dropped)

    def _begin(self, subscription: Subscription) -> None:
        self._live[subscription] = None
        self._change(True, subscription)

    def _change(self, is_new: bool, subscription: Subscription) -> None:
        """Changes the trie, then clears all routes: a reader that is still walking keeps its result
        to itself.
        """
        self._changes.append((is_new, subscription))
        with self._lock:
            # Entered again from a finalizer in the middle of a change: that change goes on with this one.
            while self._changes and not self._changing:
                self._changing = True
                try:
                    self._apply(*self._changes.popleft())
                finally:
                    self._changing = False
                    self._forget_routes()

    def _apply(self, is_new: bool, subscription: Subscription) -> None:
        if is_new:
            self._trie.add(subscription.pattern, subscription)
        else:
            self._trie.remove(subscription.pattern, subscription)

    def _forget_routes(self) -> None:
        routes: dict[str, _Route] = {}
        same: dict[tuple[Subscription, ...], tuple[Subscription, ...]] = {}
        self._routes, self._same = routes, same

    def _find(self, topic: str) -> _Route:
        """Finds the route of a topic that isn't cached."""
        _check("topic", topic)
        topic = str.__str__(topic)
        # Taken before the walk: if the subscriptions change meanwhile, a stale route ends up in an abandoned dict.
        routes, same = self._routes, self._same
        found = tuple(sorted(self._trie.match(topic), key=_by_number))
        route = _Route(topic, same.setdefault(found, found))
        if len(routes) >= MAX_CACHED_ROUTES:
            self._forget_routes()
        elif len(topic) <= MAX_CACHED_TOPIC_CHARS:
            routes[topic] = route
        return route

    def _seal(self, payload: object, route: _Route, now: float) -> Envelope:
        event = seal(payload, route.topic, route.source, now)
        if type(event) is Unencodable:
            self._unencodable.add()
        return event

    def _refuses(self, route: _Route) -> bool:
        """Returns whether this publish is nested too deeply, and reports that."""
        depth = self._guard.refuses(self, self._under_way)
        # What is pending here is so because a callback kept the error from the publish that would have told.
        stop = Stop(route.topic, depth) if depth else self._guard.take_pending()
        if stop is not None:
            self._tell_of_refusal(stop)
        return depth > 0

    def _tell_of_refusal(self, stop: Stop) -> None:
        with self._guard.report(stop) as is_first:
            if is_first:
                if self._guard.is_news(stop.topic):
                    log.error(
                        "%.200r was refused: published at depth %d, from its own callbacks",
                        *stop,
                    )
                self.publish(
                    RECURSION_STOPPED, {"stopped": stop.topic, "depth": stop.depth}
                )

    def _examine(self, subscription: Subscription, result: object) -> int:
        """Examines what a callback returned. Returns 1 if the event was dropped for lack of a loop."""
        if result is DROPPED:
            self.count_dropped(subscription)
            return 1
        if isinstance(result, Coroutine):
            result.close()
            subscription.outcomes.failed.add()
            self._outcomes.failed.add()
            if not subscription.warned:
                subscription.warned = True
                log.warning(
                    "%r returned a coroutine that nobody awaits; it was closed: subscribe an async function",
                    subscription,
                )
        return 0

    def _warn_of_dropped(self, topic: str, count: int) -> None:
        log.warning(
            "%.200r was dropped for %d async subscribers: there is no loop for them",
            topic,
            count,
        )

    def _note_failure(
        self,
        subscription: Subscription,
        topic: str,
        error: BaseException,
        seconds: float,
    ) -> None:
        subscription.outcomes.failed.add()
        self._outcomes.failed.add()
        if seconds > subscription.slowest:
            self._stopwatch.record(subscription, seconds)
        if isinstance(error, RecursionError):
            if self._guard.exhausted(topic):
                raise error
            stop = self._guard.take_pending()
            if stop is not None:
                self._tell_of_refusal(stop)
                return
        log.error("%r failed on the event %.200r", subscription, topic, exc_info=error)


_by_number = attrgetter("number")


def _check(what: str, value: object) -> None:
    if not isinstance(value, str):
        raise TypeError(
            f"a {what} must be a string, not {type(value).__qualname__}"
        ) from None
    if not value:
        raise ValueError(f"a {what} can't be empty") from None


_bus = Bus()


def default_bus() -> Bus:
    """Returns the bus of this process, behind `hermes_events`. Constructors are given their bus; only facades use this one."""
    return _bus

"""One subscription: its pattern, callback, owner and statistics."""

import functools
import sys
from collections.abc import Callable
from itertools import repeat
from operator import length_hint
from types import FunctionType
from typing import Any, NamedTuple

from hermes.events.envelope import Envelope

Callback = Callable[[Envelope], object]

# A clock that is being adjusted runs this much too fast or slow at most; more is a jump.
_MAX_SLEW = 0.0005
_TOLERANCE_S = 0.001  # seconds
_CO_GENERATOR, _CO_COROUTINE, _CO_ASYNC_GENERATOR = 0x20, 0x80, 0x200  # as in `inspect`


class SubscriptionStats(NamedTuple):
    """What happened to the events of one subscription: each is delivered, failed, dropped or pending."""

    pattern: str
    owner: str | None
    callback: str
    delivered: int
    failed: int
    dropped: int
    pending: int
    slowest: float  # seconds


class Subscription:
    """The handle that `subscribe` returns. Handles are compared by identity."""

    __slots__ = (
        "call",
        "callback",
        "calls",
        "number",
        "on_end",
        "outcomes",
        "owner",
        "pattern",
        "slowest",
        "warned",
    )

    def __init__(
        self, pattern: str, callback: Callback, owner: str | None, number: int
    ) -> None:
        self.pattern = pattern
        self.callback = name_of(callback)
        self.owner = owner
        self.number = number  # the place in the order of delivery
        self.call = callback
        self.on_end: Callable[[], None] | None = None
        self.calls = 0
        self.slowest = 0.0
        self.outcomes = Outcomes()
        self.warned = False  # that it returns coroutines

    def __repr__(self) -> str:
        owner = f" of {self.owner}" if self.owner else ""
        return f"<Subscription {self.pattern!r} to {self.callback}{owner}>"

    def end(self) -> int:
        """Never calls the callback again, not even for the event being delivered, and releases it.

        Returns how many times it was called: from here on it only pretends.
        """
        self.call, calls = ignore, self.calls
        if self.on_end is not None:
            self.on_end()
        return calls

    def stats(self) -> SubscriptionStats:
        failed, dropped, pending = (
            self.outcomes.failed.value,
            self.outcomes.dropped.value,
            self.outcomes.pending,
        )
        delivered = max(self.calls - failed - dropped - pending, 0)
        return SubscriptionStats(
            self.pattern,
            self.owner,
            self.callback,
            delivered,
            failed,
            dropped,
            pending,
            self.slowest,
        )


def ignore(event: Envelope) -> None:
    """Replaces the callback of a subscription that has ended."""


def is_async(callback: Callable[..., Any]) -> bool:
    """Returns whether a callback has to be awaited: functions, bound methods, partials, objects
    with an async call.
    """
    while isinstance(callback, functools.partial):
        callback = callback.func
    if (flags := _plain_flags(callback)) is not None:
        return bool(flags & _CO_COROUTINE)
    import inspect

    return inspect.iscoroutinefunction(callback) or inspect.iscoroutinefunction(
        type(callback).__call__
    )


def _plain_flags(callback: object) -> int | None:
    """Returns the flags of a function or method that nobody has marked; None for what only `inspect` understands.

    Loading `inspect` takes a twentieth of the time until the prompt.
    """
    function = getattr(callback, "__func__", callback)
    if not isinstance(function, FunctionType) or function.__dict__:
        return None
    return function.__code__.co_flags


def require_callback(callback: object) -> None:
    """Rejects what can't be called, and generators, whose body would never run."""
    if not callable(callback):
        raise TypeError(
            f"a callback must be callable, not {type(callback).__qualname__}"
        )
    flags = _plain_flags(callback)
    if flags is not None and not flags & (_CO_GENERATOR | _CO_ASYNC_GENERATOR):
        return
    import inspect

    if inspect.isgeneratorfunction(callback) or inspect.isasyncgenfunction(callback):
        raise TypeError(
            f"{name_of(callback)} is a generator, so its body would never run: take the event without yield"
        )


def name_of(callback: object) -> str:
    """Returns the callback's name for statistics."""
    while isinstance(callback, functools.partial):
        callback = callback.func
    name = getattr(callback, "__qualname__", None) or type(callback).__qualname__
    module = getattr(callback, "__module__", None) or type(callback).__module__
    return f"{module}.{name}"


class Stopwatch:
    """Records durations measured with the wall clock.

    An event needs the wall clock anyway, and reading a second clock for each would cost more than
    the delivery itself. The wall clock may be set, so a new record is checked against a steady
    clock before it counts.
    """

    __slots__ = ("_clock", "_offset", "_since", "_steady")

    def __init__(self, clock: Callable[[], float], steady: Callable[[], float]) -> None:
        self._clock = clock
        self._steady = steady
        self._since = steady()
        self._offset = clock() - self._since

    def record(self, subscription: Subscription, seconds: float) -> None:
        """Records `seconds` if no call took longer and the clock wasn't set meanwhile."""
        now = self._steady()
        offset = self._clock() - now
        jump = offset - self._offset
        # A jump that is longer than the call can't have happened during the call.
        if _TOLERANCE_S + _MAX_SLEW * (now - self._since) < jump <= seconds:
            seconds -= jump
        self._since, self._offset = now, offset
        subscription.slowest = max(subscription.slowest, seconds)


class Counter:
    """A number that only grows. `add()` is one C call, so that no two threads can count the same step."""

    __slots__ = ("_left", "add")

    def __init__(self) -> None:
        self._left = repeat(None, sys.maxsize)
        self.add = self._left.__next__

    @property
    def value(self) -> int:
        return sys.maxsize - length_hint(self._left)


class Outcomes:
    """Counts what happened to events that were not simply delivered."""

    __slots__ = ("dropped", "failed", "finished", "scheduled")

    def __init__(self) -> None:
        self.failed = Counter()
        self.dropped = Counter()
        self.scheduled = Counter()  # handed to a loop
        self.finished = Counter()  # and done there, well or not

    @property
    def pending(self) -> int:
        finished = self.finished.value
        return max(self.scheduled.value - finished, 0)

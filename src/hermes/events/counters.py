"""Counters that any thread may increment without a lock."""

import sys
from itertools import repeat
from operator import length_hint


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

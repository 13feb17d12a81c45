"""Limits how deeply publishes may nest in a thread: a callback may publish, but not endlessly."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import NamedTuple

from hermes.events.subscription import Counter

# A topic is remembered as reported once; beyond this many topics nothing more is logged.
MAX_REPORTED = 1000

# Frames that whoever is told of a stopped recursion may need; at most a quarter of what Python allows.
SPARE_FRAMES = 200


class Stop(NamedTuple):
    """A publish that was refused because it was nested too deeply."""

    topic: str
    depth: int


class RecursionGuard:
    """Decides which publishes are refused. `alarm` is how many may be running before it has to be asked."""

    __slots__ = ("_local", "_publish", "_reported", "alarm", "limit", "refused")

    def __init__(self, limit: int, publish: CodeType) -> None:
        if limit < 1:
            raise ValueError(f"max_depth must be at least 1, not {limit}")
        self.limit = limit
        self.alarm = limit
        self.refused = Counter()
        self._publish = publish
        self._local = _Trips()
        self._reported: set[str] = set()

    def refuses(self, bus: object, under_way: int) -> int:
        """Returns the depth at which a publish of `bus` is refused in this thread, or 0 if it may
        proceed.

        Once one is refused, every nested one is until the thread's outermost publish of this bus is
        over. Otherwise a callback that publishes twice would double at every level on the way back.
        """
        if under_way == 0:
            self.alarm = self.limit
        trips = self._local
        if trips.exempt:
            trips.exempt = False
            return 0
        frames, _ = _stack(self._publish)
        if trips.tripped and not any(
            frame.f_locals["self"] is bus for frame in frames[1:]
        ):
            trips.tripped = False
        if len(frames) > self.limit:
            self._trip()
        if not trips.tripped:
            return 0
        self.refused.add()
        return len(frames)

    def exhausted(self, topic: str) -> bool:
        """Returns True if Python's stack ended inside nested publishes, too near to report it here.

        It is recorded, and the caller of this publish has to let the error pass.
        """
        frames, height = _stack(self._publish)
        if len(frames) <= 1 or sys.getrecursionlimit() - height >= min(
            SPARE_FRAMES, sys.getrecursionlimit() // 4
        ):
            return False
        self._trip()
        trips = self._local
        if trips.pending is None and trips.reporting is None:
            self.refused.add()
        trips.pending = trips.pending or trips.reporting or Stop(topic, len(frames))
        return True

    def take_pending(self) -> Stop | None:
        """Returns what `exhausted` recorded in this thread, once."""
        stop, self._local.pending = self._local.pending, None
        return stop

    @contextmanager
    def report(self, stop: Stop) -> Iterator[bool]:
        """Lets this thread's next publish through, to report a refusal; False inside another report."""
        trips = self._local
        if trips.reporting:
            yield False
            return
        trips.reporting, trips.exempt = stop, True
        try:
            yield True
        finally:
            trips.reporting, trips.exempt = None, False

    def is_news(self, topic: str) -> bool:
        """Returns True the first time that `topic` is refused."""
        if topic in self._reported or len(self._reported) >= MAX_REPORTED:
            return False
        self._reported.add(topic)
        return True

    def _trip(self) -> None:
        self._local.tripped = True
        self.alarm = 0


class _Trips(threading.local):
    def __init__(self) -> None:
        self.tripped = False
        self.pending: Stop | None = None
        self.reporting: Stop | None = None
        self.exempt = False


def _stack(publish: CodeType) -> tuple[list[FrameType], int]:
    """Returns the publishes, of any bus, that this thread is inside of, innermost first, and its
    stack depth.
    """
    frames: list[FrameType] = []
    height = 0
    frame: FrameType | None = sys._getframe()  # noqa: SLF001 - what inspect.currentframe calls, without loading that
    while frame is not None:
        height += 1
        if frame.f_code is publish:
            frames.append(frame)
        frame = frame.f_back
    return frames, height

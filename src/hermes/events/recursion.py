"""How deep publishes may nest in a thread: a callback may publish, but not without end."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType

# A topic is remembered as reported once; beyond this many topics nothing more is logged.
MAX_REPORTED = 1000


class RecursionGuard:
    """Decides which publishes are refused. `alarm` is how many may be under way before it has to be asked at all."""

    __slots__ = ("_local", "_reported", "alarm", "limit")

    def __init__(self, limit: int) -> None:
        if limit < 1:
            raise ValueError(f"max_depth must be at least 1, not {limit}")
        self.limit = limit
        self.alarm = limit
        self._local = _Trips()
        self._reported: set[str] = set()

    def refuses(self, topic: str, publish: CodeType, under_way: int) -> int:
        """The depth at which `topic` is refused in this thread, or 0 when it may go on.

        A refused topic stays refused until the outermost publish of the thread is over. Otherwise a callback that
        publishes twice would double at every level on the way back.
        """
        if under_way == 0:
            self.alarm = self.limit
        trips = self._local
        if trips.exempt:
            trips.exempt = False
            return 0
        depth = _depth(publish)
        if depth <= 1:
            trips.topics.clear()
            return 0
        if depth > self.limit:
            trips.topics.add(topic)
            self.alarm = 0
        return depth if topic in trips.topics else 0

    @contextmanager
    def report(self) -> Iterator[bool]:
        """Let this thread's next publish through, to report a refusal; False inside of another report."""
        trips = self._local
        if trips.reporting:
            yield False
            return
        trips.reporting = trips.exempt = True
        try:
            yield True
        finally:
            trips.reporting = trips.exempt = False

    def is_news(self, topic: str) -> bool:
        """True the first time that `topic` is refused."""
        if topic in self._reported or len(self._reported) >= MAX_REPORTED:
            return False
        self._reported.add(topic)
        return True


class _Trips(threading.local):
    def __init__(self) -> None:
        self.topics: set[str] = set()
        self.reporting = False
        self.exempt = False


def _depth(publish: CodeType) -> int:
    """How many publishes, of any bus, this thread is inside of."""
    import inspect

    depth = 0
    frame = inspect.currentframe()
    while frame is not None:
        depth += frame.f_code is publish
        frame = frame.f_back
    return depth

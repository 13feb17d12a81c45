"""Writes rows to the session log and publishes each row once, in the order of the log.

Every row of this process is written here, whether the writer blocks or awaits. Rows that other processes wrote are
published here too, when they are found in the log.
"""

import heapq
import threading
from bisect import bisect_right
from collections.abc import Awaitable, Callable
from weakref import WeakValueDictionary

from hermes.primitives.recent import RecentDict
from hermes.schema.event_base import Event
from hermes.schema.events import SessionCreated
from hermes.store.leases import Lease
from hermes.store.log_row import Row
from hermes.store.session_log import SessionLog

_MAX_RECENT_SESSIONS = 1_024
_MAX_PUBLISHED_SESSIONS = 4_096


class LogWriter:
    """The one way to write rows. Safe to use from several threads, and from a subscriber that is being called.

    `publish` receives each row once; the flag says that another process wrote it. `prepare` reads from the store, without
    blocking, what `publish` needs to know about a session.
    """

    def __init__(
        self,
        log: Callable[[], SessionLog],
        publish: Callable[[Row, bool], None],
        prepare: Callable[[str], Awaitable[None]],
    ) -> None:
        self._log = log
        self._publish = publish
        self._prepare = prepare
        self._published = PublishedRows()
        self._lock = threading.Lock()
        self._recent: RecentDict[str, _SessionOrder] = RecentDict(_MAX_RECENT_SESSIONS)
        # Also sessions that are no longer recent but have a write under way.
        self._orders: WeakValueDictionary[str, _SessionOrder] = WeakValueDictionary()

    def create(self, session: str, created: SessionCreated) -> Row:
        """Begins a session; returns its first row."""
        order = self._order(session)
        ticket = order.begin()
        rows: tuple[Row, ...] = ()
        try:
            rows = (self._log().create(session, created),)
        finally:
            self._finish(order, ticket, rows)
        return rows[0]

    def append(
        self, session: str, *events: Event, turn: str = "", lease: Lease | None = None
    ) -> tuple[Row, ...]:
        """Writes the events, all or none, and publishes them. Blocks until they are on disk."""
        order = self._order(session)
        ticket = order.begin()
        rows: tuple[Row, ...] = ()
        try:
            rows = self._log().append(session, *events, turn=turn, lease=lease)
        finally:
            self._finish(order, ticket, rows)
        return rows

    async def write(
        self,
        session: str,
        *events: Event,
        turn: str = "",
        lease: Lease | None = None,
        offer: bool = False,
    ) -> tuple[Row, ...]:
        """As `append`, without blocking the event loop. A caller that may be cancelled shields it.

        With `offer`, the session waits for a worker from then on.
        """
        import asyncio  # here, as a command that only reads the log never needs it

        order = self._order(session)
        ticket = order.begin()
        rows: tuple[Row, ...] = ()
        try:
            rows = await asyncio.wrap_future(
                self._log().submit(
                    session, *events, turn=turn, lease=lease, offer=offer
                )
            )
            await self._prepare(session)
        finally:
            self._finish(order, ticket, rows)
        return rows

    def publish(self, *rows: Row, foreign: bool = False) -> None:
        """Publishes rows that were found in the log, unless they were published before."""
        for row in rows:
            order = self._order(row.session)
            order.add((row,), foreign=foreign)
            self._publish_ready(order)

    def has_published(self, session: str, epoch: int, seq: int) -> bool:
        """Reports whether a row was published in this process."""
        return self._published.has(session, epoch, seq)

    def forget(self, session: str) -> None:
        """Drops the state of a session that was deleted."""
        with self._lock:
            self._orders.pop(session, None)
            self._recent.pop(session, None)

    def _order(self, session: str) -> "_SessionOrder":
        with self._lock:
            order = self._orders.get(session)
            if order is None:
                order = self._orders[session] = _SessionOrder(self._published)
            self._recent[session] = order
        return order

    def _finish(
        self, order: "_SessionOrder", ticket: int, rows: tuple[Row, ...]
    ) -> None:
        order.end(ticket, rows)
        self._publish_ready(order)

    def _publish_ready(self, order: "_SessionOrder") -> None:
        # Whoever holds `publishing` looks again after releasing it, so no row is left behind.
        while order.is_ready() and order.publishing.acquire(blocking=False):
            try:
                while (found := order.next()) is not None:
                    row, foreign = found
                    if self._published.claim(row.session, row.epoch, row.seq):
                        self._publish(row, foreign)
            finally:
                order.publishing.release()


class _SessionOrder:
    """The rows of one session that wait to be published.

    A row waits while a write that began before the row was known is under way, because that write may have an earlier
    row. It does not wait if the row before it was published.
    """

    def __init__(self, published: "PublishedRows") -> None:
        self._published = published
        self._lock = threading.Lock()
        self._ticket = 0
        self._under_way: dict[int, None] = {}  # tickets, oldest first
        self._waiting: list[tuple[int, int, bool, int, Row]] = []  # a heap
        self.publishing = threading.Lock()

    def begin(self) -> int:
        """A write begins."""
        with self._lock:
            self._ticket += 1
            self._under_way[self._ticket] = None
            return self._ticket

    def end(self, ticket: int, rows: tuple[Row, ...]) -> None:
        """A write ended, with these rows or with an error."""
        with self._lock:
            del self._under_way[ticket]
            self._add(rows, foreign=False)

    def add(self, rows: tuple[Row, ...], *, foreign: bool) -> None:
        """Rows were found in the log."""
        with self._lock:
            self._add(rows, foreign=foreign)

    def _add(self, rows: tuple[Row, ...], *, foreign: bool) -> None:
        self._ticket += 1
        for row in rows:
            entry = (row.epoch, row.seq, foreign, self._ticket, row)
            heapq.heappush(self._waiting, entry)

    def is_ready(self) -> bool:
        """Reports whether a row can be published."""
        with self._lock:
            return self._is_ready()

    def next(self) -> tuple[Row, bool] | None:
        """The row to publish now, and whether another process wrote it."""
        with self._lock:
            if not self._is_ready():
                return None
            _, _, foreign, _, row = heapq.heappop(self._waiting)
            return row, foreign

    def _is_ready(self) -> bool:
        if not self._waiting:
            return False
        epoch, seq, _, ticket, row = self._waiting[0]
        oldest = next(iter(self._under_way), ticket)
        return oldest >= ticket or self._published.has(row.session, epoch, seq - 1)


class PublishedRows:
    """Remembers which rows were published, as ranges of seqs. A session mostly has one range."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sessions: RecentDict[tuple[str, int], list[list[int]]] = RecentDict(
            _MAX_PUBLISHED_SESSIONS
        )

    def claim(self, session: str, epoch: int, seq: int) -> bool:
        """Returns True the first time; the caller then publishes the row."""
        with self._lock:
            return _add(self._sessions.get_or_make((session, epoch), list), seq)

    def has(self, session: str, epoch: int, seq: int) -> bool:
        """Reports whether a row was claimed."""
        with self._lock:
            ranges = self._sessions.get((session, epoch), ())
            return any(first <= seq <= last for first, last in ranges)


def _add(ranges: list[list[int]], seq: int) -> bool:
    """Adds a number to sorted ranges `[first, last]`. Returns False when one holds it already."""
    if ranges and ranges[-1][1] == seq - 1:  # nearly always
        ranges[-1][1] = seq
        return True
    index = bisect_right(ranges, seq, key=lambda one: one[0])
    if index and seq <= ranges[index - 1][1]:
        return False
    ranges.insert(index, [seq, seq])
    if index + 1 < len(ranges) and ranges[index + 1][0] == seq + 1:
        ranges[index][1] = ranges.pop(index + 1)[1]
    if index and ranges[index - 1][1] == seq - 1:
        ranges[index - 1][1] = ranges.pop(index)[1]
    return True

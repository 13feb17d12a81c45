"""What waits to be sent to a dashboard: durable events in a spool, transient ones in memory, in the order of birth.

`put` is what a publisher pays for. Everything else happens in the bridge's own thread.
"""

import logging
import threading
import time
import uuid
from bisect import bisect_right
from collections import deque
from collections.abc import Mapping
from operator import itemgetter
from pathlib import Path
from typing import Any

import msgspec

from hermes.bridge.spool import MAX_RECORDS, Spool, thin_out
from hermes.events.envelope import Unencodable
from hermes.events.wire import WireEncoder
from hermes.schema.catalogue import CATALOGUE
from hermes.schema.events import Gap

log = logging.getLogger("hermes.bridge")

MAX_TRANSIENT_EVENTS = 1024
_MAX_EVENT_BYTES = 700 * 1024  # bytes of an event; a dashboard takes messages of 1 MiB
_SHORTEST = (
    16 * 1024
)  # characters that are left of a text in an event that is too large
_READ_BYTES = 128 * 1024  # bytes read from the spool at once
_MAX_ENCODED_EVENTS = 128  # transient events that are encoded at once
_MAX_TOPICS = 1000  # topics whose beginning is remembered
_SPOOLED = "gateway."  # what hooks are told of is no row of a log, so a bridge keeps it

_born = itemgetter(0)
_encode = msgspec.json.Encoder().encode
_DURABLE = frozenset(topic for topic, kind in CATALOGUE.items() if kind.durable)
_SENSITIVE = {
    topic: frozenset(kind.sensitive)
    for topic, kind in CATALOGUE.items()
    if kind.sensitive
}


class _Frame(msgspec.Struct, gc=False, rename={"relay": "_bus_relay"}):
    """A transient event as it is sent."""

    relay: bool
    topic: str
    envelope: Mapping[str, Any]


class Outbox:
    """Filled by publishers in any thread, emptied by one sender. `hide` leaves out sensitive fields."""

    def __init__(
        self,
        place: Path,
        *,
        hide: bool = False,
        most: int = MAX_TRANSIENT_EVENTS,
        most_kept: int = MAX_RECORDS,
    ) -> None:
        self.place = place
        removed = thin_out(place)
        self.publisher = uuid.uuid4().hex
        self.epoch = int(time.time() * 1000)
        self.spool = Spool(
            place / f"{self.epoch:014}-{self.publisher}",
            gap=lambda missing: _gap(missing, "spool_full"),
            max_records=most_kept,
        )
        self._hide = hide
        self.encoder = WireEncoder()
        self._heads: dict[str, bytes] = {}  # how frames begin, by topic
        self._most = most
        self._lock = (
            threading.RLock()
        )  # a signal handler may publish while its thread is in here
        self._passing: deque[tuple[int, Mapping[str, Any]]] = deque()
        self._missing = removed
        self._gaps: deque[tuple[int, int]] = (
            deque()
        )  # on their way: the number of the frame, how many are missing
        self._ahead: deque[tuple[int, bytes]] = deque()
        self._large: deque[bytes] = (
            deque()
        )  # frames of transient events that come next, too large to go together
        self._large_behind = 0  # the record after which they were born
        self._read = 0  # number of the last record that was read from the spool
        self.heard = 0
        """Transient events that were born here."""
        self.dropped = 0
        """Transient events that never arrived: the queue was full, or the connection broke."""
        self.sent = 0
        """Frames without a number of their own that were sent: transient events, and gaps among them."""
        self.cut = 0
        """Events that were too large to be sent whole."""

    def put(self, event: Mapping[str, Any]) -> None:
        """Takes an event in."""
        topic = event.get(
            "type"
        )  # a kind of dict answers that quicker than event["type"]
        if topic.__class__ is str and (topic in _DURABLE or topic.startswith(_SPOOLED)):
            self.spool.add(self._rendered(topic, event))
            return
        with self._lock:
            self.heard += 1
            self._passing.append((self.spool.last, event))
            if len(self._passing) > self._most:
                self._passing.popleft()
                self._missing += 1
                self.dropped += 1

    def rewind(self, arrived: int) -> None:
        """After a reconnect: goes on behind what was acknowledged. Of what was `sent`, so many got through."""
        self.spool.rewind()
        self._ahead.clear()
        self._read = self.spool.acked
        self.settle(arrived)
        lost = max(0, self.sent - arrived) - len(self._gaps)
        with self._lock:
            self.sent = min(self.sent, arrived)
            self.dropped += lost
            self._missing += lost + sum(missing for _, missing in self._gaps)
            self._gaps.clear()

    def settle(self, arrived: int) -> None:
        """So many of what was `sent` have arrived; of these nothing more needs to be known."""
        while self._gaps and self._gaps[0][0] <= arrived:
            self._gaps.popleft()

    def lose(self, count: int) -> None:
        """So many events of others are missing: a gap says so."""
        with self._lock:
            self._missing += count

    def forfeit(self) -> None:
        """Counts as dropped what will not be sent any more."""
        with self._lock:
            self.dropped += len(self._passing) + len(self._large)
            self._passing.clear()
            self._large.clear()

    @property
    def is_filling(self) -> bool:
        """Whether so many transient events wait that some may soon be dropped."""
        return len(self._passing) * 4 > self._most * 3

    @property
    def has_news(self) -> bool:
        """Whether something waits to be sent."""
        return bool(
            self._passing
            or self._large
            or self._missing
            or self._ahead
            or self.spool.last > self._read
        )

    def batch(self, room: int) -> list[bytes]:
        """The next frames, about `room` bytes of them; none when nothing waits. What is one here may be a row of them,
        with commas between them."""
        frames: list[bytes] = []
        size, first = 0, self.sent
        with self._lock:
            missing, self._missing = self._missing, 0
        if missing:
            self._gaps.append((self.sent + 1, missing))
            self._count(frames, (1, _gap(missing, "drop_oldest") + b"}"), first)
        while size < room:
            if row := self._next_row():
                self._count(frames, row, first)
            elif record := self._next_durable():
                frames.append(
                    numbered(record[1], self.publisher, self.epoch, record[0])
                )
            else:
                break
            size += len(frames[-1])
        return frames

    def _count(self, frames: list[bytes], row: tuple[int, bytes], first: int) -> None:
        """Adds frames without a number; before the first one stands where the dashboard begins to count."""
        if self.sent == first:
            frames.append(
                numbered(b"", f"{self.publisher}.transient", self.epoch, first + 1)
            )
        self.sent += row[0]
        frames.append(row[1])

    def _next_row(self) -> tuple[int, bytes] | None:
        """The next transient events, as many as go together, and how many these are."""
        while not self._large:
            events = self._next_passing()
            if not events:
                return None
            if self._hide:
                events = [_shown(event) for event in events]
            row = _encoded(events)
            if 0 < len(row) <= _MAX_EVENT_BYTES:
                return len(events), row
            self._render_each(events)
        return (1, self._large.popleft()) if self._read >= self._large_behind else None

    def _render_each(self, events: list[Mapping[str, Any]]) -> None:
        """Encodes events one by one, when they can't be encoded together."""
        self._large_behind = self._read
        self._large.extend(
            self._rendered(str(event["type"]), event) + b"}" for event in events
        )

    def _next_passing(self) -> list[Mapping[str, Any]]:
        """The next transient events, up to where a durable one was born."""
        with self._lock:
            passing = self._passing
            count = bisect_right(
                passing,
                self._read,
                hi=min(len(passing), _MAX_ENCODED_EVENTS),
                key=_born,
            )
            return [passing.popleft()[1] for _ in range(count)]

    def _next_durable(self) -> tuple[int, bytes] | None:
        """The next record, unless a transient event was born before it."""
        if not self._ahead:
            self._ahead.extend(self.spool.read(_READ_BYTES))
        if not self._ahead:
            return None
        with self._lock:
            if (
                self._passing
                and self._passing[0][0] < self._ahead[0][0]
                and self._passing[0][0] <= self._read
            ):
                return None
        self._read = self._ahead[0][0]
        return self._ahead.popleft()

    def _rendered(self, topic: str, event: Mapping[str, Any]) -> bytes:
        """An event as a frame without its end."""
        if self._hide:
            event = _shown(event)
        data = self.encoder.encode(event)
        if len(data) > _MAX_EVENT_BYTES:
            self.cut += 1
            data = self.encoder.encode(self._shortened(event))
        head = self._heads.get(topic)
        if head is None:
            head = b'{"_bus_relay":true,"topic":%s,"envelope":' % self.encoder.encode(
                topic
            )
            if len(self._heads) < _MAX_TOPICS:
                self._heads[topic] = head
        return head + data

    def _shortened(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """The event with long texts cut and other long values left out. `cut` names those fields."""
        short: dict[str, Any] = {}
        cut: list[str] = []
        for name, value in event.items():
            if isinstance(value, str) and len(value) > _SHORTEST:
                short[name] = value[:_SHORTEST]
            elif isinstance(value, str) or len(self.encoder.encode(value)) <= _SHORTEST:
                short[name] = value
                continue
            cut.append(name)
        return short | {"cut": cut}


def _encoded(events: list[Mapping[str, Any]]) -> bytes:
    """The frames joined by commas; empty if one of the events is not JSON and has to be encoded by itself."""
    if any(type(event) is Unencodable for event in events):
        return b""
    try:
        return _encode(
            [_Frame(True, str(event.get("type")), event) for event in events]
        )[1:-1]
    except (TypeError, ValueError, RecursionError):
        return b""


def _shown(event: Mapping[str, Any]) -> Mapping[str, Any]:
    """The event without its sensitive fields."""
    hidden = _SENSITIVE.get(str(event["type"]), ())
    if not hidden:
        return event
    shown = {name: value for name, value in event.items() if name not in hidden}
    return Unencodable(shown) if type(event) is Unencodable else shown


def numbered(data: bytes, publisher: str, epoch: int, number: int) -> bytes:
    """A record of a spool as a frame, or a number alone."""
    head = data + b"," if data else b"{"
    return b'%s"publisher":"%s","epoch":%d,"seq":%d}' % (
        head,
        publisher.encode(),
        epoch,
        number,
    )


def _gap(missing: int, policy: str) -> bytes:
    gap = msgspec.to_builtins(Gap(dropped=missing, pattern="**", policy=policy))
    return b'{"_bus_relay":true,"topic":"gap","envelope":%s' % _encode(gap)

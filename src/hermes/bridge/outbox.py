"""Events that are queued for a dashboard, in order: durable ones in a spool, transient ones in memory.

Publishers call only `put`. Everything else happens in the bridge's thread.
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
_MAX_EVENT_BYTES = 700 * 1024  # a dashboard accepts messages of 1 MiB
_MAX_CUT_CHARACTERS = (
    16 * 1024
)  # length to which texts are cut in an event that is too large
_READ_BYTES = 128 * 1024  # from the spool at once
_MAX_ENCODED_EVENTS = 128  # at once
_MAX_TOPICS = 1000  # topics whose frame head is cached
_SPOOLED = "gateway."  # events for hooks are in no log, so they are spooled

_born = itemgetter(0)
_encode = msgspec.json.Encoder().encode
_DURABLE = frozenset(topic for topic, kind in CATALOGUE.items() if kind.durable)
_SENSITIVE = {
    topic: frozenset(kind.sensitive)
    for topic, kind in CATALOGUE.items()
    if kind.sensitive
}


class _Frame(msgspec.Struct, gc=False, rename={"relay": "_bus_relay"}):
    """The frame of a transient event."""

    relay: bool
    topic: str
    envelope: Mapping[str, Any]


class _RowPosition(msgspec.Struct, gc=False):
    """The position of a row in the log."""

    session_id: str
    epoch: int
    seq: int


class Outbox:
    """Filled by publishers in any thread, emptied by one sender. `hide` removes sensitive fields.

    With `shared_log`, the dashboard reads the same log, so only the position of a row is sent.
    """

    def __init__(
        self,
        place: Path,
        *,
        hide: bool = False,
        shared_log: bool = False,
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
        self._shared_log = shared_log
        self.encoder = WireEncoder()
        self._heads: dict[str, bytes] = {}  # how frames begin, by topic
        self._most = most
        self._lock = (
            threading.RLock()
        )  # a signal handler may publish while its thread is here
        self._passing: deque[tuple[int, Mapping[str, Any]]] = deque()
        self._missing = removed
        self._gaps: deque[tuple[int, int]] = (
            deque()
        )  # in flight: the number of the frame, and how many events are missing before it
        self._ahead: deque[tuple[int, bytes]] = deque()
        self._large: deque[bytes] = (
            deque()
        )  # next frames of transient events, too large to go together
        self._large_behind = 0  # the record that precedes them
        self._read = 0  # number of the last record read from the spool
        self.heard = 0
        """How many transient events were published here."""
        self.dropped = 0
        """How many of them were lost: the queue was full, or the connection broke."""
        self.sent = 0
        """How many frames without a number were sent: transient events, and gaps between them."""
        self.cut = 0
        """How many events were too large to be sent in full."""

    def put(self, event: Mapping[str, Any]) -> None:
        """Adds an event. Called in the publisher's thread."""
        topic = event.get(
            "type"
        )  # a dict subclass answers this faster than event["type"]
        if topic.__class__ is str and (topic in _DURABLE or topic.startswith(_SPOOLED)):
            is_row = self._shared_log and topic in _DURABLE
            position = _position(event) if is_row else None
            self.spool.add(position or self._rendered(topic, event))
            return
        with self._lock:
            self.heard += 1
            self._passing.append((self.spool.last, event))
            if len(self._passing) > self._most:
                self._passing.popleft()
                self._missing += 1
                self.dropped += 1

    def rewind(self, arrived: int) -> None:
        """After a reconnect, continues after the acknowledged records. `arrived` of the sent frames have arrived."""
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
        """Records that this many of the `sent` frames have arrived and can be forgotten."""
        while self._gaps and self._gaps[0][0] <= arrived:
            self._gaps.popleft()

    def lose(self, count: int) -> None:
        """Adds a gap for missing events of another process."""
        with self._lock:
            self._missing += count

    def forfeit(self) -> None:
        """Counts events that will never be sent as dropped."""
        with self._lock:
            self.dropped += len(self._passing) + len(self._large)
            self._passing.clear()
            self._large.clear()

    @property
    def is_filling(self) -> bool:
        """Whether the queue is so full that events may soon be dropped."""
        return len(self._passing) * 4 > self._most * 3

    @property
    def has_news(self) -> bool:
        """Whether something is queued."""
        return bool(
            self._passing
            or self._large
            or self._missing
            or self._ahead
            or self.spool.last > self._read
        )

    def batch(self, room: int) -> list[bytes]:
        """Returns the next frames, about `room` bytes; empty if none are queued. One may hold several, joined by
        commas.
        """
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
        """Adds frames without a number. Before the first one, sends the number from which the dashboard counts."""
        if self.sent == first:
            frames.append(
                numbered(b"", f"{self.publisher}.transient", self.epoch, first + 1)
            )
        self.sent += row[0]
        frames.append(row[1])

    def _next_row(self) -> tuple[int, bytes] | None:
        """Returns the next transient events that fit together, and their number."""
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
        if self._read >= self._large_behind:
            return (1, self._large.popleft())
        return None

    def _render_each(self, events: list[Mapping[str, Any]]) -> None:
        """Encodes events one by one if they can't be encoded together."""
        self._large_behind = self._read
        self._large.extend(
            self._rendered(str(event["type"]), event) + b"}" for event in events
        )

    def _next_passing(self) -> list[Mapping[str, Any]]:
        """Returns the next transient events, up to the next durable one."""
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
        """Returns the next record, unless a transient event comes first."""
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
        """Returns the beginning of an event's frame."""
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
        """Returns the event with long texts cut and other long values removed. The field `cut` names them."""
        short: dict[str, Any] = {}
        cut: list[str] = []
        for name, value in event.items():
            if isinstance(value, str) and len(value) > _MAX_CUT_CHARACTERS:
                short[name] = value[:_MAX_CUT_CHARACTERS]
            elif (
                isinstance(value, str)
                or len(self.encoder.encode(value)) <= _MAX_CUT_CHARACTERS
            ):
                short[name] = value
                continue
            cut.append(name)
        return short | {"cut": cut}


def _encoded(events: list[Mapping[str, Any]]) -> bytes:
    """Returns the frames joined by commas; empty if an event is not JSON and must be encoded separately."""
    if any(type(event) is Unencodable for event in events):
        return b""
    try:
        return _encode(
            [_Frame(True, str(event.get("type")), event) for event in events]
        )[1:-1]
    except (TypeError, ValueError, RecursionError):
        return b""


def _position(event: Mapping[str, Any]) -> bytes | None:
    """Returns the beginning of a frame that only has a row's position in the log; None if the event is not a row."""
    try:
        row = msgspec.convert(event, _RowPosition)
    except msgspec.ValidationError:
        return None
    frame = {"_bus_relay": True, "row": True, "topic": event["type"], "envelope": row}
    return _encode(frame)[:-1]


def _shown(event: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the event without its sensitive fields."""
    hidden = _SENSITIVE.get(str(event["type"]), ())
    if not hidden:
        return event
    shown = {name: value for name, value in event.items() if name not in hidden}
    return Unencodable(shown) if type(event) is Unencodable else shown


def numbered(data: bytes, publisher: str, epoch: int, number: int) -> bytes:
    """Returns a spool's record as a frame, or only its number."""
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

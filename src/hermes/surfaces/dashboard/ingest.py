"""Receives events from other processes on `/api/pub`, publishes them in this process, and passes them to the
channel's watchers."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from hermes.app import App
from hermes.app.feed import DURABLE, Feed
from hermes.app.feed_inbox import FeedItem, Inbox, cursor_of
from hermes.errors import SessionNotFound, StoreError
from hermes.events.envelope import relay
from hermes.primitives.untyped import object_of
from hermes.schema.events import Gap
from hermes.store.log_row import Row
from hermes.surfaces.dashboard.publisher_cursors import PublisherCursors

log = logging.getLogger("hermes.dashboard")

_MAX_ROW_NUMBER = 2**53  # of an epoch or a seq
_GAP_POLICIES = ("drop_oldest", "spool_full")  # of a bridge that loses events
_RESERVED = ("feed.", "pub.")  # topics of the feeds themselves


class _Params(msgspec.Struct, gc=False):
    """The parameters of a terminal's event. A payload that is no object, or an id that is no text, is ignored."""

    type: str = ""
    session_id: Any = None
    payload: Any = None


class _Frame(msgspec.Struct, gc=False, rename={"relay": "_bus_relay"}):
    """A frame of either kind. A publisher that needs acknowledgements numbers its frames."""

    relay: bool = False
    row: bool = False
    """Whether the envelope is only the position of a row in the log that both processes share."""
    topic: str = ""
    envelope: dict[str, Any] | None = None
    method: str = ""
    params: _Params | None = None
    publisher: str = ""
    epoch: Annotated[int, Meta(ge=0, lt=_MAX_ROW_NUMBER)] = 0
    seq: Annotated[int, Meta(ge=0, lt=_MAX_ROW_NUMBER)] = 0


class Ack(msgspec.Struct, frozen=True):
    """Tells a publisher that its frames up to this number have arrived."""

    publisher: str
    epoch: int
    seq: int
    type: str = "pub.ack"


_Found = list[Row] | StoreError
"""Rows of the log, or why they can't be read."""

_decode = msgspec.json.Decoder(_Frame | list[_Frame]).decode
_decode_one = msgspec.json.Decoder(_Frame).decode
_decode_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_split = msgspec.json.Decoder(list[msgspec.Raw]).decode


class Ingest:
    """Publishes frames. Counts those that were published, refused, and known already."""

    def __init__(self, app: App, feed: Feed, arrivals: PublisherCursors) -> None:
        self._app = app
        self._to = app.bus.publish
        self._feed = feed
        self._arrivals = arrivals
        self._looked_up: dict[tuple[str, int], _Found] = {}  # of the frames at hand
        self._channels: dict[str, set[Inbox]] = {}
        self.published = 0
        self.refused = 0
        self.known = 0
        self.publishers: dict[str, int] = {}
        self.own = ""
        """The name of this process's own bridge, if it has one. Its events have gone in a circle."""

    @contextmanager
    def publishing(self, channel: str) -> Iterator[None]:
        """Inside, somebody publishes on the channel."""
        self.publishers[channel] = self.publishers.get(channel, 0) + 1
        try:
            yield
        finally:
            self.publishers[channel] -= 1
            if not self.publishers[channel]:
                del self.publishers[channel]

    @contextmanager
    def watching(self, channel: str) -> Iterator[Inbox]:
        """An inbox that receives every frame of a channel, as it was sent."""
        inbox = Inbox()
        self._channels.setdefault(channel, set()).add(inbox)
        try:
            yield inbox
        finally:
            self._feed.count_dropped(inbox)
            self._channels[channel].discard(inbox)
            if not self._channels[channel]:
                del self._channels[channel]

    async def publish_frame(
        self, channel: str, text: str | bytes, *, trusted: bool = False
    ) -> list[Ack]:
        """Publishes what a frame holds, and passes the frame on. No input makes it raise.

        Returns the acknowledgements for publishers that number their frames. A `trusted` publisher is a process of this home,
        whose replies and outputs are shown in the feeds of sessions before they are rows of the log.
        """
        frames = self._read(text)
        await self._look_up(frames)
        if watchers := self._channels.get(channel):
            shown = text
            if trusted and any(frame.row for frame in frames):
                shown = self._with_rows(text, frames)
            item = FeedItem(
                shown.encode() if isinstance(shown, str) else shown,
                binary=isinstance(text, bytes),
            )
            for inbox in watchers:
                inbox.put(item)
        with self._feed.relaying(trusted=trusted):
            return self._take_all(frames)

    async def _look_up(self, frames: list[_Frame]) -> None:
        """Reads what the frames name from the log, without blocking the event loop."""
        wanted: dict[tuple[str, int], None] = {}
        for frame in frames:
            position = frame.envelope or {}
            session, (epoch, seq) = position.get("session_id"), cursor_of(position)
            is_durable = frame.row or frame.topic in DURABLE or bool(seq)
            if not isinstance(session, str) or not is_durable:
                continue
            if not self._app.writer.has_published(session, epoch, seq):
                wanted[session, seq if 0 < seq < _MAX_ROW_NUMBER else 0] = None
                named = (session, position.get("root_session_id"))
                for name in named if not frame.row else ():
                    if isinstance(name, str):
                        wanted[name, 0] = None
        self._looked_up = (
            await self._app.store.call(self._read_log, list(wanted))
            if wanted and self._app.has_log
            else {}
        )

    def _read_log(self, wanted: list[tuple[str, int]]) -> dict[tuple[str, int], _Found]:
        """The row at each position, or whether there is such a session."""
        found: dict[tuple[str, int], _Found] = {}
        log_, root = self._app.store.log, self._app.root
        for session, seq in wanted:
            try:
                rows = log_.events(session, after=max(seq - 1, 0), limit=1)
                root(session)
            except StoreError as error:
                found[session, seq] = error
            else:
                found[session, seq] = rows
        return found

    def _events(self, session: str, seq: int) -> list[Row]:
        """The row at a position, or the first one. Raises StoreError."""
        found = self._looked_up.get((session, seq))
        if found is None:
            return self._app.store.log.events(session, after=max(seq - 1, 0), limit=1)
        if isinstance(found, StoreError):
            raise found
        return found

    def _take_all(self, frames: list[_Frame]) -> list[Ack]:
        """Publishes the frames of one message. Notes the number of each, given in the frame or by its position."""
        named: dict[str, None] = {}
        note, seq = None, 0
        for frame in frames:
            if not frame.publisher:
                self._publish(frame)
                if note is not None:
                    note(seq)
                    seq += 1
                continue
            named[frame.publisher] = None
            if frame.seq and not frame.relay and not frame.method:
                seq = frame.seq
                note = self._arrivals.counter(frame.publisher, (frame.epoch, seq - 1))
            elif frame.seq and not self._is_repeated(frame):
                self._publish(frame)
                self._arrivals.set(frame.publisher, (frame.epoch, frame.seq))
        return [Ack(name, *self._arrivals.of(name)) for name in named]

    def _is_repeated(self, frame: _Frame) -> bool:
        """Whether a frame came before. A publisher repeats what was not acknowledged."""
        if frame.publisher != self.own and (frame.epoch, frame.seq) > self._arrivals.of(
            frame.publisher
        ):
            return False
        self.known += 1
        return True

    def _read(self, text: str | bytes) -> list[_Frame]:
        try:
            found = _decode(text)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return self._read_each(text)
        return found if isinstance(found, list) else [found]

    def _read_each(self, text: str | bytes) -> list[_Frame]:
        """Reads a batch that is damaged in part; the rest of it still counts."""
        try:
            parts = _split(text)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            self._refuse("no frame")
            return []
        frames: list[_Frame] = []
        for part in parts:
            try:
                frames.append(_decode_one(part))
            except (msgspec.DecodeError, UnicodeError, RecursionError):
                self._refuse("no frame")
        return frames

    def _with_rows(self, text: str | bytes, frames: list[_Frame]) -> str | bytes:
        """A batch with the event of each row in place of its position. A damaged batch stays as it is."""
        try:
            parts = _split(text)
        except msgspec.DecodeError:
            parts = [msgspec.Raw(text)]
        if len(parts) != len(frames):
            return text
        for index, frame in enumerate(frames):
            if row := self._row(frame) if frame.row else None:
                fields = _decode_fields(parts[index]) | {
                    "envelope": self._app.envelope(row)
                }
                del fields["row"]
                parts[index] = msgspec.Raw(msgspec.json.encode(fields))
        return msgspec.json.encode(parts)

    def _publish(self, frame: _Frame) -> None:
        topic, payload = frame.topic, frame.envelope
        if frame.row:
            self._publish_row(frame)
            return
        if frame.relay and topic and payload is not None:
            if not self._passes(frame, payload):
                return
        elif frame.method == "event" and frame.params is not None and frame.params.type:
            topic, payload = _of_terminal(frame.params)
        else:
            self._refuse("neither a relayed event nor a terminal's")
            return
        try:
            relay(self._to, topic, payload)
        except (TypeError, ValueError) as error:
            self._refuse(str(error))
        else:
            self.published += 1

    def _passes(self, frame: _Frame, payload: dict[str, Any]) -> bool:
        """Whether to publish a relayed event as it was sent.

        A durable event of a session of this home counts only if the log has its row, and then the row is published.
        Otherwise a client that may publish could change what a person is asked to allow.
        """
        topic = frame.topic
        kind = payload.get("type", topic)
        if (
            not isinstance(kind, str)
            or topic.startswith(_RESERVED)
            or kind.startswith(_RESERVED)
        ):
            self._refuse("its topic is reserved")
            return False
        if Gap.topic in {topic, kind} and not (
            topic == kind and _is_gap_of_bridge(payload)
        ):
            self._refuse("a gap, but not one of a bridge")
            return False
        session, (epoch, seq) = payload.get("session_id"), cursor_of(payload)
        if (topic in DURABLE or kind in DURABLE) and self._is_of_this_home(payload):
            if topic == kind and isinstance(session, str):
                self._publish_row(frame)
            else:
                self._refuse("it is of a durable kind, but is not a row")
            return False
        if (
            seq
            and isinstance(session, str)
            and not self._app.is_new_relayed(session, epoch, seq)
        ):
            self.known += 1
            return False
        return True

    def _is_of_this_home(self, payload: dict[str, Any]) -> bool:
        """Whether the event names a session of this log, as its session or as its root."""
        named = (payload.get("session_id"), payload.get("root_session_id"))
        return any(isinstance(session, str) and self._has(session) for session in named)

    def _has(self, session: str) -> bool:
        try:
            return self._app.has_log and bool(self._events(session, 0))
        except SessionNotFound:
            return False
        except StoreError as error:  # an event that can't be checked is not trusted
            log.debug("can't tell whether session %.200r exists: %s", session, error)
            return True

    def _publish_row(self, frame: _Frame) -> None:
        """Publishes the row that a frame names, as the log has it, unless it was published before."""
        position = frame.envelope or {}
        session = str(position.get("session_id", ""))
        if self._app.writer.has_published(session, *cursor_of(position)):
            self.known += 1
        elif (row := self._row(frame)) is None:
            self._refuse("the log has no such row")
        else:
            with self._feed.reading_log():
                self._app.writer.publish(row, foreign=True)
            self.published += 1

    def _row(self, frame: _Frame) -> Row | None:
        """The row of the log that a frame names."""
        position = frame.envelope or {}
        session, (epoch, seq) = position.get("session_id"), cursor_of(position)
        if not isinstance(session, str) or not 0 < seq < _MAX_ROW_NUMBER:
            return None
        try:
            rows = self._events(session, seq)
        except StoreError as error:
            log.debug("can't read row %d of session %.200r: %s", seq, session, error)
            return None
        wanted = (epoch, seq, frame.topic)
        return next(
            (row for row in rows if (row.epoch, row.seq, row.type) == wanted), None
        )

    def _refuse(self, why: str) -> None:
        self.refused += 1
        log.debug("a frame was not published: %s", why)


def _is_gap_of_bridge(payload: dict[str, Any]) -> bool:
    """Whether a gap only says that events of a publisher are missing. Gaps of sessions are reported here."""
    given = {
        name: value
        for name, value in payload.items()
        if name not in {"type", "ts", "src"}
    }
    try:
        gap = msgspec.convert(given, Gap)
    except msgspec.ValidationError:
        return False
    return (
        given.keys() == {"dropped", "pattern", "policy"}
        and gap.dropped > 0
        and gap.policy in _GAP_POLICIES
    )


def _of_terminal(params: _Params) -> tuple[str, dict[str, Any]]:
    """The topic and payload of a terminal's event, without its type, time and source, which are set here."""
    payload = {
        name: value
        for name, value in object_of(params.payload).items()
        if name not in ("type", "ts", "src")
    }
    if isinstance(params.session_id, str):
        payload["session_id"] = params.session_id
    return f"tui.{params.type}", payload


Send = Callable[[bytes], Awaitable[None]]


async def pass_on(inbox: Inbox, send: Send, send_binary: Send) -> None:
    """Sends the frames of an inbox one by one, as they came, and reports where frames are missing."""
    while True:
        await inbox.wait()
        if inbox.is_closed:
            return
        items, dropped = inbox.take()
        if dropped:
            await send(msgspec.json.encode({"type": "gap", "dropped": dropped}))
        for item in items:
            await (send_binary if item.binary else send)(item.data)
        await asyncio.sleep(0)

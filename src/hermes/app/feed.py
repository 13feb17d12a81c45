"""The feed: the events of sessions for readers in this process, replayed from a cursor, then live.

The log is the source of rows. The bus signals when to read the log, and carries the transient events. The terminal,
the gateway, the dashboard and the API server all read sessions through this module.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from threading import get_ident
from typing import Any, TypeAlias

import msgspec

from hermes.app.app import App, EventPublisher
from hermes.app.feed_inbox import READ_LOG, Envelope, FeedItem, Inbox, cursor_of
from hermes.app.live_reply import LiveReply
from hermes.errors import SessionNotFound, StoreError
from hermes.events.wire import WireEncoder
from hermes.primitives.recent import RecentDict
from hermes.schema.catalogue import CATALOGUE
from hermes.store.log_row import Row
from hermes.text.translation import translator

t = translator(__name__)


BATCH_INTERVAL_S = 0.01
PAGE_ROWS = 200
_MAX_LIVE_REPLIES = 1024  # whose live reply is kept
DURABLE = frozenset(topic for topic, kind in CATALOGUE.items() if kind.durable)
"""Topics of events that are rows of the log."""
_QUESTION_TOPICS = ("agent.approval.", "agent.question.")
_REPLY_TOPICS = (
    "agent.message.",
    "agent.reasoning.",
    "agent.tool.",
    "agent.turn.",
    "agent.model.",
    "agent.reply.",
)

Listener: TypeAlias = Callable[[Envelope], None]


class _Group:
    """The inboxes of one topic pattern."""

    def __init__(self) -> None:
        self.handles: list[Any] = []
        self.inboxes: set[Inbox] = set()
        self.last: object = None  # patterns may overlap, so an event may come twice


class Feed:
    """Receives the events of the bus and passes them on, each encoded once. Lives in one event loop.

    Create it inside the loop, and call `stop` at the end.
    """

    def __init__(self, bus: EventPublisher) -> None:
        self._bus = bus
        self._sessions: dict[str, set[Inbox]] = {}
        self._groups: dict[str, _Group] = {}
        self._live: RecentDict[str, LiveReply] = RecentDict(_MAX_LIVE_REPLIES)
        self._asking: dict[str, set[str]] = {}
        self._encoded: tuple[object, bytes] = (None, b"")
        self._is_relaying = False
        self._is_trusted = True
        self._readers = 0
        self._dropped = 0
        self._loop = self.loop = asyncio.get_running_loop()
        self.on_reader: Callable[[str, bool], None] | None = None
        """Called when a session gets its first reader, and when its last one has gone."""
        self._thread = get_ident()
        # An event that nobody subscribes to costs nothing, so other topics are left out while nobody reads a session.
        self._handle = bus.subscribe("agent.**", self._receive)
        self._others: Any = None
        self.encoder = WireEncoder()
        self.watched = asyncio.Event()
        """Set while there is a reader."""

    def stop(self) -> None:
        """Ends every feed."""
        self._bus.unsubscribe(self._handle)
        self._unsubscribe_others()
        for group in list(self._groups.values()):
            self._unsubscribe(group)
        for inbox in [*self._inboxes()]:
            inbox.close()

    @property
    def readers(self) -> int:
        """How many inboxes are open."""
        return sum(1 for _ in self._inboxes())

    @property
    def dropped(self) -> int:
        """How many events were dropped because their reader was slow."""
        return self._dropped + sum(inbox.total_dropped for inbox in self._inboxes())

    def count_dropped(self, inbox: Inbox) -> None:
        """Keeps the count of an inbox that is about to go."""
        self._dropped += inbox.total_dropped

    @property
    def sessions(self) -> list[str]:
        """The sessions that have a reader."""
        return list(self._sessions)

    @property
    def sessions_with_questions(self) -> list[str]:
        """The sessions that have asked a question."""
        return list(self._asking)

    @contextmanager
    def session_inbox(self, session: str) -> Iterator[Inbox]:
        """An inbox that receives the events of one session, and questions of sessions that work for it."""
        inbox = Inbox()
        if self._others is None:
            self._others = self._bus.subscribe("**", self._receive_other)
        is_first = session not in self._sessions
        self._sessions.setdefault(session, set()).add(inbox)
        if is_first and self.on_reader is not None:
            self.on_reader(session, True)
        try:
            with self.watching():
                yield inbox
        finally:
            self.count_dropped(inbox)
            inboxes = self._sessions[session]
            inboxes.discard(inbox)
            if not inboxes:
                del self._sessions[session]
                if self.on_reader is not None:
                    self.on_reader(session, False)
            if not self._sessions:
                self._unsubscribe_others()

    @contextmanager
    def topic_inbox(self, pattern: str) -> Iterator[Inbox]:
        """An inbox that receives the events of a topic pattern, or of several patterns separated by commas."""
        group = self._groups.get(pattern)
        if group is None:
            group = self._groups[pattern] = _Group()
            spread = self.in_loop(lambda event: self._spread(group, event))
            patterns = dict.fromkeys(pattern.split(","))
            group.handles = [self._bus.subscribe(one, spread) for one in patterns]
        inbox = Inbox()
        group.inboxes.add(inbox)
        try:
            with self.watching():
                yield inbox
        finally:
            self.count_dropped(inbox)
            group.inboxes.discard(inbox)
            if not group.inboxes and self._groups.get(pattern) is group:
                del self._groups[pattern]
                self._unsubscribe(group)

    @contextmanager
    def listening(self, pattern: str, listener: Listener) -> Iterator[None]:
        """Calls `listener` with the events of a topic pattern, in the thread of the event loop."""
        handle = self._bus.subscribe(pattern, self.in_loop(listener))
        try:
            yield
        finally:
            self._bus.unsubscribe(handle)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Counts a reader, so that the rows of other processes are looked for."""
        self._readers += 1
        self.watched.set()
        try:
            yield
        finally:
            self._readers -= 1
            if not self._readers:
                self.watched.clear()

    async def keep_watched(self) -> None:
        """Counts as a reader until it is cancelled."""
        with self.watching():
            await asyncio.Event().wait()

    @contextmanager
    def relaying(self, *, trusted: bool) -> Iterator[None]:
        """Inside, events come from another process. Their cursors are not trusted; the log is read instead.

        Of a process that is not trusted itself, only rows of the log reach the readers of a session: a reply or a
        tool's output that it makes up does not.
        """
        with self._as_source(relaying=True, trusted=trusted):
            yield

    @contextmanager
    def reading_log(self) -> Iterator[None]:
        """Inside, events are rows that were read from the log, also while another process relays events."""
        with self._as_source(relaying=False, trusted=True):
            yield

    @contextmanager
    def _as_source(self, *, relaying: bool, trusted: bool) -> Iterator[None]:
        before = self._is_relaying, self._is_trusted
        self._is_relaying, self._is_trusted = relaying, trusted
        try:
            yield
        finally:
            self._is_relaying, self._is_trusted = before

    def live(self, session: str) -> LiveReply:
        """The part of a session that is not in the log yet."""
        return self._live.get(session) or LiveReply()

    def head(self, session: str) -> tuple[int, int]:
        """The cursor of the newest row that was published here."""
        live = self._live.get(session)
        if live:
            return (live.epoch, live.head)
        return (0, 0)

    def restore(
        self, session: str, partial: Envelope, position: tuple[int, int]
    ) -> None:
        """Replaces the part of a session that is not in the log yet, as the process that runs the session knows it.

        `position` is the `(epoch, seq)` of the row that it follows, which may not have been published here.
        """
        live = self._live.get_or_make(session, LiveReply)
        live.restore(partial, position)
        event = live.event(session)
        for inbox in self._sessions.get(session, ()):
            inbox.put(READ_LOG)
            inbox.put(FeedItem(self.encode(event), event=event))

    def report_gap(self, session: str, dropped: int) -> None:
        """Tells the readers of a session that transient events are missing."""
        event = {"type": "gap", "session_id": session, "dropped": dropped}
        for inbox in self._sessions.get(session, ()):
            inbox.put(FeedItem(self.encode(event), event=event))

    def read_log(self, session: str) -> None:
        """Makes the readers of a session read its log."""
        for inbox in self._sessions.get(session, ()):
            inbox.put(READ_LOG)

    def encode(self, event: object) -> bytes:
        """Encodes an event as JSON. The last one is kept, because several readers want it."""
        if self._encoded[0] is not event:
            self._encoded = (event, self.encoder.encode(event))
        return self._encoded[1]

    def in_loop(self, listener: Listener) -> Listener:
        """Wraps a listener so that it is called in the thread of the event loop."""
        thread, call_soon = self._thread, self._loop.call_soon_threadsafe

        def call(event: Envelope) -> None:
            if get_ident() == thread:
                listener(event)
            else:
                call_soon(listener, event)

        return call

    def _inboxes(self) -> Iterator[Inbox]:
        for inboxes in self._sessions.values():
            yield from inboxes
        for group in self._groups.values():
            yield from group.inboxes

    def _receive_other(self, event: Envelope) -> None:
        if not event.get("type", "").startswith("agent."):
            self._receive(event)

    def _receive(self, event: Envelope) -> None:
        session = event.get("session_id")
        if not isinstance(session, str):
            return
        if get_ident() == self._thread:
            if self._is_trusted or event.get("type") in DURABLE:
                self._deliver(session, event, self._is_relaying)
        else:
            self._loop.call_soon_threadsafe(self._deliver, session, event, False)

    def _deliver(self, session: str, event: Envelope, relayed: bool) -> None:
        topic = event.get("type", "")
        epoch, seq = cursor_of(event) if event.get("seq") else (0, 0)
        trusted = bool(seq) and not relayed
        in_reply = topic.startswith(_REPLY_TOPICS)
        if in_reply or trusted:
            live = self._live.get(session)
            if live is None:
                live = self._live[session] = LiveReply()
            if trusted:
                head = max((epoch, seq), (live.epoch, live.head))
                live.epoch, live.head = head
            if not seq or (epoch, seq) > live.restored_at:
                live.note(event)
        inboxes = self._sessions.get(session)
        if inboxes:
            item = READ_LOG
            if trusted or not seq:
                item = FeedItem(self.encode(event), epoch, seq, event=event)
            for inbox in inboxes:
                inbox.put(item)
        if not in_reply and topic.startswith(_QUESTION_TOPICS):
            self._take_question(session, event, relayed=relayed)

    def _take_question(self, session: str, event: Envelope, *, relayed: bool) -> None:
        """A question or its answer. Readers of the session that the work is done for receive it too."""
        call = str(event.get("call_id"))
        if event["type"].endswith(".answered"):
            open_calls = self._asking.get(session, set())
            open_calls.discard(call)
            if not open_calls:
                self._asking.pop(session, None)
        elif not relayed:
            self._asking.setdefault(session, set()).add(call)
        root = event.get("root_session_id")
        for inbox in self._sessions.get(root, ()) if isinstance(root, str) else ():
            inbox.put(FeedItem(self.encode(event), event=event))

    def _unsubscribe_others(self) -> None:
        if self._others is not None:
            self._bus.unsubscribe(self._others)
            self._others = None

    def _unsubscribe(self, group: _Group) -> None:
        for handle in group.handles:
            self._bus.unsubscribe(handle)

    def _spread(self, group: _Group, event: Envelope) -> None:
        if event is group.last:
            return
        group.last = event
        item = FeedItem(self.encode(event), event=event)
        for inbox in group.inboxes:
            inbox.put(item)


class SessionCursor:
    """A position in one session's log. Returns the rows after it in order, each once."""

    def __init__(self, app: App, session: str, *, epoch: int = 0, seq: int = 0) -> None:
        self._app = app
        self.session = session
        self.epoch = epoch
        """The epoch of the rows; 0 to accept any."""
        self.seq = seq
        """The last row that was returned."""

    def page(self) -> list[Row]:
        """The next rows, of one epoch. Empty at the end of the log. Raises SessionNotFound and StoreError."""
        log = self._app.store.log
        return log.events(self.session, after=self.seq, limit=PAGE_ROWS)

    def in_order(self, event: Envelope) -> Iterator[Envelope]:
        """Yields an event that was published, and before it the rows of the log that were not. Skips repeated rows.

        An event without a row, or of another session, is yielded as it is.
        """
        seq = event.get("seq")
        if seq is None or event.get("session_id") != self.session:
            yield event
            return
        if seq > self.seq + 1:
            yield from self._missing(before=seq)
        if seq > self.seq:
            self.seq = seq
            yield event

    def _missing(self, *, before: int) -> Iterator[Envelope]:
        """The rows between the cursor and another row; none when the log can't be read."""
        log, limit = self._app.store.log, before - self.seq - 1
        try:
            rows = log.events(self.session, after=self.seq, limit=limit)
        except StoreError:
            return
        for row in rows:
            if row.seq < before:
                self.seq = row.seq
                yield self._app.envelope(row)


class SessionFeed:
    """The events of one session, in batches: rows from a cursor on, then live events, in order and without gaps."""

    def __init__(
        self,
        app: App,
        feed: Feed,
        session: str,
        *,
        epoch: int = 0,
        after: int = 0,
        interval_s: float = BATCH_INTERVAL_S,
    ) -> None:
        self._app = app
        self._feed = feed
        self._session = session
        self._wanted = (epoch, after)
        self._cursor = SessionCursor(app, session, epoch=epoch, seq=after)
        self._interval_s = interval_s
        self.is_deleted = False

    async def batches(self) -> AsyncGenerator[list[FeedItem]]:
        """A greeting, then everything after the cursor. Raises SessionNotFound if there is no such session."""
        with self._feed.session_inbox(self._session) as inbox:
            yield [await self._hello()]
            epoch, after = self._wanted
            if after and epoch not in {0, self._cursor.epoch}:
                self._cursor.seq = 0
                yield [self._epoch_changed(epoch)]
            try:
                async for batch in self.follow(inbox):
                    yield batch
            except SessionNotFound:
                self.is_deleted = True
                yield [self._note("feed.deleted")]

    async def follow(self, inbox: Inbox) -> AsyncIterator[list[FeedItem]]:
        """Everything after the cursor, from an inbox that was opened before."""
        loop = asyncio.get_running_loop()
        async for batch in self._catch_up(inbox):
            yield batch
        sent = loop.time()
        while True:
            await inbox.wait()
            if inbox.is_closed:
                return
            if (early := sent + self._interval_s - loop.time()) > 0:
                await asyncio.sleep(early)
            items, dropped = inbox.take()
            sent = loop.time()
            if dropped:
                gap = {"dropped": dropped, "pattern": "**", "policy": "drop_newest"}
                yield [self._note("gap", **gap)]
                batches = self._catch_up(inbox)
            else:
                batches = self._in_order(items)
            async for batch in batches:
                yield batch

    async def _catch_up(self, inbox: Inbox) -> AsyncIterator[list[FeedItem]]:
        """The log up to its end, then the live reply: together, everything up to this moment."""
        cursor = self._cursor
        while True:
            async for batch in self._rows():
                yield batch
            epoch, head = self._feed.head(self._session)
            if epoch != cursor.epoch or head <= cursor.seq:
                break
        inbox.take()  # all of it is in the rows or in the live reply
        partial = self._feed.live(self._session).event(self._session)
        yield [FeedItem(self._feed.encode(partial), event=partial)]

    async def _in_order(self, items: list[FeedItem]) -> AsyncIterator[list[FeedItem]]:
        """Live events. Where a row is missing, the log is read instead."""
        cursor = self._cursor
        batch: list[FeedItem] = []
        for item in items:
            has_row = bool(item.seq) and item.epoch == cursor.epoch
            if has_row and item.seq <= cursor.seq:
                continue
            if (has_row and item.seq == cursor.seq + 1) or (item.data and not item.seq):
                cursor.seq = item.seq or cursor.seq
                batch.append(item)
                continue
            if batch:
                yield batch
                batch = []
            async for rows in self._rows():
                yield rows
        if batch:
            yield batch

    async def _rows(self) -> AsyncIterator[list[FeedItem]]:
        """The rows after the cursor, with a note where some are missing."""
        cursor = self._cursor
        while rows := await asyncio.to_thread(cursor.page):
            if rows[0].epoch != cursor.epoch:
                was, cursor.epoch, cursor.seq = cursor.epoch, rows[0].epoch, 0
                yield [self._epoch_changed(was)]
                continue
            batch = await asyncio.to_thread(self._items, rows)
            cursor.seq = rows[-1].seq
            yield batch

    def _items(self, rows: list[Row]) -> list[FeedItem]:
        items: list[FeedItem] = []
        last = self._cursor.seq
        for row in rows:
            if row.seq > last + 1:
                missing = self._note("feed.truncated", first=last + 1, last=row.seq - 1)
                items.append(missing)
            last = row.seq
            event = self._app.envelope(row)
            data = msgspec.json.encode(event)
            items.append(FeedItem(data, row.epoch, row.seq, event=event))
        return items

    async def _hello(self) -> FeedItem:
        info = await asyncio.to_thread(self._app.store.sessions.find, self._session)
        if info.id != self._session:
            raise SessionNotFound(
                t.later("there is no session {session}", session=self._session),
                hint=t.later("A feed needs the whole id."),
            )
        self._cursor.epoch = info.epoch
        return self._note("feed.hello", epoch=info.epoch, head=info.head)

    def _epoch_changed(self, was: int) -> FeedItem:
        return self._note("feed.epoch_changed", was=was, epoch=self._cursor.epoch)

    def _note(self, kind: str, **fields: Any) -> FeedItem:
        event = {"type": kind, "session_id": self._session, **fields}
        return FeedItem(msgspec.json.encode(event), event=event)

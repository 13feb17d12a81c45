"""The hub: hears the bus once and hands each event to the feeds that want it, encoded once. It lives in the event loop;
what is published in other threads is brought there."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from threading import get_ident
from typing import Any

from hermes.app.app import EventPublisher
from hermes.events.wire import WireEncoder
from hermes.schema.catalogue import CATALOGUE
from hermes.surfaces.dashboard.feeds.inbox import LOOK, Inbox, Item, cursor_of
from hermes.surfaces.dashboard.feeds.partial import Partial

PATIENCE = 10.0
HASTE = 30.0
_REMEMBERED = 1024  # sessions whose state is kept
DURABLE = frozenset(topic for topic, kind in CATALOGUE.items() if kind.durable)
"""Topics of events that are rows of the log."""
_QUESTIONS = ("agent.approval.", "agent.question.")
_TRACED = (
    "agent.message.",
    "agent.reasoning.",
    "agent.tool.",
    "agent.turn.",
    "agent.model.",
    "agent.reply.",
)


class _Group:
    """Feeds of one pattern, or of several with commas between them."""

    def __init__(self) -> None:
        self.handles: list[Any] = []
        self.inboxes: set[Inbox] = set()
        self.last: object = None  # what was handed out last: patterns may overlap


class Hub:
    """To be started inside the loop, and stopped."""

    def __init__(self, bus: EventPublisher) -> None:
        self._bus = bus
        self._loop = asyncio.get_running_loop()
        self._home = get_ident()
        self._sessions: dict[str, set[Inbox]] = {}
        self._groups: dict[str, _Group] = {}
        self._partials: dict[str, Partial] = {}
        self._asking: dict[str, set[str]] = {}
        self._last: tuple[object, bytes] = (None, b"")
        self._relaying = False
        self._is_trusted = True
        self._stays = 0
        self._handle = bus.subscribe("**", self._heard)
        self.watched = asyncio.Event()
        self._lost = 0
        self.encoder = WireEncoder()
        self.closed_slow = 0
        self.patience = PATIENCE
        """Seconds that a consumer may take nothing before it is let go."""
        self.haste = HASTE
        """Seconds that the head of a request may take."""

    def stop(self) -> None:
        """Ends every feed."""
        self._bus.unsubscribe(self._handle)
        for group in list(self._groups.values()):
            self._leave(group)
        for inbox in [*self._inboxes()]:
            inbox.finish()

    @property
    def feeds(self) -> int:
        return sum(1 for _ in self._inboxes())

    @property
    def lost(self) -> int:
        """How many events were dropped because a consumer was slow."""
        return self._lost + sum(inbox.lost for inbox in self._inboxes())

    def note_lost(self, inbox: Inbox) -> None:
        """Counts what an inbox lost that is about to go."""
        self._lost += inbox.lost

    @property
    def sessions(self) -> list[str]:
        """Sessions that somebody watches."""
        return list(self._sessions)

    @contextmanager
    def listening(self, session: str) -> Iterator[Inbox]:
        """While inside, what concerns the session comes into the inbox."""
        inbox = Inbox()
        self._sessions.setdefault(session, set()).add(inbox)
        try:
            with self.staying():
                yield inbox
        finally:
            self.note_lost(inbox)
            inboxes = self._sessions[session]
            inboxes.discard(inbox)
            if not inboxes:
                del self._sessions[session]

    @contextmanager
    def overhearing(self, pattern: str) -> Iterator[Inbox]:
        """While inside, whatever is published under topics of that pattern comes into the inbox."""
        group = self._groups.get(pattern)
        if group is None:
            group = _Group()
            hear = self._hearing(group)
            group.handles = [
                self._bus.subscribe(one, hear)
                for one in dict.fromkeys(pattern.split(","))
            ]
            self._groups[pattern] = group
        inbox = Inbox()
        group.inboxes.add(inbox)
        try:
            with self.staying():
                yield inbox
        finally:
            self.note_lost(inbox)
            group.inboxes.discard(inbox)
            if not group.inboxes and self._groups.get(pattern) is group:
                del self._groups[pattern]
                self._leave(group)

    @contextmanager
    def staying(self) -> Iterator[None]:
        """While inside, what other processes write is looked for."""
        self._stays += 1
        self.watched.set()
        try:
            yield
        finally:
            self._stays -= 1
            if not self._stays:
                self.watched.clear()

    @contextmanager
    def relaying(self, *, trusted: bool) -> Iterator[None]:
        """While inside, what is published comes from another process, and is not believed to be in the log.

        If the process is not trusted, only rows of the log reach the feeds of sessions: a reply or a tool's output that
        it makes up does not.
        """
        self._relaying, self._is_trusted = True, trusted
        try:
            yield
        finally:
            self._relaying, self._is_trusted = False, True

    def partial(self, session: str) -> Partial:
        """What is being said in a session; empty when nothing is known."""
        return self._partials.get(session) or Partial()

    def head(self, session: str) -> tuple[int, int]:
        """The newest row of a session that was published here."""
        known = self._partials.get(session)
        return (known.epoch, known.head) if known else (0, 0)

    @property
    def asking(self) -> list[str]:
        """Sessions that were seen to wait for a person."""
        return list(self._asking)

    def look(self, session: str) -> None:
        """Lets the feeds of a session look into the log."""
        for inbox in self._sessions.get(session, ()):
            inbox.put(LOOK)

    def encode(self, event: object) -> bytes:
        """An event in JSON; the one before is remembered, because several ask for the same."""
        if self._last[0] is not event:
            self._last = (event, self.encoder.encode(event))
        return self._last[1]

    def _inboxes(self) -> Iterator[Inbox]:
        for inboxes in self._sessions.values():
            yield from inboxes
        for group in self._groups.values():
            yield from group.inboxes

    def _heard(self, event: Mapping[str, Any]) -> None:
        session = event.get("session_id")
        if not isinstance(session, str):
            return
        if get_ident() == self._home:
            if self._is_trusted or event.get("type") in DURABLE:
                self._take(session, event, self._relaying)
        else:
            self._loop.call_soon_threadsafe(self._take, session, event, False)

    def _take(self, session: str, event: Mapping[str, Any], relayed: bool) -> None:
        topic = event.get(
            "type", ""
        )  # asked for by `get`, as a kind of dict is quicker to answer that
        epoch, seq = cursor_of(event) if event.get("seq") else (0, 0)
        traced = topic.startswith(_TRACED)
        if traced or (seq and not relayed):
            partial = self._partials.get(session) or self._begin(session)
            if seq and not relayed:
                partial.epoch, partial.head = max(
                    (epoch, seq), (partial.epoch, partial.head)
                )
            partial.note(event)
        inboxes = self._sessions.get(session)
        if inboxes:
            item = LOOK if seq and relayed else Item(self.encode(event), epoch, seq)
            for inbox in inboxes:
                inbox.put(item)
        if not traced and topic.startswith(_QUESTIONS):
            self._ask(session, event, relayed=relayed)

    def _ask(self, session: str, event: Mapping[str, Any], *, relayed: bool) -> None:
        """A question, or its answer: those who watch the session it is worked for see it too."""
        if event["type"].endswith(".answered"):
            self._asking.get(session, set()).discard(str(event.get("call_id")))
            if not self._asking.get(session):
                self._asking.pop(session, None)
        elif not relayed:
            self._asking.setdefault(session, set()).add(str(event.get("call_id")))
        root = event.get("root_session_id")
        for inbox in self._sessions.get(root, ()) if isinstance(root, str) else ():
            inbox.put(Item(self.encode(event)))

    def _begin(self, session: str) -> Partial:
        """Follows what is being said in a session from now on."""
        partial = self._partials[session] = Partial()
        if len(self._partials) > _REMEMBERED:
            del self._partials[next(iter(self._partials))]
        return partial

    def _hearing(self, group: _Group) -> Callable[[Mapping[str, Any]], None]:
        def hear(event: Mapping[str, Any]) -> None:
            if get_ident() == self._home:
                self._spread(group, event)
            else:
                self._loop.call_soon_threadsafe(self._spread, group, event)

        return hear

    def _leave(self, group: _Group) -> None:
        for handle in group.handles:
            self._bus.unsubscribe(handle)

    def _spread(self, group: _Group, event: Mapping[str, Any]) -> None:
        if event is group.last:
            return
        group.last = event
        item = Item(self.encode(event))
        for inbox in group.inboxes:
            inbox.put(item)

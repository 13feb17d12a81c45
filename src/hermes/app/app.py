"""`App`: settings, home, bus and session log of one process, and the one way to write events: durable, then published.

Nothing is opened or imported before it is needed: a command that only reads the log never loads the bus.
"""

import copy
import logging
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self
from weakref import WeakValueDictionary

from hermes.app.ordered_publisher import Feed
from hermes.app.published_rows import PublishedRows
from hermes.core.ids import SystemIds
from hermes.core.ports import Clock, Ids, SystemClock
from hermes.errors import StoreError
from hermes.primitives.recent import RecentDict
from hermes.primitives.repeated_errors import RepeatedErrors
from hermes.schema.event import Event
from hermes.schema.events import SessionCreated, TurnEnded
from hermes.settings import Home, Secrets, Settings
from hermes.store import Store, exists, open_store
from hermes.store.json_snapshots import write_snapshot
from hermes.store.leases import Lease
from hermes.store.log_row import Row

if TYPE_CHECKING:
    from hermes.app.exporters import Outside

log = logging.getLogger("hermes.app")

_REMEMBERED = 1_024  # sessions


class EventPublisher(Protocol):
    """What the app needs of the event bus."""

    def publish(
        self, topic: str, payload: Mapping[str, Any] | None = None, /
    ) -> None: ...

    def heard(self, topic: str, /) -> bool: ...

    def subscribe(
        self, pattern: str, callback: Callable[[Mapping[str, Any]], Any], /
    ) -> Any: ...

    def unsubscribe(self, handle: Any, /) -> bool: ...

    def stream(
        self, pattern: str, maxsize: int = 1000, /
    ) -> AbstractAsyncContextManager[AsyncIterator[Mapping[str, Any]]]: ...


class App:
    """The parts of one running Hermes. Safe to use from several threads."""

    def __init__(
        self,
        settings: Settings,
        home: Home,
        *,
        bus: EventPublisher | None,
        clock: Clock,
        ids: Ids,
    ) -> None:
        self.settings = settings
        self.home = home
        self.clock = clock
        self.ids = ids
        self.errors = RepeatedErrors(log)
        """Errors that keep repeating in this process."""
        self._bus = bus
        self._store: Store | None = None
        self._closed = False
        self._opening = threading.Lock()
        self._remembering = threading.Lock()
        self._feeds: WeakValueDictionary[str, Feed] = (
            WeakValueDictionary()
        )  # also those forgotten but still writing
        self._recent: RecentDict[str, Feed] = RecentDict(_REMEMBERED)
        self._roots: RecentDict[str, str] = RecentDict(_REMEMBERED)
        self._persons: RecentDict[str, str] = RecentDict(_REMEMBERED)
        self._outside: list[
            Outside
        ] = []  # one at most, and the same one under other settings
        self._going_live = threading.Lock()
        self._told = PublishedRows()
        self._sent = PublishedRows()  # rows of other homes, which are not in this log

    @property
    def bus(self) -> EventPublisher:
        """The bus that was given, or the default one of this process."""
        if self._bus is None:
            from hermes.events import default_bus

            self._bus = default_bus()
        return self._bus

    @property
    def outside(self) -> "Outside | None":
        """What leads out of this process, once it is live."""
        return self._outside[0] if self._outside else None

    @property
    def has_log(self) -> bool:
        """Whether there is a session log, sound or not. Looking creates nothing."""
        return exists(self.home.state)

    @property
    def store(self) -> Store:
        """The session log, opened (and made, with the home) on first use."""
        with self._opening:
            if self._closed:
                raise StoreError("the session log is closed")
            if self._store is None:
                path = (
                    self.home.state if self.has_log else self.home.ensure().state
                )  # one that is there may be read-only
                self._store = open_store(
                    path,
                    clock=self.clock,
                    busy_timeout=self.settings.store.busy_timeout,
                )
            return self._store

    def with_settings(self, settings: Settings) -> Self:
        """The same app, the same log and bus, for whoever works under other settings. The first one closes the log."""
        _ = self.store  # opened once, for both
        other = copy.copy(self)
        other.settings = settings
        return other

    def begin(self, created: SessionCreated, session: str = "") -> Row:
        """Begins a session under a new id, or the one given. Its first row is on disk and published."""
        session = session or self.ids.session()
        return self._feed(session).write(
            lambda: (self.store.log.create(session, created),), self.publish
        )[0]

    def record(
        self, session: str, *events: Event, turn: str = "", lease: Lease | None = None
    ) -> tuple[Row, ...]:
        """Writes the events, all or none; once they are on disk each is published, in the order of the log."""
        rows = self._feed(session).write(
            lambda: self.store.log.append(session, *events, turn=turn, lease=lease),
            self.publish,
        )
        if any(isinstance(event, TurnEnded) for event in events):
            self.snapshot(session)
        return rows

    def recorded(self, session: str, rows: tuple[Row, ...]) -> None:
        """Publishes rows that were submitted to the log and are on disk, behind those that `record` has written."""
        self._feed(session).write(lambda: rows, self.publish)

    def publish(self, row: Row, *, foreign: bool = False) -> None:
        """Tells the bus of a row that is on disk, once: a runner that finds it in the log may not know whose it is.

        A foreign row was written by another process, which sends it where events are sent.
        """
        if not self._told.claim(row.session, row.epoch, row.seq) or not self.bus.heard(
            row.type
        ):
            return
        if foreign:
            from hermes.events.origin import relay

            relay(self.bus.publish, row.type, self.envelope(row))
        else:
            self.bus.publish(row.type, self.envelope(row))

    def has_published(self, session: str, epoch: int, seq: int) -> bool:
        """Whether a row of this log was published here."""
        return self._told.has(session, epoch, seq)

    def is_news(self, session: str, epoch: int, seq: int) -> bool:
        """Whether a row of another home's log, sent by its process, is new here."""
        return self._sent.claim(session, epoch, seq)

    def go_live(self, secrets: Secrets, surface: str = "terminal") -> None:
        """Lets the outside see what this process does, from now until it is closed. The first surface names it."""
        with self._going_live:
            if not self._outside:
                from hermes.app.exporters import Outside

                self._outside.append(Outside(self, secrets, surface))
                self._outside[0].open()

    def person(self, session: str) -> str:
        """Whom a session works for, when that is somebody else than the user; a child's is that of its root."""
        known = self._persons.get(session)
        if known is None:
            info = self.store.sessions.origin(session)
            first = self.store.log.events(
                info.root if info.kind == "child" else session, limit=1
            )
            created = first[0].event if first else None
            known = created.person if isinstance(created, SessionCreated) else ""
        with self._remembering:
            self._persons[session] = known
        return known

    def snapshot(self, session: str) -> None:
        """Writes the session's JSON copy, if the user wants one. To be called after each turn.

        The turn is saved already: a copy that can't be written is reported, and does not fail the turn.
        """
        if not self.settings.sessions.write_json_snapshots:
            return
        if not _is_file_name(session):
            log.warning(
                "no JSON snapshot of session %r: its id can't be a file name", session
            )
            return
        try:
            write_snapshot(self.store, session, self.home.sessions)
        except OSError as error:
            log.warning(
                "the JSON snapshot of session %s was not written to %s: %s",
                session,
                self.home.sessions,
                error,
            )

    def delete(self, session: str) -> int:
        """Removes a session and its JSON snapshot; returns how many rows that were."""
        rows = self.store.sessions.delete(session)
        if _is_file_name(session):
            (self.home.sessions / f"session_{session}.json").unlink(missing_ok=True)
        from hermes.app.partial_text import partial_path

        partial_path(self.home, session).unlink(missing_ok=True)
        with self._remembering:
            self._feeds.pop(session, None)
            self._recent.pop(session, None)
            self._roots.pop(session, None)
        return rows

    def envelope(self, row: Row) -> dict[str, Any]:
        """A row as every feed shows it (docs/events.md)."""
        head: dict[str, Any] = {
            "type": row.type,
            "ts": row.ts,
            "src": row.type.partition(".")[0],
        }
        root = self._root(row.session)
        if root:
            head["root_session_id"] = root
        return head | row.envelope()

    def close(self) -> None:
        """Lets go of the session log. Idempotent."""
        if self.outside is not None:
            self.outside.close()
        with self._opening:
            self._closed = True
            if self._store is not None:
                self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _feed(self, session: str) -> Feed:
        with self._remembering:
            feed = self._feeds.get(session) or Feed()
            self._feeds[session] = feed
            self._recent[session] = feed
        return feed

    def _root(self, session: str) -> str:
        """The first session of a child's lineage; empty for a session that is nobody's child."""
        root = self._roots.get(session)
        if root is None:
            info = self.store.sessions.origin(session)
            root = info.root if info.kind == "child" else ""
        with self._remembering:
            self._roots[session] = root
        return root


def build(
    settings: Settings,
    home: Home,
    *,
    bus: EventPublisher | None = None,
    clock: Clock | None = None,
    ids: Ids | None = None,
) -> App:
    """Puts the parts together. Touches no file; the log is opened on first use."""
    clock = clock or SystemClock()
    return App(settings, home, bus=bus, clock=clock, ids=ids or SystemIds(clock))


def _is_file_name(session: str) -> bool:
    """Imported sessions bring their own ids; one must not lead out of its folder."""
    return Path(session).name == session and "\0" not in session

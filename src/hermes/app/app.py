"""`App`: the settings, home, bus and session log of one process.

Nothing is opened or imported before it is needed: a command that only reads the log never loads the bus.
"""

import contextlib
import copy
import logging
import os
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self

import msgspec

from hermes.app.log_writer import LogWriter, PublishedRows
from hermes.core.ports import Clock, Ids, SystemClock
from hermes.errors import StoreError
from hermes.primitives.recent import RecentDict
from hermes.primitives.repeated_errors import RepeatedErrors
from hermes.schema.event_base import Event, payload_of
from hermes.schema.events import (
    SessionCreated,
    StoreReachable,
    StoreUnreachable,
    TurnEnded,
)
from hermes.settings import Home, Secrets, Settings
from hermes.store import Store, exists, open_configured
from hermes.store.leases import Lease
from hermes.store.log_row import Row
from hermes.text.translation import translator

if TYPE_CHECKING:
    from hermes.app.event_senders import Exporters
    from hermes.app.feed import Feed
    from hermes.app.sign_ins import SignIns
    from hermes.plugins.agent_plugins import AgentPlugins
    from hermes.store.store import Reachability

t = translator(__name__)


log = logging.getLogger("hermes.app")

_MAX_CACHED_LINEAGES = 1_024  # whose root and person are kept


class EventPublisher(Protocol):
    """What the app needs of the event bus."""

    def publish(
        self, topic: str, payload: Mapping[str, Any] | None = None, /
    ) -> None: ...

    def has_subscribers(self, topic: str, /) -> bool: ...

    def subscribe(
        self, pattern: str, callback: Callable[[Mapping[str, Any]], Any], /
    ) -> Any: ...

    def unsubscribe(self, handle: Any, /) -> bool: ...

    def stream(
        self, pattern: str, maxsize: int = 1000, /
    ) -> AbstractAsyncContextManager[AsyncIterator[Mapping[str, Any]]]: ...


class _Opened:
    """What an app opened so far. Shared with its copies under other settings."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.going_live = threading.Lock()
        self.store: Store | None = None
        self.exporters: Exporters | None = None
        self.feed: Feed | None = None
        self.sign_ins: SignIns | None = None
        self.plugins: AgentPlugins | None = None
        self.is_closed = False


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
        self.writer = LogWriter(lambda: self.store.log, self._publish, self._prepare)
        """Writes rows and publishes them."""
        self._bus = bus
        self._opened = _Opened()
        self._lock = threading.Lock()
        self._roots: RecentDict[str, str] = RecentDict(_MAX_CACHED_LINEAGES)
        self._persons: RecentDict[str, str] = RecentDict(_MAX_CACHED_LINEAGES)
        self._relayed = PublishedRows()  # rows of other homes, which are not in the log

    @property
    def bus(self) -> EventPublisher:
        """The bus that was given, or the default bus of this process."""
        if self._bus is None:
            from hermes.events import default_bus

            self._bus = default_bus()
        return self._bus

    @property
    def plugins(self) -> "AgentPlugins | None":
        """What enabled plugins add to the agent; None while the user has enabled none."""
        opened = self._opened
        with opened.lock:
            if opened.plugins is None and (self.home.root / "plugins.json").exists():
                from hermes.plugins.agent_plugins import AgentPlugins

                opened.plugins = AgentPlugins(self.home)
            return opened.plugins

    @property
    def exporters(self) -> "Exporters | None":
        """What sends events out of this process, once `go_live` was called."""
        return self._opened.exporters

    @property
    def feed(self) -> "Feed":
        """The feed of this process. It belongs to the event loop that asks for it first."""
        if self._opened.feed is None:
            from hermes.app.feed import Feed

            self._opened.feed = Feed(self.bus)
        return self._opened.feed

    @property
    def sign_ins(self) -> "SignIns":
        """The accounts, and the sign-ins that were begun in this process."""
        if self._opened.sign_ins is None:
            from hermes.app.sign_ins import SignIns

            self._opened.sign_ins = SignIns(self.home)
        return self._opened.sign_ins

    @property
    def has_log(self) -> bool:
        """Whether there is a session log, sound or not. Looking creates nothing."""
        return bool(self.settings.store.url) or exists(self.home.state)

    @property
    def is_waiting(self) -> bool:
        """Whether the store was opened and can't be reached now."""
        store = self._opened.store
        return store is not None and not store.reachability.is_reachable

    @property
    def store(self) -> Store:
        """The session log, opened on first use. If there is none, it is created together with the home."""
        opened = self._opened
        with opened.lock:
            if opened.is_closed:
                raise StoreError(t.later("the session log is closed"))
            if opened.store is None:
                # A home that exists may be read-only, so `ensure` is called only for a new one.
                is_known = self.has_log and self.home.root.exists()
                home = self.home if is_known else self.home.ensure()
                opened.store = open_configured(
                    self.settings.store, home, clock=self.clock
                )
                opened.store.reachability.listeners.append(self._tell_reachability)
            return opened.store

    def with_settings(self, settings: Settings) -> Self:
        """A copy under other settings, with the same log and bus. Closing either closes both."""
        other = copy.copy(self)
        other.settings = settings
        return other

    def begin(self, created: SessionCreated, session: str = "") -> Row:
        """Begins a session under the given id, or a new one. Its first row is on disk and published."""
        if self.settings.store.url and created.cwd and not created.place:
            from hermes.app.turn_placement import place_of

            place = place_of(self, created.cwd)
            created = msgspec.structs.replace(created, place=place)
        return self.writer.create(session or self.ids.session(), created)

    def record(
        self, session: str, *events: Event, turn: str = "", lease: Lease | None = None
    ) -> tuple[Row, ...]:
        """Writes the events, all or none, and publishes them. Blocks until they are on disk."""
        rows = self.writer.append(session, *events, turn=turn, lease=lease)
        if any(isinstance(event, TurnEnded) for event in events):
            self.snapshot(session)
        return rows

    def show(self, session: str, turn: str, event: Event) -> None:
        """Publishes a transient event, such as a piece of a reply."""
        payload = payload_of(event)
        payload["session_id"], payload["turn_id"] = session, turn
        self.bus.publish(event.topic, payload)

    def note_lineage(self, first: Row) -> None:
        """Remembers from the first row of a session whom it works for. A child's root has to be asked for."""
        created = first.event
        if isinstance(created, SessionCreated) and created.kind != "child":
            with self._lock:
                self._roots[first.session] = ""
                self._persons[first.session] = created.person

    def _publish(self, row: Row, foreign: bool) -> None:
        if row.type == SessionCreated.topic:
            self.note_lineage(row)
        bus = self.bus
        if not bus.has_subscribers(row.type):
            return
        if foreign:
            from hermes.events.envelope import relay

            relay(bus.publish, row.type, self.envelope(row))
        else:
            bus.publish(row.type, self.envelope(row))

    async def _prepare(self, session: str) -> None:
        """Reads what subscribers to a session's rows ask for, so that they don't wait for the store."""
        if session not in self._roots or session not in self._persons:
            with contextlib.suppress(StoreError):  # whoever asks for it is told
                await self.store.call(self._learn, session)

    def _learn(self, session: str) -> None:
        self.root(session)
        self.person(session)

    def _tell_reachability(self, state: "Reachability") -> None:
        event = (
            StoreReachable()
            if state.is_reachable
            else StoreUnreachable(reason=state.reason)
        )
        self.bus.publish(event.topic, payload_of(event))

    def is_new_relayed(self, session: str, epoch: int, seq: int) -> bool:
        """Whether a row of another home, sent by one of its processes, has not come before."""
        return self._relayed.claim(session, epoch, seq)

    def go_live(self, secrets: Secrets, surface: str = "terminal") -> None:
        """Starts the exporters, until the app is closed. The surface that comes first names the process."""
        with self._opened.going_live:
            if self._opened.exporters is None:
                from hermes.app.event_senders import Exporters

                self._opened.exporters = Exporters(self, secrets, surface)
                self._opened.exporters.open()

    def person(self, session: str) -> str:
        """The person a session works for, if that is not the user. A child works for the person of its root."""
        known = self._persons.get(session)
        if known is None:
            root = self.store.sessions.origin(session).top or session
            first = self.store.log.events(root, limit=1)
            created = first[0].event if first else None
            known = created.person if isinstance(created, SessionCreated) else ""
        with self._lock:
            self._persons[session] = known
        return known

    def snapshot(self, session: str) -> None:
        """Writes the JSON copy of a session, if the user wants one. Called after each turn.

        The turn is saved already, so a copy that can't be written is reported and does not fail the turn.
        """
        if not self.settings.sessions.write_json_snapshots:
            return
        if not _is_file_name(session):
            log.warning(
                "no JSON snapshot of session %r: its id can't be a file name", session
            )
            return
        from hermes.store.session_export import event_document, write_snapshot

        try:
            as_events = self.settings.sessions.json_snapshot_format == "events"
            form = event_document if as_events else self._message_document
            write_snapshot(self.store, session, self.home.sessions, form)
        except OSError as error:
            log.warning(
                "the JSON snapshot of session %s was not written to %s: %s",
                session,
                self.home.sessions,
                error,
            )

    def _message_document(self, store: Store, session: str) -> dict[str, Any]:
        """A session in the shape of Hermes Agent's session files."""
        from hermes.providers.routing import service_address
        from hermes.settings.load import load_secrets
        from hermes.trajectories.openai_messages import session_file
        from hermes.trajectories.trajectory import read_trajectory

        trajectory = read_trajectory(store.log.every_event(session))
        secrets = load_secrets(home=self.home)
        address = service_address(self.settings, secrets, trajectory.provider)
        return session_file(trajectory, address)

    def delete(self, session: str) -> int:
        """Deletes a session and its JSON snapshot. Returns the number of rows."""
        rows = self.store.sessions.delete(session)
        if _is_file_name(session):
            (self.home.sessions / f"session_{session}.json").unlink(missing_ok=True)
        from hermes.app.partial_text import partial_path

        partial_path(self.home, session).unlink(missing_ok=True)
        self.writer.forget(session)
        with self._lock:
            self._roots.pop(session, None)
        return rows

    def envelope(self, row: Row) -> dict[str, Any]:
        """A row as the event that every feed shows (docs/events.md)."""
        head: dict[str, Any] = {
            "type": row.type,
            "ts": row.ts,
            "src": row.type.partition(".")[0],
        }
        root = self.root(row.session) or self.owner(row.session)
        if root:
            head["root_session_id"] = root
        return head | row.envelope()

    def close(self) -> None:
        """Ends the exporters and the feed, and closes the session log. Idempotent."""
        opened = self._opened
        if opened.exporters is not None:
            opened.exporters.close()
        if opened.feed is not None:
            opened.feed.stop()
        with opened.lock:
            opened.is_closed = True
            if opened.store is not None:
                opened.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def root(self, session: str) -> str:
        """The first session of a child's lineage; empty for a session that is not a child."""
        root = self._roots.get(session)
        if root is None:
            root = self.store.sessions.origin(session).top
        with self._lock:
            self._roots[session] = root
        return root

    def top(self, session: str) -> str:
        """The session itself, or the first one of a child's lineage."""
        return self.root(session) or session

    def owner(self, session: str) -> str:
        """The session in which the card was made that this session works on: its surfaces show the questions too."""
        info = self.store.sessions.origin(session)
        is_worker = info.surface == "kanban" and info.kind == "root"
        return info.parent if is_worker else ""


class SystemIds:
    """Makes ids of the form `YYYYMMDD-HHMMSS-xxxxxxxxxxxx`: the time in UTC, and twelve random hexadecimal digits, so
    that machines that share a store never make the same id.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def session(self) -> str:
        """The id of a new session."""
        return self._stamped()

    def turn(self) -> str:
        """The id of a new turn."""
        return self._stamped()

    def _stamped(self) -> str:
        stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime(self._clock.now()))
        return f"{stamp}-{os.urandom(6).hex()}"


def build(
    settings: Settings,
    home: Home,
    *,
    bus: EventPublisher | None = None,
    clock: Clock | None = None,
    ids: Ids | None = None,
) -> App:
    """Puts the parts together. Touches no file."""
    clock = clock or SystemClock()
    return App(settings, home, bus=bus, clock=clock, ids=ids or SystemIds(clock))


def _is_file_name(session: str) -> bool:
    """Whether a session id can name a file. Imported sessions bring ids of any kind."""
    return Path(session).name == session and "\0" not in session

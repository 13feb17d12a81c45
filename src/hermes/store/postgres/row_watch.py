"""Wakes readers when any process has written rows: by NOTIFY, or by a faster way if one is configured.

A process announces the sessions of its rows after they are committed, many at once: a NOTIFY inside the transaction
would make all transactions of the database commit one after the other. Readers also look now and then by themselves, so
an announcement that was lost costs time and nothing else. Each announcement names its process, which has woken its own
readers before and leaves out what it hears of itself.
"""

import asyncio
import os
import time
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress
from functools import partial
from typing import Any, TypeAlias

import asyncpg

from hermes.primitives.backoff import Backoff
from hermes.store.leases import Lease
from hermes.store.ports import WakeUps
from hermes.store.postgres.server import UNREACHABLE, PostgresServer
from hermes.store.work_queue import OFFERED

CHANNEL = "hermes_rows"
_ORIGIN = "*from-"  # prefix of the announcing process's name
_LOOK_S = 1.0  # between checks without an announcement
_SESSION_LOOK_S = 5.0  # the same for one session: a process may run thousands
_ANNOUNCE_INTERVAL_S = 0.005
_MAX_NOTICE_WAIT_S = 2.0
_PING_S = 10.0  # between checks of the listening connection
_MAX_PAYLOAD_BYTES = 7_000  # of one NOTIFY

_Writer: TypeAlias = tuple[str, int] | None


class NotifyWatch:
    """Notifies one reader that there may be new rows.

    Rows written under `lease` are not reported: the reader knows them already. With `is_read_next`, the reader has read
    nothing yet and reads everything once the watch exists.
    """

    def __init__(
        self,
        notices: "RowNotices",
        session: str,
        lease: Lease | None = None,
        *,
        is_read_next: bool = False,
    ) -> None:
        self._notices = notices
        self._loop: asyncio.AbstractEventLoop | None = None
        self._event: asyncio.Event | None = None
        self._is_due = not is_read_next
        self._looked = time.monotonic() if is_read_next else 0.0
        self.may_have_missed = not is_read_next
        """Whether rows written while the watch was being added may be new to the reader."""
        self._look_s = _SESSION_LOOK_S if session not in {"", OFFERED} else _LOOK_S
        self.session = session
        self.writer = _writer(lease)
        self.is_added = False
        """Whether notices reach the watch. A reader that checked before that must check again."""

    async def wait(self, timeout_s: float) -> None:  # noqa: ARG002 - a port
        """Waits until there may be new rows, or the next check is due."""
        if self._event is None:
            self._loop, self._event = asyncio.get_running_loop(), asyncio.Event()
        if self._is_due and not self._notices.is_reachable:
            await asyncio.sleep(_ANNOUNCE_INTERVAL_S * 20)
        with suppress(TimeoutError):
            async with asyncio.timeout(self._look_s):
                while not (self._is_due and self.is_added):
                    await self._event.wait()
                    self._event.clear()

    def changed(self) -> bool:
        """Returns whether there may be new rows since the last call; False while the server can't be reached."""
        now = time.monotonic()
        if not self._notices.is_reachable:
            return False
        if not self._is_due and now - self._looked < self._look_s:
            return False
        self._is_due, self._looked = False, now
        return True

    def forget(self) -> None:
        """Makes the next `changed` return True."""
        self._is_due = True

    def close(self) -> None:
        """Ends the watch."""
        self._notices.remove(self)

    def notice(self) -> None:
        """Records that there are new rows. May be called on any thread."""
        self._is_due = True
        if self._loop is not None and self._event is not None:
            with suppress(RuntimeError):  # the reader's loop has ended
                self._loop.call_soon_threadsafe(self._event.set)


class RowNotices:
    """Announces the rows of this process, and listens to the announcements of all processes."""

    def __init__(self, server: PostgresServer) -> None:
        self._server = server
        self._written: dict[str, set[_Writer]] = {}
        self._origin = f"{_ORIGIN}{os.urandom(8).hex()}"
        self._tasks: list[asyncio.Task[None]] = []
        self._watches: dict[str, set[NotifyWatch]] = {}
        self._faster: WakeUps | None = None
        self._stop_hearing: Callable[[], None] = lambda: None

    @property
    def is_reachable(self) -> bool:
        """Whether the server was reachable at the last attempt."""
        return self._server.reachability.is_reachable

    def use(self, faster: WakeUps) -> None:
        """Announces by a faster way from now on, as long as it works, and listens to it too."""
        self._faster = faster
        self._stop_hearing = faster.listen(self._wake)

    def watch(
        self,
        session: str = "",
        lease: Lease | None = None,
        *,
        is_read_next: bool = False,
    ) -> NotifyWatch:
        """Returns a new watch on one session or on all. The first one starts listening."""
        watch = NotifyWatch(self, session, lease, is_read_next=is_read_next)
        self._server.loop.call_soon_threadsafe(self._add, watch)
        return watch

    def _add(self, watch: NotifyWatch) -> None:
        self._watches.setdefault(watch.session, set()).add(watch)
        self._start_listening()
        watch.is_added = True
        if watch.may_have_missed:
            watch.notice()

    def remove(self, watch: NotifyWatch) -> None:
        """Ends a watch. May be called on any thread."""
        with suppress(RuntimeError):  # the server's loop has ended
            self._server.loop.call_soon_threadsafe(self._discard, watch)

    def _discard(self, watch: NotifyWatch) -> None:
        watches = self._watches.get(watch.session, set())
        watches.discard(watch)
        if not watches:
            self._watches.pop(watch.session, None)

    def announce(self, session: str, lease: Lease | None = None) -> None:
        """Announces committed rows of a session, or of none, written under a lease if one is given.

        Called on the server's event loop.
        """
        if " " in session or session == "chats":  # not rows of the log
            return
        is_first = not self._written
        self._written.setdefault(session, set()).add(_writer(lease))
        if is_first and (not self._tasks or self._tasks[0].done()):
            self._tasks[:1] = [self._server.loop.create_task(self._announce())]

    async def _announce(self) -> None:
        while self._written:
            written, self._written = self._written, dict[str, set[_Writer]]()
            self._wake_here(written)
            sessions = frozenset(written)
            is_told = self._faster is not None and self._faster.announce(
                sessions | {self._origin}
            )
            if not is_told:
                await self._notify(sessions)
            await asyncio.sleep(_ANNOUNCE_INTERVAL_S)

    async def _notify(self, sessions: frozenset[str]) -> None:
        with suppress(*UNREACHABLE, asyncpg.InterfaceError, asyncpg.PostgresError):
            async with self._server.connection() as connection:
                for payload in _payloads(sessions, self._origin):
                    await connection.execute(
                        "SELECT pg_notify($1, $2)", CHANNEL, payload
                    )

    def _start_listening(self) -> None:
        if len(self._tasks) < 2:
            if not self._tasks:
                self._tasks.append(self._server.loop.create_task(self._announce()))
            self._tasks.append(self._server.loop.create_task(self._listen()))

    async def _listen(self) -> None:
        pause = Backoff(0.05, 2.0)
        while True:
            try:
                connection = await self._server.connect()
                try:
                    await connection.add_listener(CHANNEL, self._heard)
                    pause.reset()
                    self._server.note_success()
                    self._wake_all()  # for earlier announcements
                    while True:
                        await asyncio.sleep(_PING_S)
                        await connection.execute("SELECT 1")
                finally:
                    connection.terminate()
            except (*UNREACHABLE, asyncpg.InterfaceError, asyncpg.PostgresError):
                await asyncio.sleep(pause.next_s())

    async def measure_lag(self) -> float | None:
        """Sends a notice through the pool and returns how long it takes to arrive on another connection."""
        channel, arrived = f"{CHANNEL}_{os.urandom(8).hex()}", asyncio.Event()
        listening = await self._server.connect()
        try:

            def hear(*_: Any) -> None:
                arrived.set()

            await listening.add_listener(channel, hear)
            began = time.perf_counter()
            async with self._server.connection() as connection:
                await connection.execute(f"NOTIFY {channel}")
            with suppress(TimeoutError):
                async with asyncio.timeout(_MAX_NOTICE_WAIT_S):
                    await arrived.wait()
                    return time.perf_counter() - began
            return None
        finally:
            listening.terminate()

    def _heard(self, _connection: Any, _pid: int, _channel: str, payload: str) -> None:
        self._wake_named(frozenset(payload.split(" ")))

    def _wake(self, sessions: frozenset[str]) -> None:
        """Handles a notice that arrived on another thread."""
        wake = partial(self._wake_named, sessions) if sessions else self._wake_all
        with suppress(RuntimeError):  # the server's loop has ended
            self._server.loop.call_soon_threadsafe(wake)

    def _wake_named(self, heard: frozenset[str]) -> None:
        """Wakes the readers of rows that another process has announced."""
        if self._origin in heard:
            return
        sessions = {name for name in heard if not name.startswith(_ORIGIN)}
        for name in _watched(sessions):
            for watch in self._watches.get(name, ()):
                watch.notice()

    def _wake_here(self, written: Mapping[str, set[_Writer]]) -> None:
        """Wakes the readers in this process, except the writer itself."""
        for name in _watched(written.keys()):
            writers = written.get(name, set())
            for watch in self._watches.get(name, ()):
                if not watch.writer or writers != {watch.writer}:
                    watch.notice()

    def _wake_all(self) -> None:
        for watches in self._watches.values():
            for watch in watches:
                watch.notice()

    async def close(self) -> None:
        """Stops listening and announcing, after announcing the last rows."""
        if self._tasks and self._written:
            with suppress(TimeoutError):
                async with asyncio.timeout(1.0):
                    await asyncio.shield(self._tasks[0])
        self._stop_hearing()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def _watched(sessions: AbstractSet[str]) -> AbstractSet[str]:
    """Returns the watch keys for these sessions, including the one for all sessions if log rows were written."""
    return sessions | {""} if sessions - {OFFERED} else sessions


def _writer(lease: Lease | None) -> _Writer:
    """Returns the writer under a lease; None without a lease."""
    return (lease.owner, lease.token) if lease is not None else None


def _payloads(sessions: frozenset[str], origin: str) -> Iterator[str]:
    """Yields the process and the sessions, separated by spaces, in pieces that fit a NOTIFY."""
    piece = origin
    for session in sorted(sessions):
        if len((piece + session).encode()) > _MAX_PAYLOAD_BYTES:
            yield piece
            piece = origin
        piece = f"{piece} {session}"
    yield piece

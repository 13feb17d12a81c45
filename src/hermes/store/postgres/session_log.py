"""The session log in PostgreSQL: an append is one round trip."""

from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import Any

import asyncpg
import msgspec

from hermes.core.ports import Clock
from hermes.errors import StoreError
from hermes.primitives.recent import RecentDict
from hermes.schema.event_base import Event
from hermes.schema.events import (
    SessionCreated,
    SessionTitled,
    TurnEnded,
)
from hermes.schema.messages import AssistantMessage
from hermes.store.answers import CHECKED, NEWEST_TITLE, require_not_named
from hermes.store.leases import Lease, lost_to
from hermes.store.log_row import EncodedEvent, Row, checked, checksum, draft
from hermes.store.postgres.database import PostgresDatabase
from hermes.store.postgres.job_connection import (
    QueryConnection,
    numbered,
    storable,
)
from hermes.store.postgres.word_index import lexemes
from hermes.store.projection import usage_of
from hermes.store.session_log import PAGE, SessionLog, missing_session
from hermes.store.work_queue import OFFERED
from hermes.text.translation import translator

t = translator(__name__)


_MAX_HEADS = 4_096
_MAX_LOST_RACES = (
    3  # appends lost to other processes; the next one queues for the session
)
_CALL = f"SELECT * FROM append_events({', '.join(f'${n}' for n in range(1, 18))})"  # noqa: S608 - our own name
_CALL_OFFERED = _CALL.replace("append_events", "append_offered")
_HEAD = "SELECT head, epoch FROM sessions WHERE id = $1"
_READ = numbered(PAGE)
_encode = msgspec.json.Encoder().encode


class PostgresSessionLog(SessionLog):
    """Appends to and reads the sessions of one database."""

    def __init__(self, database: PostgresDatabase, clock: Clock) -> None:
        super().__init__(database, clock)
        self._database = database
        self._heads: RecentDict[str, tuple[int, int]] = RecentDict(_MAX_HEADS)

    # pyrefly: ignore[missing-override-decorator]
    def append(
        self, session: str, *events: Event, turn: str = "", lease: Lease | None = None
    ) -> tuple[Row, ...]:
        writing = self.submit(session, *events, turn=turn, lease=lease)
        return self._database.result(writing)

    # pyrefly: ignore[missing-override-decorator]
    def submit(
        self,
        session: str,
        *events: Event,
        turn: str = "",
        lease: Lease | None = None,
        offer: bool = False,
    ) -> "Future[tuple[Row, ...]]":
        needs_transaction = any(
            isinstance(event, CHECKED) and not isinstance(event, SessionTitled)
            for event in events
        )
        if any(isinstance(event, SessionCreated) for event in events):
            raise StoreError(
                t.later("not saved: a session is created once, at its beginning")
            )
        entries = [draft(event) for event in events]
        call = _CALL_OFFERED if offer else _CALL

        async def append() -> tuple[Row, ...]:
            rows = None
            if not needs_transaction:
                rows = await self._append(call, session, entries, events, turn, lease)
            if rows is None:
                queued = self._appending(session, events, turn, lease, offer)
                rows = await self._database.transact(queued)
                self._heads[session] = (rows[-1].seq, rows[-1].epoch)
            self._database.notices.announce(session, lease)
            if offer:
                self._database.notices.announce(OFFERED)
            return rows

        return self._database.start(append, order=session)

    async def _append(
        self,
        call: str,
        session: str,
        entries: Sequence[EncodedEvent],
        events: Sequence[Event],
        turn: str,
        lease: Lease | None,
    ) -> tuple[Row, ...] | None:
        """Writes after the last known head. Returns None if other processes always wrote first."""
        server = self._database.server
        known = self._heads.get(session)
        is_titled = any(
            isinstance(event, SessionTitled) and event.by != "user" for event in events
        )
        fixed = _projected(events, entries, self._clock.now())
        for _ in range(_MAX_LOST_RACES):
            if known is None:
                known = await server.request(lambda one: one.fetchrow(_HEAD, session))
                if known is None:
                    raise _missing(session, lease)
            head, epoch = known
            if is_titled:
                await self._require_not_named(session)
            rows = _placed(session, head, epoch, entries, fixed.at, turn)
            values = _values(rows, (head, epoch), lease, fixed, turn, session)
            reply = await server.request(partial(_call, call, values=values))
            if reply["outcome"] == "written":
                self._heads[session] = (head + len(rows), epoch)
                written = [
                    row._replace(id=reply["first_id"] + place)
                    for place, row in enumerate(rows)
                ]
                return tuple(self._noted(row) for row in written)
            if reply["outcome"] == "missing":
                self._heads.pop(session, None)
                raise _missing(session, lease)
            if reply["outcome"] == "lost":
                raise lost_to(session, reply["holder"] or "")
            known = self._heads[session] = (reply["head"], reply["epoch"])
        return None

    async def _require_not_named(self, session: str) -> None:
        """Raises if the user has named the session.

        Nothing can come between this and the append, which is made only if the head is still the one known before.
        """
        query = numbered(NEWEST_TITLE)
        found = await self._database.server.request(
            lambda connection: connection.fetch(query, session)
        )
        titles = [tuple(row) for row in found]
        require_not_named(QueryConnection(lambda *_: titles), session)

    # pyrefly: ignore[missing-override-decorator]
    def events(
        self,
        session: str,
        *,
        after: int = 0,
        limit: int = 1000,
        is_known: bool = False,
    ) -> list[Row]:
        rows = super().events(session, after=after, limit=limit, is_known=is_known)
        if rows and len(rows) < limit:
            self._note_head(rows[-1])
        return rows

    # pyrefly: ignore[missing-override-decorator]
    def fetch(
        self, session: str, *, after: int = 0, limit: int = 1000
    ) -> "Future[list[Row]]":
        async def read() -> list[Row]:
            stored = await self._database.server.request(
                lambda connection: connection.fetch(_READ, session, after, limit)
            )
            rows = checked(map(tuple, stored))
            if rows and len(rows) < limit:
                self._keep_head(rows[-1])
            return rows

        return self._database.start(read)

    # pyrefly: ignore[missing-override-decorator]
    def create(self, session: str, created: SessionCreated) -> Row:
        first = super().create(session, created)
        self._note_head(first)
        return first

    def _note_head(self, last: Row) -> None:
        """Remembers where the next append goes. May be called on any thread."""

        with suppress(RuntimeError):  # the loop has just ended
            self._database.server.loop.call_soon_threadsafe(self._keep_head, last)

    def _keep_head(self, last: Row) -> None:
        known = self._heads.get(last.session)
        if known is None or known[1] != last.epoch or known[0] < last.seq:
            self._heads[last.session] = (last.seq, last.epoch)


def _missing(session: str, lease: Lease | None) -> StoreError:
    """Returns the error for a session that is gone, along with its lease."""
    return missing_session(session) if lease is None else lost_to(session, "")


async def _call(call: str, connection: "asyncpg.Connection", values: list[Any]) -> Any:
    return await connection.fetchrow(call, *values)


class _Fixed(msgspec.Struct, frozen=True):
    """The values that do not depend on the position of the rows."""

    at: float
    words: list[str | None]
    title: str | None
    model: str | None
    messages: int
    turns: int
    calls: str


def _projected(
    events: Sequence[Event], entries: Sequence[EncodedEvent], now: float
) -> _Fixed:
    title = model = None
    calls: list[tuple[Any, ...]] = []
    for event in events:
        if isinstance(event, SessionTitled):
            title = event.title
        elif isinstance(event, AssistantMessage) and event.model:
            model = event.model
        if (used := usage_of(event, now)) is not None:
            calls.append(used)
    return _Fixed(
        at=now,
        words=[lexemes(entry.data) if entry.role else None for entry in entries],
        title=title,
        model=model,
        messages=sum(1 for entry in entries if entry.role),
        turns=sum(1 for event in events if isinstance(event, TurnEnded)),
        calls=_encode(calls).decode(),
    )


def _placed(
    session: str,
    head: int,
    epoch: int,
    entries: Sequence[EncodedEvent],
    now: float,
    turn: str,
) -> list[Row]:
    return [
        Row(0, session, seq, epoch, now, entry.type, entry.role, turn, entry.data)
        for seq, entry in enumerate(entries, head + 1)
    ]


def _values(
    rows: list[Row],
    known: tuple[int, int],
    lease: Lease | None,
    fixed: _Fixed,
    turn: str,
    session: str,
) -> list[Any]:
    """Returns the arguments of `append_events`."""
    return storable(
        [
            session,
            *known,
            lease.owner if lease else None,
            lease.token if lease else None,
            fixed.at,
            turn,
            [row.type for row in rows],
            [row.role for row in rows],
            [row.data for row in rows],
            [checksum(row) for row in rows],
            fixed.words,
            fixed.title,
            fixed.model,
            fixed.messages,
            fixed.turns,
            fixed.calls,
        ]
    )

"""A connection that breaks after the server has done something and before its reply arrives. Everything the store writes
then happens once: each write is cut at each of its replies in turn, by a proxy before a real server."""

import asyncio
import contextlib
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

from tests.fakes.postgres_server import LocalPostgres

from hermes.schema.events import (
    ApprovalAnswered,
    ApprovalRequested,
    SessionCreated,
    SessionTitled,
)
from hermes.schema.messages import UserMessage
from hermes.schema.schedules import Every, Instant, Job
from hermes.store.outgoing import OutgoingMessage
from hermes.store.people import KnownPerson
from hermes.store.postgres.options import PostgresOptions
from hermes.store.postgres.postgres_store import PostgresStore, open_postgres

_READY = b"Z\0\0\0\5"  # the end of the reply to a statement
_SOCKET = ".s.PGSQL.5432"
_TIMEOUT_S = 60.0
_MAX_CUTS = 40


class ReplyCutter:
    """A proxy before a server that breaks a connection instead of passing on one of its replies."""

    def __init__(self, target: Path) -> None:
        self._target = target
        self._tasks: set[asyncio.Task[None]] = set()
        self.cut_at = 0
        """How many replies from now on the connection breaks; 0 for never."""
        self.loses_commit = False
        """Whether the connection breaks at the next commit, which never arrives."""

    async def accept(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        there, to = await asyncio.open_unix_connection(str(self._target))
        self._tasks |= {
            asyncio.create_task(self._pass(reader, to)),
            asyncio.create_task(self._pass(there, writer)),
        }

    async def _pass(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                if self.loses_commit and b"COMMIT" in data:
                    self.loses_commit = False
                    break
                replies = data.count(_READY)
                if self.cut_at and replies:
                    self.cut_at = max(0, self.cut_at - replies)
                    if not self.cut_at:
                        break
                writer.write(data)
                await writer.drain()
        writer.transport.abort()

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


@asynccontextmanager
async def cut_store(
    postgres: LocalPostgres,
) -> AsyncIterator[tuple[PostgresStore, PostgresStore, ReplyCutter]]:
    """A store behind a proxy, the same store without one, and the proxy."""
    url = postgres.new_url()
    cutter = ReplyCutter(postgres.folder / _SOCKET)
    with tempfile.TemporaryDirectory(prefix="h-", dir="/tmp") as folder:
        server = await asyncio.start_unix_server(cutter.accept, f"{folder}/{_SOCKET}")
        proxied = url.replace(str(postgres.folder), folder)
        opened: list[PostgresStore] = []
        try:
            for options in (PostgresOptions(proxied), PostgresOptions(url)):
                one = await asyncio.to_thread(open_postgres, options)
                opened.append(one)
            yield opened[0], opened[1], cutter
        finally:
            for store in opened:
                await asyncio.to_thread(store.close)
            server.close()
            await cutter.stop()


Write: TypeAlias = Callable[[PostgresStore, str], object]
"""Writes something under a name; returns what can be compared."""


def _asked(store: PostgresStore, name: str) -> None:
    asked = ApprovalRequested(call_id="c", name="terminal", arguments="{}", summary="s")
    store.log.append(name, asked)


def _job(name: str) -> Job:
    return Job(
        id=name,
        name=name,
        prompt="p",
        schedule="every hour",
        rule=Every(3600.0, 0.0),
        zone="UTC",
        created=0.0,
    )


def _create(store: PostgresStore, name: str) -> object:
    return store.log.create(f"new-{name}", SessionCreated(cwd="/tmp")).seq  # noqa: S108


def _append(store: PostgresStore, name: str) -> object:
    rows = store.log.append(name, UserMessage(text="a"), SessionTitled(title="t"))
    return [row.seq for row in rows]


def _offer(store: PostgresStore, name: str) -> object:
    writing = store.log.submit(name, UserMessage(text="a"), offer=True)
    return [row.seq for row in writing.result(_TIMEOUT_S)]


def _answer(store: PostgresStore, name: str) -> object:
    answered = ApprovalAnswered(call_id="c", answer="deny", by="me")
    return [row.seq for row in store.log.append(name, answered)]


def _lease(store: PostgresStore, name: str) -> object:
    lease = store.leases.renew(store.leases.acquire(name))
    rows = store.log.append(name, UserMessage(text="mine"), lease=lease)
    store.leases.give_back(lease, answered=rows[0].seq).result(_TIMEOUT_S)
    return lease.token


def _schedule(store: PostgresStore, name: str) -> object:
    instant = Instant(name, 1.0, 1.0, "schedule", "planned")
    store.schedules.put(_job(name), dropped="", following=instant)
    taken = store.schedules.claim(instant, lambda job: (job, None))
    assert taken is not None
    return store.schedules.renew(taken), store.schedules.end(taken, "done")


def _role(store: PostgresStore, name: str) -> object:
    role = store.roles.take(name, {"n": 1})
    assert role is not None
    return role.token, store.roles.renew(role)


WRITES: dict[str, Write] = {
    "a session": _create,
    "rows": _append,
    "a message for a worker": _offer,
    "an answer": _answer,
    "a lease": _lease,
    "a job and its run": _schedule,
    "a role": _role,
    "a branch": lambda store, name: store.log.branch(name, f"branch-{name}").seq,
    "a message of a chat": lambda store, name: store.chats.accept(
        "telegram", name, "words", "k"
    ).result(_TIMEOUT_S),
    "a message to a chat": lambda store, name: store.sends.put(
        OutgoingMessage(name, "telegram:1", "hi", (), 0.0, 1.0)
    ),
    "a person": lambda store, name: store.people.put(
        KnownPerson("telegram", name, "Ann", "user", 0.0)
    ),
    "a pin": lambda store, name: store.marks.pin([name], pinned=True),
    "a host": lambda store, name: store.hosts.beat(name, "worker", "1"),
}


def counting(store: PostgresStore) -> str:
    """A query for how many rows each table has, apart from the marks of commits."""
    query = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema() AND tablename != 'commits'"
    tables = [str(name) for (name,) in store.database.select(query)]
    parts = [f"SELECT '{name}', count(*) FROM {name}" for name in tables]  # noqa: S608
    return " UNION ALL ".join(parts)


def prepared(store: PostgresStore, name: str) -> None:
    """What each write finds: a session with a question that is open."""
    store.log.create(name, SessionCreated())
    _asked(store, name)


async def test_a_write_whose_reply_is_lost_happens_once(
    postgres: LocalPostgres,
) -> None:
    async with cut_store(postgres) as (store, direct, cutter):
        query = await asyncio.to_thread(counting, direct)

        def done(write: Write, name: str, cut_at: int) -> tuple[Any, Counter[str]]:
            prepared(direct, name)
            before = Counter(dict(direct.database.select(query)))
            cutter.cut_at = cut_at
            result = write(store, name)
            return result, Counter(dict(direct.database.select(query))) - before

        for what, write in WRITES.items():
            prefix = what.replace(" ", "-")
            usual = await asyncio.to_thread(done, write, f"{prefix}-0", 0)
            cutter.loses_commit = True  # writes of one statement have none
            found = await asyncio.to_thread(done, write, f"{prefix}-lost", 0)
            assert found == usual, what
            for cut in range(1, _MAX_CUTS):
                found = await asyncio.to_thread(done, write, f"{prefix}-{cut}", cut)
                assert found == usual, (what, cut)
                if cutter.cut_at:
                    break  # it took fewer replies
            assert 1 < cut < _MAX_CUTS - 1, what
        report = await asyncio.to_thread(direct.check)
        assert report.problems == []

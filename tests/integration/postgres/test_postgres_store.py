"""The store in PostgreSQL: opening, leases by the server's clock, outages, and what an address may hold."""

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.fakes.postgres_server import LocalPostgres, running_postgres

from hermes.errors import (
    LeaseLost,
    SessionBusy,
    StoreError,
    StoreTooNew,
    TitledAlready,
)
from hermes.schema.events import SessionCreated, SessionTitled
from hermes.schema.messages import UserMessage
from hermes.store import open_store
from hermes.store.leases import LEASE_TTL_S, Leases, this_process
from hermes.store.postgres.leases import PostgresLeases
from hermes.store.postgres.options import PostgresOptions
from hermes.store.postgres.postgres_store import PostgresStore, open_postgres
from hermes.store.postgres.schema import MIGRATIONS
from hermes.store.postgres.server import POOL_SIZE
from hermes.store.postgres.session_log import PostgresSessionLog
from hermes.store.sql import SqlConnection
from hermes.testing import FakeClock

TIMEOUT_S = 60.0


@pytest.fixture
def url(postgres: LocalPostgres) -> str:
    return postgres.new_url()


@pytest.fixture
def store(url: str) -> Iterator[PostgresStore]:
    with open_postgres(PostgresOptions(url)) as opened:
        opened.log.create("s", SessionCreated())
        yield opened


def elsewhere(store: PostgresStore) -> Leases:
    """The leases of a process on another machine, of which only the server's clock tells whether it lives."""
    return PostgresLeases(store._database, FakeClock(), owner="elsewhere:1:2")


def expire(store: PostgresStore) -> None:
    """Lets the time of all leases pass."""
    query = "UPDATE leases SET expires = expires - ?"
    store.database.write(
        lambda connection: connection.execute(query, (LEASE_TTL_S,)).fetchall()
    )


def test_a_database_newer_than_the_program_is_refused(url: str) -> None:
    steps = (*MIGRATIONS, "ALTER TABLE jobs RENAME TO tasks")
    open_postgres(PostgresOptions(url), migrations=steps, oldest=len(steps)).close()
    with pytest.raises(StoreTooNew, match="newer Hermes"):
        open_postgres(PostgresOptions(url))
    postgres_tables = "SELECT count(*) FROM tasks"
    with open_postgres(PostgresOptions(url), migrations=steps) as newer:
        assert newer.database.select(postgres_tables) == [(0,)]


def test_two_versions_of_the_program_work_side_by_side(url: str) -> None:
    steps = (*MIGRATIONS, "ALTER TABLE sessions ADD COLUMN colour text")
    with open_postgres(PostgresOptions(url)) as running:
        running.log.create("s", SessionCreated())
        lease = running.leases.acquire("s")
        with (
            open_postgres(PostgresOptions(url), migrations=steps) as newer,
            open_postgres(PostgresOptions(url)) as older,
        ):
            running.log.append("s", UserMessage(text="one"), lease=lease)
            newer.log.append("s", UserMessage(text="two"))
            older.log.append("s", UserMessage(text="three"))
            running.leases.release(lease)
            assert newer.leases.acquire("s").token > lease.token
            texts = [
                one.text
                for one in older.log.messages("s")
                if isinstance(one, UserMessage)
            ]
            assert texts == ["one", "two", "three"]
            assert older.check().problems == newer.check().problems == []


def test_a_store_in_use_is_copied_as_of_one_moment(
    store: PostgresStore, tmp_path: Path
) -> None:
    store.leases.acquire("s")
    is_over = threading.Event()

    def write() -> int:
        count = 0
        while not is_over.is_set() or not count:
            store.log.append("s", UserMessage(text=str(count)))
            count += 1
        return count

    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write)
        store.copy(tmp_path / "copy.db")
        is_over.set()
        count = writing.result(TIMEOUT_S)
    with open_store(tmp_path / "copy.db") as copied:
        assert copied.check().problems == []
        (session,) = copied.sessions.recent()
        rows = list(copied.log.every_event("s"))
        assert [row.seq for row in rows] == [*range(1, session.head + 1)]
        assert session.head <= count + 1
        assert copied.leases.held() == []


def test_a_database_of_another_program_is_refused_and_left_alone(
    postgres: LocalPostgres, url: str
) -> None:
    schema = url.rpartition("=")[2]
    postgres.sql(f"CREATE TABLE {schema}.events (x int)")
    with pytest.raises(StoreError, match="another program"):
        open_postgres(PostgresOptions(url))
    tables = (
        f"SELECT relname FROM pg_class WHERE relnamespace = '{schema}'::regnamespace"  # noqa: S608 - a test
    )
    assert postgres.sql(tables).split() == ["events"]


def test_many_processes_create_the_tables_at_once(url: str) -> None:
    with ThreadPoolExecutor(6) as pool, ExitStack() as stack:
        for store in pool.map(open_postgres, [PostgresOptions(url)] * 6):
            stack.enter_context(store)
            assert store.sessions.recent() == []


def test_an_older_database_is_migrated_once(url: str) -> None:
    steps = (*MIGRATIONS, "CREATE TABLE later (x int)")
    open_postgres(PostgresOptions(url)).close()
    for _ in range(2):
        with open_postgres(PostgresOptions(url), migrations=steps) as store:
            assert store.database.select("SELECT count(*) FROM later") == [(0,)]


def test_a_lease_ends_by_the_servers_clock_whatever_this_machine_says(
    url: str, store: PostgresStore
) -> None:
    lease = elsewhere(store).acquire("s")
    with open_postgres(PostgresOptions(url), clock=FakeClock(4e9)) as other:
        with pytest.raises(SessionBusy, match="process 1 on elsewhere"):
            other.leases.acquire("s")
        expire(store)
        assert other.leases.holder("s") is None
        taken = other.leases.acquire("s")
        assert taken.token > lease.token
        with pytest.raises(LeaseLost, match="is now run by"):
            store.log.append("s", UserMessage(text="late"), lease=lease)
        with pytest.raises(LeaseLost):
            elsewhere(store).renew(lease)
        other.log.append("s", UserMessage(text="successor"), lease=taken)
    assert [one.text for one in store.log.messages("s") if isinstance(one, UserMessage)] == ["successor"]  # fmt: skip


def test_a_live_process_that_did_not_renew_its_lease_loses_it(
    store: PostgresStore,
) -> None:
    lease = store.leases.acquire("s")
    expire(store)
    Leases(store.database, FakeClock(), owner="elsewhere:1:2").acquire("s")
    with pytest.raises(LeaseLost, match="process 1 on elsewhere"):
        store.log.append("s", UserMessage(text="late"), lease=lease)


def test_renewals_that_wait_for_a_connection_are_sent_together(
    store: PostgresStore,
) -> None:
    names = [f"s{number}" for number in range(20)]
    for name in names:
        store.log.create(name, SessionCreated())
    leases = [store.leases.acquire(name) for name in names]
    stolen = names.pop()
    query = "UPDATE leases SET owner = 'thief:1:2' WHERE session = ?"
    store.database.write(lambda one: one.execute(query, (stolen,)).fetchall())
    go_on = threading.Event()
    barrier = threading.Barrier(POOL_SIZE + 1)

    def hold(_: SqlConnection) -> None:
        barrier.wait(TIMEOUT_S)
        go_on.wait(TIMEOUT_S)

    holding = [store.database.submit(hold) for _ in range(POOL_SIZE)]
    barrier.wait(TIMEOUT_S)
    renewing = [store.leases.extend(lease) for lease in leases]
    store._database.server.start(asyncio.sleep(0)).result(TIMEOUT_S)  # all are in line
    go_on.set()
    for held in holding:
        held.result(TIMEOUT_S)
    with pytest.raises(LeaseLost, match="process 1 on thief"):
        renewing.pop().result(TIMEOUT_S)
    renewed = [one.result(TIMEOUT_S) for one in renewing]
    assert [one.session for one in renewed] == names
    assert all(
        new.expires > old.expires for new, old in zip(renewed, leases, strict=False)
    )
    query = "SELECT count(DISTINCT xmin::text) FROM leases WHERE owner != 'thief:1:2'"
    assert store.database.select(query) == [(1,)]
    assert store.leases.renewals == len(names)


def test_a_machine_of_the_same_name_is_another_machine(store: PostgresStore) -> None:
    host, pid, birth = this_process().rsplit(":", 2)
    started, boot, namespace = birth.split(".")
    twin = f"{host}:{pid}9:{started}.{boot[::-1]}x.{namespace}"
    Leases(store.database, FakeClock(), owner=twin).acquire("s")
    with pytest.raises(SessionBusy):
        store.leases.acquire("s")


def test_a_dead_process_of_this_machine_holds_nothing(store: PostgresStore) -> None:
    host, _, birth = this_process().rsplit(":", 2)
    dead = f"{host}:999999999:{birth}"
    Leases(store.database, FakeClock(), owner=dead).acquire("s")
    assert store.leases.acquire("s").token == 2


def test_writers_of_one_session_lose_and_double_nothing(
    url: str, store: PostgresStore
) -> None:
    def write(name: str) -> None:
        with open_postgres(PostgresOptions(url)) as own:
            for number in range(15):
                own.log.append("s", UserMessage(text=f"{name}{number}"))

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(write, "abc"))
    rows = list(store.log.every_event("s"))
    assert [row.seq for row in rows] == list(range(1, 47))
    texts = [
        one.text for one in store.log.messages("s") if isinstance(one, UserMessage)
    ]
    assert sorted(texts) == sorted(f"{name}{n}" for name in "abc" for n in range(15))
    assert store.check().problems == []


def test_writes_of_one_session_keep_the_order_in_which_they_were_submitted(
    store: PostgresStore,
) -> None:
    futures = [store.log.submit("s", UserMessage(text=str(n))) for n in range(40)]
    assert [future.result(TIMEOUT_S)[0].seq for future in futures] == [*range(2, 42)]


def test_a_reader_never_passes_a_row_that_is_committed_late(
    url: str, store: PostgresStore
) -> None:
    store.log.create("slow", SessionCreated())
    start = store.log.newest()
    written, go_on = threading.Event(), threading.Event()

    def slow(connection: SqlConnection) -> None:
        query = "INSERT INTO events (session, seq, epoch, ts, type, turn, data, crc) VALUES ('x', 1, 1, 0, 't', '', '{}', 0)"
        connection.execute(query).fetchall()
        written.set()
        assert go_on.wait(TIMEOUT_S)

    late: Future[Any] = store.database.submit(slow)
    assert written.wait(TIMEOUT_S)
    store.log.append("s", UserMessage(text="early"))
    assert store.log.since(start).rows == []
    go_on.set()
    late.result(TIMEOUT_S)
    ids = "SELECT session FROM events WHERE id > ? AND id <= row_limit() ORDER BY id"
    _until(lambda: store.database.select(ids, (start,)) == [("x",), ("s",)])


def test_a_watch_wakes_for_rows_of_another_process(
    url: str, store: PostgresStore
) -> None:
    async def wait() -> None:
        watch = store.watch()
        assert watch.changed()  # a new reader knows nothing
        async with asyncio.timeout(TIMEOUT_S):
            await watch.wait(10 * TIMEOUT_S)  # it listens now
            assert watch.changed()
            with open_postgres(PostgresOptions(url)) as other:
                await asyncio.to_thread(other.log.append, "s", UserMessage(text="hi"))
                await watch.wait(10 * TIMEOUT_S)
            assert watch.changed()
        watch.close()

    asyncio.run(wait())


def test_whoever_writes_under_a_lease_is_told_only_of_the_rows_of_others(
    store: PostgresStore,
) -> None:
    notices, server = store._database.notices, store._database.server
    own, other = store.watch("s", store.leases.acquire("s")), store.watch("s")

    async def told(wake: Callable[[], None]) -> tuple[bool, bool]:
        own.changed(), other.changed()
        wake()
        return own._is_due, other._is_due

    def after(wake: Callable[[], None]) -> tuple[bool, bool]:
        return server.start(told(wake)).result(TIMEOUT_S)

    mine = own.writer
    assert after(lambda: notices._wake_here({"s": {mine}})) == (False, True)
    assert after(lambda: notices._wake_here({"s": {mine, None}})) == (True, True)
    echo, others = frozenset({notices._origin, "s"}), frozenset({"s"})
    assert after(lambda: notices._wake_named(echo)) == (False, False)
    assert after(lambda: notices._wake_named(others)) == (True, True)


def test_a_name_that_the_user_gave_elsewhere_is_not_replaced(
    url: str, store: PostgresStore
) -> None:
    store.log.append("s", SessionTitled(title="first words", by="hermes"))
    with open_postgres(PostgresOptions(url)) as elsewhere:
        elsewhere.log.append("s", SessionTitled(title="mine", by="user"))
    with pytest.raises(TitledAlready):
        store.log.append("s", SessionTitled(title="better words", by="model"))
    assert store.sessions.title("s") == "mine"


def test_a_name_that_the_user_gives_at_the_same_moment_is_not_replaced(
    url: str, store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = store.log
    assert isinstance(log, PostgresSessionLog)
    with open_postgres(PostgresOptions(url)) as elsewhere:
        checked = log._require_not_named
        named: list[str] = []

        async def checked_too_early(session: str) -> None:
            await checked(session)
            if not named:
                named.append("mine")
                mine = SessionTitled(title="mine", by="user")
                await asyncio.wrap_future(elsewhere.log.submit("s", mine))

        monkeypatch.setattr(log, "_require_not_named", checked_too_early)
        with pytest.raises(TitledAlready):
            log.append("s", SessionTitled(title="better words", by="model"))
        assert named
        assert store.sessions.title("s") == "mine"


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:hunter2@db.example/hermes",
        "postgresql://me@db.example/hermes?password=hunter2",
        "postgresql://me@db.example/hermes?sslpassword=hunter2",
    ],
)
def test_a_password_in_the_address_is_refused_and_never_shown(url: str) -> None:
    options = PostgresOptions(url)
    with pytest.raises(StoreError, match="must not hold a password") as refused:
        open_postgres(options)
    told = f"{refused.value} {refused.value.hint} {options!r} {options.shown}"
    assert "hunter2" not in told
    assert "hunter2" not in repr(msgspec.structs.replace(options, password="hunter2"))  # noqa: S106 - a test


def test_encryption_asked_for_in_the_address_is_not_ignored() -> None:
    url = "postgresql://me@db.example/hermes?sslmode=verify-full"
    with pytest.raises(StoreError, match=r"sslmode .* no effect") as refused:
        open_postgres(PostgresOptions(url))
    assert "store.tls" in refused.value.hint


def test_an_address_where_nobody_listens_is_named(tmp_path: Any) -> None:
    began = time.monotonic()
    with pytest.raises(
        StoreError, match=r"can't be reached.*\(No such file or directory\)"
    ):
        open_postgres(PostgresOptions(f"postgresql://me@/none?host={tmp_path}"))
    assert time.monotonic() - began < TIMEOUT_S


def test_a_database_that_is_missing_is_named_in_what_to_do(
    postgres: LocalPostgres,
) -> None:
    with pytest.raises(StoreError, match="does not exist") as missing:
        open_postgres(PostgresOptions(postgres.url("bots")))
    assert missing.value.hint.endswith("createdb bots")


def test_a_user_without_rights_is_told_what_is_missing(
    postgres: LocalPostgres,
) -> None:
    postgres.sql("CREATE ROLE guest LOGIN")
    url = postgres.new_url().replace("hermes@", "guest@")
    postgres.sql(f"GRANT USAGE ON SCHEMA {url.rpartition('=')[2]} TO guest")
    with pytest.raises(StoreError, match="permission denied"):
        open_postgres(PostgresOptions(url))


def test_a_restored_database_continues_to_count_where_it_was(
    postgres: LocalPostgres, url: str, store: PostgresStore
) -> None:
    ahead = "UPDATE events SET id = id + (1::bigint << 50)"
    store.database.write(lambda connection: connection.execute(ahead).fetchall())
    last = store.database.select("SELECT max(id) FROM events")[0][0]
    with open_postgres(PostgresOptions(url)) as restored:
        (row,) = restored.log.append("s", UserMessage(text="after"))
        assert row.id > last


def test_an_outage_is_waited_for_and_everything_happens_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING, "hermes.waiting")
    with running_postgres() as server:
        options = PostgresOptions(server.url(), outage_timeout_s=TIMEOUT_S)
        with open_postgres(options) as store:
            store.log.create("s", SessionCreated())
            acknowledged: list[int] = []
            lease = store.leases.acquire("s")
            over = threading.Event()

            def write() -> int:
                count = 0
                while not over.is_set():
                    (row,) = store.log.append(
                        "s", UserMessage(text=str(count)), lease=lease
                    )
                    acknowledged.append(row.seq)
                    store.chats.accept("telegram", str(count), "words", "k").result()
                    count += 1
                return count

            with ThreadPoolExecutor(1) as pool:
                writing = pool.submit(write)
                for _ in range(3):
                    seen = len(acknowledged)
                    _until(lambda seen=seen: len(acknowledged) > seen + 5)
                    server.stop()
                    server.start()
                seen = len(acknowledged)
                _until(lambda: len(acknowledged) > seen + 5)
                over.set()
                count = writing.result(TIMEOUT_S)
            texts = [
                one.text
                for one in store.log.messages("s")
                if isinstance(one, UserMessage)
            ]
            assert texts == [str(number) for number in range(count)]
            assert acknowledged == [*range(2, count + 2)]
            assert len(store.chats.waiting()) == count
            assert store.check().problems == []
    assert "Store unreachable, waiting" in caplog.text
    assert "reachable again" in caplog.text


def test_whoever_waits_for_the_server_goes_on_when_another_finds_it(
    store: PostgresStore,
) -> None:
    server = store._database.server
    is_away = True

    async def attempt() -> str:
        if is_away:
            raise ConnectionError
        return "done"

    async def find() -> bool:
        nonlocal is_away
        waiting = asyncio.create_task(server._insist(attempt))
        await asyncio.sleep(0)
        is_away = False
        server.note_success()
        for _ in range(5):
            await asyncio.sleep(0)
        is_done = waiting.done()
        assert await waiting == "done"
        return is_done

    assert server.start(find()).result(TIMEOUT_S)


def _until(is_so: Callable[[], bool]) -> None:
    tick, deadline = threading.Event(), time.monotonic() + TIMEOUT_S
    while not is_so():
        assert time.monotonic() < deadline
        tick.wait(0.01)

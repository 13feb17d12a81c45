"""Leases: one holder, who can't write any more once another has taken over."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.fakes.store_engines import OpenStore

from hermes.errors import LeaseLost, SessionBusy, StoreBusy, StoreError
from hermes.schema.events import SessionCreated
from hermes.schema.messages import UserMessage
from hermes.store import Store, open_store
from hermes.store.leases import LEASE_TTL_S, RETRY_THREAD, Leases, this_process
from hermes.store.sqlite.connection import connect
from hermes.store.sqlite.opener import SqliteStore

WRITER = Path(__file__).with_name("store_writer.py")


class FakeClock:
    """Time that passes when told."""

    def __init__(self) -> None:
        self.time = 1_700_000_000.0

    def now(self) -> float:
        return self.time


@pytest.fixture
def elsewhere(store: Store, clock: FakeClock) -> Leases:
    """A process of another machine, of which nobody here can tell whether it lives."""
    return Leases(store._db, clock, owner="elsewhere:1:2")


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def store(tmp_path: Path, clock: FakeClock) -> Iterator[SqliteStore]:
    with open_store(tmp_path / "state.db", clock=clock, busy_timeout=1) as opened:
        opened.log.create("s", SessionCreated())
        yield opened


@pytest.fixture
def any_store(open_database: OpenStore) -> Iterator[Store]:
    """On each database. Tests that set the clock have `store`: elsewhere, the server's clock counts."""
    with open_database() as opened:
        opened.log.create("s", SessionCreated())
        yield opened


def test_a_session_has_one_holder(any_store: Store) -> None:
    lease = any_store.leases.acquire("s")
    with pytest.raises(SessionBusy, match="is being run by"):
        any_store.leases.acquire("s")
    assert any_store.leases.holder("s") == lease
    any_store.leases.release(lease)
    assert any_store.leases.holder("s") is None
    assert any_store.leases.acquire("s").token > lease.token


def test_a_session_is_taken_and_given_back_without_waiting(any_store: Store) -> None:
    lease = any_store.leases.take("s").result()
    with pytest.raises(SessionBusy, match="is being run by"):
        any_store.leases.take("s").result()
    any_store.leases.give_back(lease).result()
    assert any_store.leases.take("s").result().token > lease.token


def test_a_lease_of_another_machine_ends_when_it_is_not_renewed(
    store: Store, elsewhere: Leases, clock: FakeClock
) -> None:
    lease = elsewhere.acquire("s")
    clock.time += LEASE_TTL_S - 1
    lease = elsewhere.extend(elsewhere.renew(lease)).result()
    clock.time += LEASE_TTL_S - 1
    with pytest.raises(SessionBusy, match="process 1 on elsewhere"):
        store.leases.acquire("s")
    clock.time += 2
    assert store.leases.holder("s") is None
    store.leases.acquire("s")
    with pytest.raises(LeaseLost):
        elsewhere.renew(lease)


def test_a_clock_that_is_set_back_keeps_no_lease_of_another_machine_for_ever(
    store: Store, elsewhere: Leases, clock: FakeClock
) -> None:
    elsewhere.acquire("s")
    clock.time -= 86_400
    assert store.leases.holder("s") is None


@pytest.mark.parametrize("jump", [86_400.0, -86_400.0])
def test_whoever_lives_keeps_its_lease_through_sleep_and_a_clock_that_is_set(
    store: Store, clock: FakeClock, jump: float
) -> None:
    other = Leases(store._db, clock)
    lease = other.acquire("s")
    clock.time += jump
    with pytest.raises(SessionBusy):
        store.leases.acquire("s")
    assert store.leases.holder("s") == lease
    assert store.leases.held() == [lease]
    store.log.append("s", UserMessage(text="still mine"), lease=lease)


def test_a_process_of_before_the_machine_was_started_anew_holds_nothing(
    store: Store, clock: FakeClock
) -> None:
    host, pid, birth = this_process().rsplit(":", 2)
    started, boot, namespace = birth.split(".")
    Leases(
        store._db, clock, owner=f"{host}:{pid}:{started}.{boot[::-1]}x.{namespace}"
    ).acquire("s")
    assert store.leases.holder("s") is None


def test_a_process_of_another_container_may_live(
    store: Store, clock: FakeClock
) -> None:
    host, _, birth = this_process().rsplit(":", 2)
    started, boot, _ = birth.split(".")
    Leases(store._db, clock, owner=f"{host}:999999999:{started}.{boot}.1").acquire("s")
    assert store.leases.holder("s") is not None
    clock.time += LEASE_TTL_S + 1
    assert store.leases.holder("s") is None


def test_the_name_of_a_process_of_an_earlier_version_is_understood(
    store: Store, clock: FakeClock
) -> None:
    host, pid, birth = this_process().rsplit(":", 2)
    lease = Leases(
        store._db, clock, owner=f"{host}:{pid}:{birth.split('.')[0]}"
    ).acquire("s")
    assert store.leases.holder("s") == lease


def test_a_lease_whose_return_could_not_be_written_is_free_again_in_its_process(
    store: Store, tmp_path: Path
) -> None:
    lease = store.leases.acquire("s")
    with closing(connect(tmp_path / "state.db", busy_timeout=1)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreBusy):
            store.leases.release(lease)
        other.execute("ROLLBACK")
    assert store.leases.holder("s") is None
    assert store.leases.acquire("s").token > lease.token


@pytest.mark.parametrize("waiting", [True, False])
def test_a_return_that_fails_when_it_is_committed_is_made_up_for(
    store: SqliteStore, clock: FakeClock, waiting: bool
) -> None:
    lease = store.leases.acquire("s")
    commits = iter([True])  # the first is refused, as on a full disk
    store._database._writer.set_commit_hook(lambda: next(commits, False))
    release = (
        store.leases.release
        if waiting
        else lambda lease: store.leases.give_back(lease).result(10)
    )
    with pytest.raises(StoreError):
        release(lease)
    assert store.leases.holder("s") is None
    other = Leases(store._db, clock)  # what another process sees: the holder lives
    for retry in threading.enumerate():
        if retry.name == RETRY_THREAD:
            retry.join(10)
    assert other.holder("s") is None
    assert other.acquire("s").token > lease.token


def test_an_old_holder_writes_nothing(
    store: Store, elsewhere: Leases, clock: FakeClock
) -> None:
    old = elsewhere.acquire("s")
    store.log.append("s", UserMessage(text="mine"), lease=old)
    clock.time += LEASE_TTL_S + 1
    new = store.leases.acquire("s")
    with pytest.raises(LeaseLost, match="is now run by"):
        store.log.append(
            "s", UserMessage(text="late"), UserMessage(text="later"), lease=old
        )
    store.log.append("s", UserMessage(text="successor"), lease=new)
    assert store.log.messages("s") == [
        UserMessage(text="mine"),
        UserMessage(text="successor"),
    ]
    elsewhere.release(old)
    assert store.leases.holder("s") == new


def test_a_lease_that_was_given_back_is_no_lease(any_store: Store) -> None:
    lease = any_store.leases.acquire("s")
    any_store.leases.release(lease)
    with pytest.raises(LeaseLost, match="nobody"):
        any_store.log.append("s", UserMessage(text="too late"), lease=lease)


def test_a_session_that_runs_is_not_deleted(any_store: Store) -> None:
    lease = any_store.leases.acquire("s", ttl=30)
    with pytest.raises(SessionBusy, match="is being run by"):
        any_store.sessions.delete("s")
    assert any_store.sessions.find("s").head == 1
    any_store.leases.release(lease)
    assert any_store.sessions.delete("s") == 1
    with pytest.raises(LeaseLost):
        any_store.log.append("s", UserMessage(text="gone"), lease=lease)


def test_a_dead_process_holds_nothing_even_before_its_parent_has_looked(
    tmp_path: Path,
) -> None:
    path = tmp_path / "state.db"
    process = subprocess.Popen(
        [sys.executable, str(WRITER), "keep-open", str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdout
    assert process.stdin
    assert process.stdout.readline() == b"open\n"
    with open_store(path) as store:
        with pytest.raises(SessionBusy, match=f"process {process.pid} on"):
            store.leases.acquire("leased")
        process.send_signal(signal.SIGKILL)
        os.waitid(
            os.P_PID, process.pid, os.WEXITED | os.WNOWAIT
        )  # it has ended; nobody has asked how
        lease = store.leases.acquire("leased")
        store.log.append("leased", UserMessage(text="taken over"), lease=lease)
    process.wait(10)
    process.stdin.close()
    process.stdout.close()

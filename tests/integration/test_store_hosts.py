"""The processes that use a store, on both databases."""

from collections.abc import Iterator

import pytest
from tests.fakes.store_engines import OpenStore

from hermes.core.ports import SystemClock
from hermes.schema.events import SessionCreated
from hermes.store import Store
from hermes.store.hosts import host_of
from hermes.store.leases import Leases


@pytest.fixture
def store(open_database: OpenStore) -> Iterator[Store]:
    with open_database() as opened:
        yield opened


def test_a_process_is_listed_from_its_first_heartbeat_until_it_leaves(
    store: Store,
) -> None:
    store.hosts.beat("a:1:x", "gateway", "1.0")
    store.hosts.beat("b:2:y", "worker", "1.1")
    first = store.hosts.state()
    assert [(one.host, one.role, one.version) for one in first.processes] == [
        ("a", "gateway", "1.0"),
        ("b", "worker", "1.1"),
    ]
    assert all(one.started == one.seen <= first.now for one in first.processes)
    store.hosts.beat("a:1:x", "gateway", "1.2")
    store.hosts.leave("b:2:y").result()
    (left,) = store.hosts.state().processes
    assert left.version == "1.2"
    assert left.started <= left.seen


def test_the_state_has_the_sessions_that_each_process_runs(store: Store) -> None:
    for session in ("one", "two", "three"):
        store.log.create(session, SessionCreated())
    mine = store.leases.acquire("one")
    store.leases.acquire("two")
    Leases(store.database, SystemClock(), owner="far:1:2").acquire("three")
    store.leases.release(mine)
    held = {lease.session: host_of(lease.owner) for lease in store.hosts.state().leases}
    assert held == {"two": host_of(store.leases.owner), "three": "far"}

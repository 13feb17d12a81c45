"""Several hosts over one store and one git remote: one of them exchanges memory and skills at a time."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from tests.fakes.postgres_server import LocalPostgres
from tests.integration.learning.test_remote import git, note, write_skill

from hermes.app.learning.remote_lease import LEARNING_ROLE, remote_lease
from hermes.core.ports import SystemClock
from hermes.learning.change import LearningError
from hermes.learning.learning_service import LearningService, open_learning
from hermes.settings import Home, Settings
from hermes.settings.load import environment
from hermes.settings.sections import LearningSettings, StoreSettings
from hermes.store import Store
from hermes.store.postgres.options import PostgresOptions
from hermes.store.postgres.postgres_store import open_postgres
from hermes.store.role_leases import RoleLeases

WAIT_TIMEOUT_S = 60.0
Host = Callable[..., tuple[LearningService, Store]]


@pytest.fixture
def host(postgres: LocalPostgres, tmp_path: Path) -> Iterator[Host]:
    """Makes a host: a home of its own, and a connection to the store of all."""
    url, remote = postgres.new_url(), tmp_path / "remote.git"
    git("init", "-q", "--bare", str(remote))
    settings = Settings(
        store=StoreSettings(url=url), learning=LearningSettings(remote=str(remote))
    )
    with ExitStack() as stack:

        def make(
            name: str, wait_s: float = WAIT_TIMEOUT_S
        ) -> tuple[LearningService, Store]:
            store = stack.enter_context(open_postgres(PostgresOptions(url)))
            learning = open_learning(
                Home(tmp_path / name).ensure(),
                settings.learning,
                environment(),
                exclusive_remote=remote_lease(settings, lambda: store, wait_s=wait_s),
            )
            return learning, store

        yield make


def another_host(store: Store) -> RoleLeases:
    """The leases of a process on another machine: nobody here can tell whether it still lives."""
    return RoleLeases(store.database, SystemClock(), owner="elsewhere:1:unknown")


def counted(learning: LearningService, inside: list[int], seen: list[int]) -> None:
    """Notes how many hosts are inside whenever one enters."""
    exclusive = learning.exclusive_remote

    @contextmanager
    def held() -> Iterator[None]:
        with exclusive():
            inside.append(1)
            seen.append(len(inside))
            try:
                yield
            finally:
                inside.pop()

    learning.exclusive_remote = held


def test_of_several_hosts_one_exchanges_at_a_time_and_nothing_is_lost(
    host: Host,
) -> None:
    names = ("one", "two", "three")
    hosts = [host(name)[0] for name in names]
    inside: list[int] = []
    seen: list[int] = []
    for learning in hosts:
        counted(learning, inside, seen)

    def learn(learning: LearningService) -> None:
        note(learning, f"Learned on {learning.home.root.name}.")

    with ThreadPoolExecutor(len(hosts)) as pool:
        list(pool.map(learn, hosts, timeout=WAIT_TIMEOUT_S))
    assert max(seen) == 1
    assert len(seen) == 2 * len(hosts)
    hosts[0].sync()
    assert all(
        f"Learned on {name}." in hosts[0].memory.read("memory") for name in names
    )


def test_a_host_that_waits_too_long_keeps_its_change_and_sends_it_later(
    host: Host,
) -> None:
    one, store = host("one", wait_s=0.1)
    two, _ = host("two")
    busy = another_host(store).take(LEARNING_ROLE)
    assert busy is not None
    note(one, "The user likes tea.")
    assert "tea" in one.memory.read("memory")
    with pytest.raises(LearningError, match="process 1 on elsewhere") as refused:
        one.sync()
    assert "hermes memory sync" in refused.value.hint
    another_host(store).release(busy)
    one.sync()
    two.sync()
    assert "tea" in two.memory.read("memory")


def test_the_lease_of_a_host_that_died_ends_by_itself(host: Host) -> None:
    one, store = host("one")
    assert another_host(store).take(LEARNING_ROLE, ttl=0.3) is not None
    note(one, "The user likes tea.")
    assert one.sync().pushed is False
    assert store.roles.held(LEARNING_ROLE) == []


def test_a_conflict_of_two_hosts_becomes_a_proposal(host: Host) -> None:
    one, store = host("one")
    two, _ = host("two", wait_s=0.1)
    write_skill(one, "Boil water.")
    two.sync()
    busy = another_host(store).take(LEARNING_ROLE)
    assert busy is not None
    write_skill(two, "Boil little water.")
    another_host(store).release(busy)
    write_skill(one, "Boil fresh water.")
    assert [found.path for found in two.sync().conflicts] == ["skills/tea/SKILL.md"]
    (proposal,) = two.proposals.pending()
    assert "+Boil little water." in proposal.diff
    assert "fresh" in (two.home.skills / "tea" / "SKILL.md").read_text()

"""Roles and pairing codes, with a clock that the test moves."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.fakes.store_engines import OpenStore

from hermes.app.people_access import CODE_LIFETIME_S, PeopleAccess
from hermes.errors import HermesError, UsageError
from hermes.settings.gateway import GatewaySettings
from hermes.store import Store
from hermes.store.people import KnownPerson
from hermes.surfaces.gateway.adapter import Person
from hermes.testing.fixtures import FakeClock

ANNA = Person("7", "Anna")


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def store(open_database: OpenStore, clock: FakeClock) -> Iterator[Store]:
    with open_database(clock=clock) as one:
        yield one


def access(store: Store, clock: FakeClock, **settings: object) -> PeopleAccess:
    return PeopleAccess(GatewaySettings(**settings), store.people, clock)  # type: ignore[arg-type]


def test_nobody_is_let_in_by_default_and_a_name_never_counts(
    store: Store, clock: FakeClock
) -> None:
    assert access(store, clock).role("telegram", ANNA) == ""
    assert access(store, clock, allow=("telegram:Anna",)).role("telegram", ANNA) == ""
    assert access(store, clock, allow=("slack:7",)).role("telegram", ANNA) == ""
    assert (
        access(store, clock, allow=("telegram:7*",)).role("telegram", Person("77"))
        == ""
    )


def test_the_settings_let_in_by_id_and_unverified_ids_are_nobody(
    store: Store, clock: FakeClock
) -> None:
    door = access(store, clock, owners=("telegram:7",), allow=("slack:*",))
    assert door.role("telegram", ANNA) == "owner"
    assert door.role("slack", Person("any")) == "user"
    assert door.role("telegram", Person("7", verified=False)) == ""
    assert door.role("slack", Person("")) == ""


def test_a_blocked_person_stays_out_whatever_the_settings_say(
    store: Store, clock: FakeClock
) -> None:
    store.people.put(KnownPerson("telegram", "7", "Anna", "blocked", 0.0))
    door = access(store, clock, owners=("telegram:7",), allow=("telegram:*",))
    assert door.role("telegram", ANNA) == ""
    assert door.request("telegram", ANNA) == ""


def test_a_code_ends_after_an_hour_and_is_kept_only_as_a_hash(
    store: Store, clock: FakeClock, tmp_path: Path
) -> None:
    door = access(store, clock)
    code = door.request("telegram", ANNA)
    assert len(code) == 8
    assert door.request("telegram", ANNA) == ""  # one at a time
    (kept,) = store.database.select(
        "SELECT platform, person, digest FROM gateway_codes"
    )
    assert kept[:2] == ("telegram", ANNA.id)
    assert code not in kept[2]
    assert code.encode() not in b"".join(
        path.read_bytes() for path in tmp_path.iterdir() if path.is_file()
    )
    clock.advance(CODE_LIFETIME_S + 1)
    with pytest.raises(UsageError):
        door.approve(code)
    again = door.request("telegram", ANNA)
    assert door.approve(again).role == "owner"
    assert door.role("telegram", ANNA) == "owner"
    second = door.request("telegram", Person("8"))
    assert door.approve(second).role == "user"


def test_the_lock_after_wrong_codes_opens_again(store: Store, clock: FakeClock) -> None:
    door = access(store, clock)
    for _ in range(5):
        with pytest.raises(UsageError):
            door.approve("XXXXXXXX")
    with pytest.raises(HermesError, match="locked"):
        door.approve("XXXXXXXX")
    clock.advance(3601)
    assert door.approve(door.request("telegram", ANNA)).id == "7"

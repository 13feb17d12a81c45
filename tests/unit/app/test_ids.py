"""Ids: told by the clock, never the same twice."""

from hermes.app.app import SystemIds
from hermes.testing import FakeClock


def test_an_id_is_the_utc_time_and_twelve_hexadecimal_digits() -> None:
    session = SystemIds(FakeClock(1_800_000_000.0)).session()
    assert session[:16] == "20270115-080000-"
    assert len(session) == 28
    int(session[16:], 16)


def test_ids_that_all_machines_make_in_the_same_second_differ() -> None:
    ids = SystemIds(FakeClock())
    assert len({ids.session() for _ in range(20_000)}) == 20_000


def test_ids_sort_by_age() -> None:
    clock = FakeClock()
    ids = SystemIds(clock)
    first = ids.session()
    clock.advance(1)
    assert first < ids.session()

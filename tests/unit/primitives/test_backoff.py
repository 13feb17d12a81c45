import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.primitives.backoff import Backoff, delay_s


def test_delays_double_up_to_a_bound() -> None:
    delays = [delay_s(count, first_s=0.5, max_s=5.0) for count in range(1, 7)]
    assert delays == [0.5, 1.0, 2.0, 4.0, 5.0, 5.0]


@given(st.integers(1, 10**6), st.floats(0.001, 10.0), st.floats(10.0, 1e6))
def test_a_delay_stays_in_bounds_however_many_failures(
    failures: int, first_s: float, max_s: float
) -> None:
    assert first_s <= delay_s(failures, first_s=first_s, max_s=max_s) <= max_s


@given(st.integers(1, 100), st.floats(0.0, 0.9))
def test_jitter_spreads_delays_around_the_plain_one(
    failures: int, jitter: float
) -> None:
    backoff = Backoff(1.0, 60.0, jitter=jitter)
    delay = [backoff.next_s() for _ in range(failures)][-1]
    plain = delay_s(failures, first_s=1.0, max_s=60.0)
    assert plain * (1 - jitter) <= delay <= plain * (1 + jitter)


def test_a_success_starts_again_with_the_first_delay() -> None:
    backoff = Backoff(1.0, 30.0, jitter=0.0)
    assert [backoff.next_s() for _ in range(3)] == [1.0, 2.0, 4.0]
    backoff.reset()
    assert backoff.next_s() == pytest.approx(1.0)

"""Drawing no more often than anyone sees, and less often what takes long to draw."""

import pytest

from hermes.surfaces.tui.frame_output import RedrawThrottle
from hermes.testing.fixtures import FakeClock


@pytest.mark.parametrize(
    ("cost", "pause"), [(0.0, 0.014), (0.001, 0.013), (0.05, 0.4), (3.0, 0.5)]
)
def test_what_takes_long_is_drawn_less_often_but_still_drawn(
    cost: float, pause: float
) -> None:
    clock = FakeClock(100.0)
    pace = RedrawThrottle(clock.now, clock.now)
    assert pace.wait <= 0
    for _ in range(2):
        with pace:
            clock.advance(cost)
    assert pace.wait == pytest.approx(pause)
    clock.advance(pause + 0.001)
    assert pace.wait <= 0


def test_one_slow_drawing_among_fast_ones_holds_nothing_up() -> None:
    clock = FakeClock(100.0)
    pace = RedrawThrottle(clock.now, clock.now)
    for cost in (0.001, 0.05):
        with pace:
            clock.advance(cost)
    assert pace.wait == pytest.approx(0.008)


def test_waiting_for_the_processor_does_not_count_as_slow_drawing() -> None:
    clock, cpu = FakeClock(100.0), FakeClock(0.0)
    pace = RedrawThrottle(clock.now, cpu.now)
    for _ in range(2):
        with pace:
            clock.advance(0.2)
            cpu.advance(0.001)
    assert pace.wait == pytest.approx(0.008)

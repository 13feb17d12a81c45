"""Drawing less often what takes long to draw."""

import pytest

from hermes.surfaces.tui.redraw_throttle import RedrawThrottle
from hermes.testing.clock import FakeClock


@pytest.mark.parametrize(
    ("cost", "pause"), [(0.0, 0.0), (0.001, 0.008), (0.05, 0.4), (3.0, 0.5)]
)
def test_what_takes_long_is_drawn_less_often_but_still_drawn(
    cost: float, pause: float
) -> None:
    clock = FakeClock(100.0)
    pace = RedrawThrottle(clock.now)
    assert not pace.is_wanted
    pace.ask()
    assert pace.is_wanted
    assert pace.wait <= 0
    with pace:
        clock.advance(cost)
    assert not pace.is_wanted
    pace.ask()
    assert pace.wait == pytest.approx(pause)
    with pace:
        clock.advance(cost)
    pace.ask(now=True)
    assert pace.wait <= 0
    with pace:
        clock.advance(cost)
    clock.advance(pause + 0.001)
    assert pace.wait <= 0
    pace.forget()
    assert not pace.is_wanted

"""Two presses of Ctrl-C in a row leave; one, or two with something between them, don't."""

from hermes.surfaces.tui.conversation import DoublePress
from hermes.testing.fixtures import FakeClock


def test_two_in_a_row() -> None:
    presses = DoublePress(FakeClock(5.0).now)
    assert [presses.again(), presses.again()] == [False, True]


def test_a_press_is_forgotten_after_two_seconds_and_by_any_key() -> None:
    clock = FakeClock(5.0)
    presses = DoublePress(clock.now)
    presses.again()
    clock.advance(2.1)
    assert not presses.again()
    presses.forget()
    assert not presses.again()

from collections.abc import Callable

from hermes.events import Bus, Envelope


class Clocks:
    """A clock of the day that can be set, and a steady one."""

    def __init__(self) -> None:
        self.day = 1000.0
        self.steady = 5.0

    def pass_time(self, seconds: float) -> None:
        self.day += seconds
        self.steady += seconds


def slowest(clocks: Clocks, *calls: Callable[[], None]) -> float:
    """The slowest call of a subscription whose callback does one of `calls` after the other."""
    bus = Bus(clock=lambda: clocks.day, steady_clock=lambda: clocks.steady)
    left = list(calls)

    def callback(event: Envelope) -> None:
        left.pop(0)()

    bus.subscribe("a", callback)
    for _ in calls:
        bus.publish("a")
    return round(bus.stats().subscriptions[0].slowest, 6)


def test_the_slowest_call_is_remembered() -> None:
    clocks = Clocks()
    assert (
        slowest(clocks, *(lambda s=s: clocks.pass_time(s) for s in (0.1, 0.5, 0.2)))
        == 0.5
    )


def test_each_subscription_is_timed_by_itself() -> None:
    clocks = Clocks()
    bus = Bus(clock=lambda: clocks.day, steady_clock=lambda: clocks.steady)
    for seconds in (0.1, 0.7, 0.2):
        bus.subscribe("a", lambda event, seconds=seconds: clocks.pass_time(seconds))
    bus.publish("a")
    assert [round(one.slowest, 6) for one in bus.stats().subscriptions] == [
        0.1,
        0.7,
        0.2,
    ]


def test_a_failing_call_is_timed_too() -> None:
    clocks = Clocks()

    def fail() -> None:
        clocks.pass_time(0.3)
        raise ValueError

    assert slowest(clocks, fail) == 0.3


def test_a_clock_that_is_set_during_a_call_does_not_make_it_slow() -> None:
    clocks = Clocks()

    def set_clock() -> None:
        clocks.pass_time(0.2)
        clocks.day += 3600

    assert slowest(clocks, set_clock) == 0.2


def test_a_clock_that_was_set_before_a_slow_call_does_not_hide_it() -> None:
    for change in (3600, -3600):
        clocks = Clocks()
        bus = Bus(
            clock=lambda clocks=clocks: clocks.day,
            steady_clock=lambda clocks=clocks: clocks.steady,
        )
        bus.subscribe("a", lambda event, clocks=clocks: clocks.pass_time(0.4))
        clocks.day += change
        bus.publish("a")
        assert round(bus.stats().subscriptions[0].slowest, 6) == 0.4

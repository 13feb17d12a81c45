import logging
import sys
from collections.abc import Callable
from contextlib import suppress
from itertools import islice
from traceback import walk_stack

import pytest

from hermes.events import Bus, Envelope
from hermes.schema.events import RecursionStopped


def test_a_recursion_of_ten_thousand_is_stopped_with_an_error_event(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bus, depths, stopped = Bus(max_depth=64), list[int](), list[Envelope]()

    def again(event: Envelope) -> None:
        depths.append(event["depth"])
        if event["depth"] < 10_000:
            bus.publish("loop.again", {"depth": event["depth"] + 1})

    bus.subscribe("loop.*", again)
    bus.subscribe("bus.recursion_stopped", stopped.append)
    bus.publish("loop.again", {"depth": 1})
    assert depths == list(range(1, 65))
    (error,) = stopped
    assert (error["stopped"], error["depth"]) == ("loop.again", 65)
    assert bus.stats().refused == 1
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert "loop.again" in record.getMessage()


def test_each_refused_topic_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    bus = Bus(max_depth=3)
    for topic in ("a", "b"):
        bus.subscribe(topic, lambda event: bus.publish(event["type"]))
    for _ in range(5):
        bus.publish("a")
        bus.publish("b")
    assert len(caplog.records) == 2
    assert bus.stats().refused == 10


def test_a_callback_that_publishes_twice_does_not_double_at_every_level() -> None:
    bus, calls = Bus(), list[int]()

    def twice(event: Envelope) -> None:
        calls.append(1)
        bus.publish("a")
        bus.publish("a")

    bus.subscribe("a", twice)
    bus.publish("a")
    assert len(calls) == 64


def test_after_a_stopped_recursion_the_topic_is_delivered_again() -> None:
    bus, calls = Bus(max_depth=4), list[str]()

    def again(event: Envelope) -> None:
        calls.append(event["type"])
        if event.get("deep"):
            bus.publish("a", {"deep": True})

    bus.subscribe("a", again)
    bus.publish("a", {"deep": True})
    calls.clear()
    bus.publish("a")
    assert calls == ["a"]
    assert bus.stats().refused == 1


def test_the_report_of_a_recursion_may_itself_recurse() -> None:
    bus, reports = Bus(max_depth=3), list[str]()

    def report(event: Envelope) -> None:
        reports.append(event["stopped"])
        bus.publish("a")
        bus.publish("bus.recursion_stopped", {"stopped": "again"})

    bus.subscribe("a", lambda event: bus.publish("a"))
    bus.subscribe("bus.recursion_stopped", report)
    bus.publish("a")
    assert reports == ["a"]
    assert bus.stats().refused == 3


def test_a_callback_that_publishes_two_new_topics_does_not_double_at_every_level() -> (
    None
):
    bus, calls, stopped, numbers = (
        Bus(),
        list[str](),
        list[Envelope](),
        iter(range(1000)),
    )

    def twice(event: Envelope) -> None:
        calls.append(event["type"])
        for number in islice(numbers, 2):
            bus.publish(f"s.{number}")

    bus.subscribe("s.**", twice)
    bus.subscribe("bus.recursion_stopped", stopped.append)
    bus.publish("s")
    assert len(calls) == 64
    assert bus.stats().refused == len(stopped) == 65


def test_a_recursion_on_an_inner_bus_does_not_silence_it_for_good() -> None:
    outer, inner, heard = Bus(), Bus(max_depth=5), list[str]()
    inner.subscribe("loop", lambda event: inner.publish("loop"))
    inner.subscribe("other", lambda event: heard.append(event["type"]))
    outer.subscribe("*", lambda event: inner.publish(event["type"]))
    outer.publish("loop")
    outer.publish("other")
    assert heard == ["other"]


def through(frames: int, last: Callable[[], None]) -> None:
    """Calls `last` from `frames` calls further down."""
    if frames:
        through(frames - 1, last)
    else:
        last()


@pytest.mark.parametrize("frames", [20, 21, 37, 150])
def test_a_recursion_that_ends_the_stack_first_is_stopped_with_an_error_event(
    frames: int,
) -> None:
    bus, calls, stopped = Bus(), list[str](), list[Envelope]()

    def again(event: Envelope) -> None:
        calls.append(event["type"])
        assert len(calls) < 1000
        through(frames, lambda: bus.publish("loop"))
        through(frames, lambda: bus.publish("loop"))

    def report(event: Envelope) -> None:
        through(100, lambda: stopped.append(event))

    bus.subscribe("loop", again)
    bus.subscribe("bus.recursion_stopped", report)
    bus.publish("loop")
    assert len(calls) < 64
    assert {event["stopped"] for event in stopped} == {"loop"}
    assert 2 <= stopped[0]["depth"] <= len(calls)
    assert bus.stats().refused >= len(stopped) >= 1
    calls.clear()
    bus.subscribe("calm", lambda event: calls.append(event["type"]))
    bus.publish("calm")
    assert calls == ["calm"]


def test_callbacks_that_keep_the_error_to_themselves_only_delay_the_report() -> None:
    bus, stopped = Bus(), list[Envelope]()

    def again(event: Envelope) -> None:
        if sum(1 for _ in walk_stack(None)) > sys.getrecursionlimit() - 100:
            again(event)  # until the stack ends, in this callback for certain
        with suppress(RecursionError):
            through(20, lambda: bus.publish("loop"))

    bus.subscribe("loop", again)
    bus.subscribe("bus.recursion_stopped", stopped.append)
    bus.subscribe("calm", lambda event: None)
    bus.publish("loop")
    bus.publish("calm")
    assert [event["stopped"] for event in stopped] == ["loop"]
    assert bus.stats().refused == 1


def test_a_callback_that_recurses_by_itself_has_failed_and_nothing_is_refused() -> None:
    bus, stopped = Bus(), list[Envelope]()

    def endless(event: Envelope) -> None:
        endless(event)

    bus.subscribe("inner", endless)
    bus.subscribe("outer", lambda event: bus.publish("inner"))
    bus.subscribe("bus.recursion_stopped", stopped.append)
    bus.publish("outer")
    assert (bus.stats().failed, bus.stats().refused, stopped) == (1, 0, [])


def test_the_report_has_the_fields_that_its_schema_names() -> None:
    bus, stopped = Bus(max_depth=2), list[Envelope]()
    bus.subscribe("a", lambda event: bus.publish("a"))
    bus.subscribe(RecursionStopped.topic, stopped.append)
    bus.publish("a")
    (event,) = stopped
    assert event.keys() - {"type", "ts", "src"} == set(
        RecursionStopped.__struct_fields__
    )


def test_two_buses_that_feed_each_other_are_stopped() -> None:
    here, there = Bus(), Bus()
    here.subscribe("a", lambda event: there.publish("a"))
    there.subscribe("a", lambda event: here.publish("a"))
    here.publish("a")
    assert here.stats().refused + there.stats().refused == 1


def test_nesting_below_the_limit_is_delivered() -> None:
    bus, heard = Bus(max_depth=2), list[str]()
    bus.subscribe("outer", lambda event: bus.publish("inner"))
    bus.subscribe("*", lambda event: heard.append(event["type"]))
    for _ in range(3):
        bus.publish("outer")
    assert heard == ["inner", "outer"] * 3
    assert bus.stats().refused == 0


def test_a_limit_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="max_depth"):
        Bus(max_depth=0)

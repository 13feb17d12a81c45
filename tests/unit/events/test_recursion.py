import logging

import pytest

from hermes.events import Bus, Envelope


def test_a_recursion_of_ten_thousand_is_stopped_with_an_error_event(caplog: pytest.LogCaptureFixture) -> None:
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
    assert (error["topic"], error["depth"]) == ("loop.again", 65)
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
        reports.append(event["topic"])
        bus.publish("a")
        bus.publish("bus.recursion_stopped", {"topic": "again"})

    bus.subscribe("a", lambda event: bus.publish("a"))
    bus.subscribe("bus.recursion_stopped", report)
    bus.publish("a")
    assert reports == ["a"]
    assert bus.stats().refused == 3


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

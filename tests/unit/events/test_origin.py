"""Events of other processes: marked while they are delivered, and only they."""

from collections.abc import Mapping
from typing import Any

import pytest

from hermes.events import Bus
from hermes.events.envelope import is_foreign, relay


def test_an_event_that_is_relayed_is_foreign_and_keeps_what_it_says_of_itself() -> None:
    bus, seen = Bus(), list[tuple[bool, Mapping[str, Any]]]()
    bus.subscribe("**", lambda event: seen.append((is_foreign(event), event)))
    relay(
        bus.publish,
        "a.b",
        {"type": "x.y", "ts": 3.5, "src": "x", "deep": {"list": [1]}},
    )
    relay(bus.publish, "a.b", {"ts": 4.5, "flat": 1})
    bus.publish("a.b", {})
    assert [foreign for foreign, _ in seen] == [True, True, False]
    assert dict(seen[0][1]) == {
        "type": "x.y",
        "ts": 3.5,
        "src": "x",
        "deep": {"list": [1]},
    }
    assert dict(seen[1][1]) == {"type": "a.b", "ts": 4.5, "src": "a", "flat": 1}


def test_what_is_published_in_answer_is_born_here() -> None:
    bus, seen = Bus(), dict[str, list[bool]]()

    def answer(event: Mapping[str, Any]) -> None:
        if event["type"] == "first":
            bus.publish("second", {})

    bus.subscribe("first", answer)
    bus.subscribe(
        "**", lambda event: seen.setdefault(event["type"], []).append(is_foreign(event))
    )
    relay(bus.publish, "first", {})
    assert seen == {"first": [True], "second": [False]}


def test_an_event_that_is_passed_on_stays_foreign_and_a_copy_of_it_is_born_here() -> (
    None
):
    bus, seen = Bus(), list[Mapping[str, Any]]()
    handle = bus.subscribe("**", seen.append)
    relay(bus.publish, "a", {"n": 1})
    relay(bus.publish, "a", {"n": [1]})
    bus.unsubscribe(handle)
    heard: list[bool] = []
    bus.subscribe("b", lambda event: heard.append(is_foreign(event)))
    for event in seen:
        assert is_foreign(event)
        bus.publish("b", event)
        bus.publish("b", dict(event))
        bus.publish("b", {"inside": event})
    assert heard == [True, False, False] * 2


def test_a_foreign_event_can_t_be_changed() -> None:
    bus, seen = Bus(), list[Any]()
    bus.subscribe("**", seen.append)
    relay(bus.publish, "a", {"n": 1, "deep": {"n": [1]}})
    for change in (seen[0].update, seen[0]["deep"].update, seen[0]["deep"]["n"].append):
        with pytest.raises(TypeError, match="can't be changed"):
            change({"n": 2})


def test_what_can_t_be_an_event_is_refused() -> None:
    with pytest.raises(ValueError, match="empty"):
        relay(Bus().publish, "", {})

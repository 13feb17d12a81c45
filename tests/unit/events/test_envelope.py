import copy
import dataclasses
import datetime as dt
import enum
import json
import pathlib
import pickle
import uuid
from collections import OrderedDict
from types import MappingProxyType
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hermes.events import Bus, Envelope, thaw

# Other work on the machine makes an example slow; that says nothing about the bus.
UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)
BEYOND_JSON = [
    ("nan", float("nan")),
    ("inf", float("inf")),
    ("-inf", float("-inf")),
    ("4,300 digits", 10**4300),
    ("4,300 digits", -(10**4300)),
    ("surrogate", "half \ud83d"),
]
PAYLOADS = st.dictionaries(st.text(), JSON, max_size=6)


def received(payload: Any, topic: str = "demo.topic") -> Envelope:
    """The event that a subscriber gets for `payload`."""
    bus, events = Bus(), list[Envelope]()
    bus.subscribe("**", events.append)
    bus.publish(topic, payload)
    (event,) = events
    return event


def refused(payload: Any) -> str:
    """Why `payload` can't be published: the same whether or not somebody listens."""
    unheard, heard = Bus(), Bus()
    heard.subscribe("**", lambda event: None)
    with pytest.raises((TypeError, ValueError)) as alone:
        unheard.publish("demo.topic", payload)
    with pytest.raises((TypeError, ValueError)) as listening:
        heard.publish("demo.topic", payload)
    assert str(alone.value) == str(listening.value)
    assert type(alone.value) is type(listening.value)
    return str(alone.value)


@UNHURRIED
@given(payload=PAYLOADS)
def test_any_json_payload_arrives_as_the_same_json(payload: dict[str, Any]) -> None:
    before = copy.deepcopy(payload)
    event = received(payload)
    assert payload == before
    assert {name: event[name] for name in payload} == before
    assert json.loads(json.dumps(event)) == event
    assert set(event) == set(payload) | {"type", "ts", "src"}


@UNHURRIED
@given(payload=PAYLOADS)
def test_an_event_is_frozen_at_every_level(payload: dict[str, Any]) -> None:
    def check(value: object) -> None:
        if isinstance(value, dict):
            with pytest.raises(TypeError):
                value["new"] = 1
            for inner in value.values():
                check(inner)
        if isinstance(value, list):
            with pytest.raises(TypeError):
                value.append(1)
            for inner in value:
                check(inner)

    check(received(payload))


CHANGES = [
    ("event", "__setitem__", "n", 1),
    ("event", "__delitem__", "n"),
    ("event", "__ior__", {"n": 1}),
    ("event", "clear"),
    ("event", "pop", "n"),
    ("event", "popitem"),
    ("event", "setdefault", "new", 1),
    ("event", "update", {"n": 1}),
    ("inner", "update", {"n": 1}),
    ("items", "__setitem__", 0, 1),
    ("items", "__delitem__", 0),
    ("items", "__iadd__", [1]),
    ("items", "__imul__", 2),
    ("items", "append", 1),
    ("items", "clear"),
    ("items", "extend", [1]),
    ("items", "insert", 0, 1),
    ("items", "pop"),
    ("items", "remove", 1),
    ("items", "reverse"),
    ("items", "sort"),
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: f"{change[0]}.{change[1]}")
def test_every_way_to_change_an_event_is_refused(change: tuple[Any, ...]) -> None:
    event = received({"n": 1, "items": [1, 2], "inner": {"n": 1}})
    part, method, *arguments = change
    before = json.dumps(event)
    with pytest.raises(TypeError, match="can't be changed"):
        getattr(event if part == "event" else event[part], method)(*arguments)
    assert json.dumps(event) == before


def test_the_publishers_later_changes_are_not_seen() -> None:
    bus, events = Bus(), list[Envelope]()
    bus.subscribe("**", events.append)
    payload: dict[str, Any] = {"items": [1], "inner": {"n": 1}, "n": 1}
    bus.publish("a", payload)
    payload["items"].append(2)
    payload["inner"]["n"] = 2
    payload["n"] = 2
    assert (events[0]["items"], events[0]["inner"], events[0]["n"]) == ([1], {"n": 1}, 1)


def test_an_event_is_a_dict_with_type_time_and_source() -> None:
    bus, events = Bus(clock=lambda: 12.5), list[Envelope]()
    bus.subscribe("**", events.append)
    bus.publish("tui.message.delta", {"text": "hi"})
    bus.publish("plain")
    assert isinstance(events[0], dict)
    assert events == [
        {"text": "hi", "type": "tui.message.delta", "ts": 12.5, "src": "tui"},
        {"type": "plain", "ts": 12.5, "src": "plain"},
    ]


@pytest.mark.parametrize("extra", [{}, {"items": [1]}])
def test_a_relay_keeps_the_original_type_time_and_source(extra: dict[str, Any]) -> None:
    event = received({"type": "there.x", "ts": 1.5, "src": "there", **extra}, topic="here.y")
    assert event == {"type": "there.x", "ts": 1.5, "src": "there", **extra}
    assert received({"type": "there.x", **extra}, topic="here.y")["src"] == "here"


def test_an_event_may_be_published_again() -> None:
    first = received({"n": 1, "items": [1]}, topic="a.b")
    assert received(first, topic="c.d") == first


def test_copies_of_an_event_can_be_changed() -> None:
    event = received({"n": 1, "items": [1]})
    for changeable in (dict(event), {**event}, event.copy(), event | {"m": 1}):
        changeable["n"] = 2
    deep = thaw(event)
    deep["items"].append(2)
    assert type(deep) is dict
    assert (event["n"], event["items"]) == (1, [1])


def test_copy_deepcopy_and_pickle_give_an_equal_frozen_event() -> None:
    event = received({"n": 1, "items": [1, {"a": [2]}]})
    for same in (copy.copy(event), copy.deepcopy(event), pickle.loads(pickle.dumps(event))):  # noqa: S301 - our own
        assert same == event
        with pytest.raises(TypeError):
            same["items"].append(1)


class Colour(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


class Word(str):
    __slots__ = ()

    def __str__(self) -> str:
        return "another"


@dataclasses.dataclass
class Point:
    x: int
    place: pathlib.Path


class Record(msgspec.Struct):
    tags: set[str]


@pytest.mark.parametrize(
    ("value", "form"),
    [
        (dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC), "2026-01-02T03:04:05Z"),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (Colour.RED, "red"),
        (Level.HIGH, 3),
        (Word("word"), "word"),
        ({"b", "a"}, ["a", "b"]),
        (frozenset((1,)), [1]),
        (("a", (1,)), ["a", [1]]),
        (pathlib.PurePosixPath("/tmp/x"), "/tmp/x"),  # noqa: S108 - never opened
        (Point(1, pathlib.Path("p")), {"x": 1, "place": "p"}),
        (Record({"t"}), {"tags": ["t"]}),
        (OrderedDict(a=[Colour.RED]), {"a": ["red"]}),
        (MappingProxyType({"a": 1}), {"a": 1}),
        (b"abc", "YWJj"),
    ],
)
def test_values_with_a_natural_json_form_take_it(value: object, form: object) -> None:
    event = received({"value": value})
    assert event["value"] == form
    assert json.loads(json.dumps(event))["value"] == form


def test_values_without_a_json_form_are_refused_with_their_place() -> None:
    assert refused({"items": [1, 2, 3, {object()}]}).startswith("payload.items[3][0]: object has no JSON form")
    assert refused({"a": {"b": [object()]}}).startswith("payload.a.b[0]: object")
    assert refused({"a": 1j}).startswith("payload.a: complex")
    assert refused({"a": Record({1j})}).startswith("payload.a: Record")  # type: ignore[arg-type]


@pytest.mark.parametrize("payload", [{1: "x"}, {"a": {None: 1}}, {"a": [{("t",): 1}]}])
def test_names_that_are_not_strings_are_refused(payload: Any) -> None:
    assert "a name must be a string" in refused(payload)


@pytest.mark.parametrize("payload", [[], "text", 5, [("a", 1)], object()])
def test_a_payload_that_is_not_a_mapping_is_refused(payload: Any) -> None:
    assert refused(payload).startswith("payload: a mapping")


def test_a_payload_that_contains_itself_is_refused() -> None:
    circle: dict[str, Any] = {"list": []}
    circle["list"].extend([circle, circle])
    assert "contains itself" in refused(circle)


def test_the_same_value_may_be_in_a_payload_twice() -> None:
    shared = [1]
    assert received({"a": shared, "b": [shared, shared]})["b"] == [[1], [1]]


def test_a_payload_that_is_nested_too_deep_is_refused() -> None:
    def nested(levels: int) -> dict[str, Any]:
        value: dict[str, Any] = {}
        for _ in range(levels - 1):
            value = {"a": value}
        return value

    json.dumps(received(nested(100)))
    assert "deeper than 100 levels" in refused(nested(101))
    assert "deeper than 100 levels" in refused(nested(100_000))


def test_a_payload_of_a_megabyte_arrives_whole() -> None:
    event = received({"text": "x" * 1_000_000, "items": list(range(100_000))})
    assert (len(event["text"]), event["items"][-1]) == (1_000_000, 99_999)


@pytest.mark.parametrize("pattern", ["demo.topic", "elsewhere"])
@pytest.mark.parametrize(("complaint", "value"), BEYOND_JSON, ids=lambda value: type(value).__name__)
def test_a_value_that_json_can_not_hold_is_refused_with_its_place(pattern: str, complaint: str, value: object) -> None:
    bus = Bus()
    bus.subscribe(pattern, lambda event: None)
    with pytest.raises(ValueError, match=rf"payload\.list\[1\]\.x: .*{complaint}.*JSON"):
        bus.publish("demo.topic", {"list": [1, {"x": value}]})


@pytest.mark.parametrize("pattern", ["demo.topic", "elsewhere"])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_a_float_that_json_can_not_hold_is_refused_in_a_flat_payload_too(pattern: str, value: float) -> None:
    bus = Bus()
    bus.subscribe(pattern, lambda event: None)
    with pytest.raises(ValueError, match=r"payload\.x: the number"):
        bus.publish("demo.topic", {"y": 1, "x": value})


def test_what_is_converted_is_held_to_json_as_well() -> None:
    class Rate(float):
        pass

    for value in (Rate("nan"), pathlib.Path("half \udc80")):
        with pytest.raises(ValueError, match=r"payload\.x"):
            received({"x": value})
    with pytest.raises(ValueError, match="payload: a name"):
        received({"list": [], "half \udc80": 1})
    assert json.loads(json.dumps(received({"x": [10**4299, "ä€😀", -0.0, 1.5e308]})))["x"][1] == "ä€😀"

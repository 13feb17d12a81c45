import copy
import dataclasses
import datetime as dt
import enum
import json
import pathlib
import pickle
import uuid
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hermes.events import Bus, Envelope, thaw
from hermes.events.wire import WireEncoder

# Other work on the machine makes an example slow; that says nothing about the bus.
UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4)
    ),
    max_leaves=20,
)
PAYLOADS = st.dictionaries(st.text(), JSON, max_size=6)


def received(payload: Any, topic: str = "demo.topic") -> Envelope:
    """The event that a subscriber gets for `payload`."""
    bus, events = Bus(), list[Envelope]()
    bus.subscribe("**", events.append)
    bus.publish(topic, payload)
    (event,) = events
    return event


def on_the_wire(event: Envelope) -> tuple[Any, int]:
    """The event as another process gets it, and how many of its values went as strings."""
    encoder = WireEncoder()
    data = encoder.encode(event)
    return json.loads(data, parse_constant=pytest.fail), encoder.replaced


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


@pytest.mark.parametrize(
    "change", CHANGES, ids=lambda change: f"{change[0]}.{change[1]}"
)
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
    assert (events[0]["items"], events[0]["inner"], events[0]["n"]) == (
        [1],
        {"n": 1},
        1,
    )


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
    event = received(
        {"type": "there.x", "ts": 1.5, "src": "there", **extra}, topic="here.y"
    )
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
    for same in (
        copy.copy(event),
        copy.deepcopy(event),
        pickle.loads(pickle.dumps(event)),  # noqa: S301
    ):
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


class Odd:
    def __str__(self) -> str:
        raise RuntimeError("no words")


class Pair(NamedTuple):
    first: Any
    second: Any


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC), "2026-01-02T03:04:05Z"),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (Colour.RED, "red"),
        (frozenset((1,)), "frozenset({1})"),
        (pathlib.PurePosixPath("/tmp/x"), "/tmp/x"),  # noqa: S108 - never opened
        (Point(1, pathlib.PosixPath("p")), "Point(x=1, place=PosixPath('p'))"),
        (Record({"t"}), "Record(tags={'t'})"),
        (b"abc", "YWJj"),
        (1j, "1j"),
        (Odd(), "<Odd>"),
        (float("nan"), "nan"),
        (float("-inf"), "-inf"),
        ("half \ud83d", "half \ufffd"),
        ("both \ud83d\ude00", "both \U0001f600"),
    ],
)
@pytest.mark.parametrize("inside", [False, True])
def test_a_value_that_json_can_not_hold_arrives_as_it_is_and_is_a_string_on_the_wire(
    value: object, text: str, inside: bool
) -> None:
    event = received({"n": 1, "value": [{"x": value}] if inside else value})
    assert (event["value"][0]["x"] if inside else event["value"]) is value
    sent, replaced = on_the_wire(event)
    assert (sent["value"][0]["x"] if inside else sent["value"]) == text
    assert (sent["n"], replaced) == (1, 1)


@pytest.mark.parametrize("size", [4299, 4300])
def test_a_number_with_more_digits_than_python_reads_is_a_string_on_the_wire(
    size: int,
) -> None:
    event = received({"value": [10**size]})
    assert event["value"] == [10**size]
    assert on_the_wire(event)[1] == (size == 4300)


@pytest.mark.parametrize(
    "value", [Level.HIGH, Word("word"), 2**64, "ä€😀", -0.0, 1.5e308]
)
def test_kinds_of_strings_and_numbers_are_json_s_own(value: Any) -> None:
    event = received({"value": value, "list": [value]})
    assert event["list"][0] is value
    sent, replaced = on_the_wire(event)
    assert (sent["list"], sent["value"], replaced) == ([value], value, 0)


def test_tuples_stay_tuples() -> None:
    event = received(
        {"pair": (1, [2, {"a": 3}]), "named": Pair(1, [2]), "plain": ((), (1,))}
    )
    assert event["pair"] == (1, [2, {"a": 3}])
    assert event["plain"] == ((), (1,))
    assert event["named"].second == [2]
    with pytest.raises(TypeError):
        event["pair"][1].append(3)
    with pytest.raises(TypeError):
        event["named"].second.append(3)
    assert json.loads(json.dumps(event))["pair"] == [1, [2, {"a": 3}]]
    assert on_the_wire(event) == ({**json.loads(json.dumps(event))}, 0)
    assert thaw(event)["pair"] == (1, [2, {"a": 3}])
    thaw(event)["pair"][1].append(3)


def test_other_mappings_and_sets_are_frozen_too() -> None:
    words, raw = {"b"}, bytearray(b"x")
    event = received(
        {
            "a": OrderedDict(a=[1]),
            "b": MappingProxyType({"a": 1}),
            "set": words,
            "raw": raw,
        }
    )
    words.add("c")
    raw.append(1)
    assert (event["a"], event["b"], event["set"], event["raw"]) == (
        {"a": [1]},
        {"a": 1},
        {"b"},
        b"x",
    )
    with pytest.raises(TypeError):
        event["b"]["new"] = 1


@pytest.mark.parametrize(
    "payload", [{1: "x"}, {"a": {None: 1}}, {"a": [{("t",): 1}]}, {"half \udc80": 1}]
)
def test_names_that_json_does_not_have_become_strings_on_the_wire(payload: Any) -> None:
    event = received(payload)
    assert {name: event[name] for name in payload} == payload
    assert on_the_wire(event)[1] == 1


@pytest.mark.parametrize("pattern", ["demo.topic", "elsewhere"])
@pytest.mark.parametrize("payload", [[], "text", 5, [("a", 1)], object()])
def test_a_payload_that_is_not_a_mapping_is_refused(pattern: str, payload: Any) -> None:
    bus = Bus()
    bus.subscribe(pattern, lambda event: None)
    with pytest.raises(TypeError, match="payload: a mapping"):
        bus.publish("demo.topic", payload)


def test_a_payload_that_contains_itself_arrives_and_ends_on_the_wire() -> None:
    circle: dict[str, Any] = {"list": [], "n": 1}
    circle["list"].extend([circle, circle, circle["list"]])
    event = received(circle)
    assert event["list"][0] is circle
    sent, replaced = on_the_wire(event)
    assert sent["n"] == 1
    assert replaced > 0


def test_the_same_value_may_be_in_a_payload_twice() -> None:
    shared = [1]
    assert received({"a": shared, "b": [shared, shared]})["b"] == [[1], [1]]


@pytest.mark.parametrize(("levels", "replaced"), [(100, 0), (101, 1), (100_000, 1)])
def test_a_payload_may_be_nested_deep(levels: int, replaced: int) -> None:
    value: dict[str, Any] = {}
    for _ in range(levels - 1):
        value = {"a": value}
    assert on_the_wire(received(value))[1] == replaced


class Broken(Mapping[str, Any]):
    def __getitem__(self, name: str) -> Any:
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        raise RuntimeError("broken")

    def __len__(self) -> int:
        return 1


def test_a_mapping_that_can_not_be_read_arrives_as_it_is() -> None:
    broken = Broken()
    event = received({"x": [broken]})
    assert event["x"][0] is broken
    assert on_the_wire(event)[1] == 1


def test_a_payload_that_can_not_be_read_does_not_fail_its_publisher() -> None:
    broken = Broken()
    event = received(broken)
    assert (event["type"], event["payload"]) == ("demo.topic", broken)
    assert on_the_wire(event)[1] == 1


def test_events_that_json_can_not_hold_are_counted() -> None:
    bus = Bus()
    bus.publish("a", {"x": object()})  # nobody listens, and nobody looks inside
    bus.subscribe("**", lambda event: None)
    for payload in (
        {"x": 1},
        {"x": [1, (2,)]},
        {"x": object()},
        {1: {"y": {2}}},
        {"x": float("nan")},
    ):
        bus.publish("a", payload)  # type: ignore[arg-type]
    assert bus.stats().unencodable == 3


def test_a_part_of_an_event_can_be_published_again() -> None:
    first = received({"part": {"x": {1}}, "plain": {"x": [1]}})
    again = received({"part": first["part"], "plain": first["plain"]})
    assert again["plain"] is first["plain"]
    assert on_the_wire(again)[1] == 1


def test_a_payload_of_a_megabyte_arrives_whole() -> None:
    event = received({"text": "x" * 1_000_000, "items": list(range(100_000))})
    assert (len(event["text"]), event["items"][-1]) == (1_000_000, 99_999)

import gc
import logging
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from hermes.events import Bus, Envelope, Subscription

# Other work on the machine makes an example slow; that says nothing about the bus.
UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
TOPICS = (
    st.lists(st.sampled_from(["a", "b", "c", ""]), min_size=1, max_size=5)
    .map(".".join)
    .filter(bool)
)
PATTERNS = (
    st.lists(st.sampled_from(["a", "b", "", "*", "**"]), min_size=1, max_size=5)
    .map(".".join)
    .filter(bool)
)


def matches(pattern: list[str], topic: list[str]) -> bool:
    """The meaning of patterns, as plain as it can be written."""
    if not pattern:
        return not topic
    if pattern[0] == "**":
        return matches(pattern[1:], topic) or (
            bool(topic) and matches(pattern, topic[1:])
        )
    return (
        bool(topic)
        and pattern[0] in ("*", topic[0])
        and matches(pattern[1:], topic[1:])
    )


@pytest.fixture
def bus() -> Bus:
    return Bus()


@pytest.fixture
def eager_switching() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def in_threads(*work: Callable[[], object]) -> None:
    threads = [threading.Thread(target=each) for each in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert not any(thread.is_alive() for thread in threads)


def test_callbacks_run_in_the_publishers_thread_before_publish_returns(
    bus: Bus,
) -> None:
    threads: list[int] = []
    bus.subscribe("a", lambda event: threads.append(threading.get_ident()))
    bus.publish("a")
    in_threads(lambda: bus.publish("a"))
    assert threads[0] == threading.get_ident()
    assert len(threads) == 2
    assert threads[0] != threads[1]


def test_delivery_is_in_the_order_of_subscription(bus: Bus) -> None:
    order: list[str] = []
    for pattern in ("**", "a.b", "*.b", "a.**", "a.b"):
        bus.subscribe(pattern, lambda event, pattern=pattern: order.append(pattern))
    bus.publish("a.b")
    assert order == ["**", "a.b", "*.b", "a.**", "a.b"]


def test_the_same_callback_may_be_subscribed_twice_and_fires_twice(bus: Bus) -> None:
    events: list[Envelope] = []
    first, second = bus.subscribe("a", events.append), bus.subscribe("a", events.append)
    assert first is not second
    bus.publish("a")
    assert len(events) == 2
    bus.unsubscribe(first)
    bus.publish("a")
    assert len(events) == 3


def test_unsubscribe_is_true_once_and_false_after(bus: Bus) -> None:
    handle = bus.subscribe("a", lambda event: None)
    assert bus.unsubscribe(handle) is True
    assert bus.unsubscribe(handle) is False
    assert Bus().unsubscribe(handle) is False


class _Equal:
    """Says that it is whatever it is compared with."""

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        raise RuntimeError("no hash")


@pytest.mark.parametrize(
    "handle", [None, "a", 5, [], {}, object(), _Equal(), Bus().subscribe("a", print)]
)
def test_anything_that_is_no_live_handle_of_the_bus_is_not_unsubscribed(
    bus: Bus, handle: Any
) -> None:
    live = bus.subscribe("a", print)
    assert bus.unsubscribe(handle) is False
    assert bus.unsubscribe(live) is True


def test_all_subscriptions_can_be_ended_at_once(bus: Bus) -> None:
    seen: list[Envelope] = []
    handles = [bus.subscribe("a", seen.append), bus.subscribe("**", seen.append)]
    assert bus.end_all() == 2
    bus.publish("a")
    assert seen == []
    assert [bus.unsubscribe(handle) for handle in handles] == [False, False]


@pytest.mark.parametrize("bad", [None, 5, b"a", ["a"]])
def test_topics_and_patterns_that_are_not_strings_are_type_errors(
    bus: Bus, bad: Any
) -> None:
    with pytest.raises(TypeError, match="a topic must be a string"):
        bus.publish(bad)
    with pytest.raises(TypeError, match="a pattern must be a string"):
        bus.subscribe(bad, print)
    with pytest.raises(TypeError, match="a pattern must be a string"):
        bus.stream(bad)


def test_empty_topics_and_patterns_are_value_errors(bus: Bus) -> None:
    with pytest.raises(ValueError, match="a topic can't be empty"):
        bus.publish("")
    with pytest.raises(ValueError, match="a pattern can't be empty"):
        bus.subscribe("", print)
    with pytest.raises(ValueError, match="a pattern can't be empty"):
        bus.stream("")


def test_empty_segments_are_segments_like_others(bus: Bus) -> None:
    topics: list[str] = []
    bus.subscribe("a.*.b", lambda event: topics.append(event["type"]))
    for topic in ("a..b", "a.b", ".", "a...b"):
        bus.publish(topic)
    assert topics == ["a..b"]


def test_enormous_topics_are_delivered(bus: Bus) -> None:
    events: list[Envelope] = []
    bus.subscribe("big.**", events.append)
    for topic in ("big." + "x" * 1_000_000, "big" + ".x" * 10_000):
        bus.publish(topic)
        bus.publish(topic)
        assert events[-1]["type"] == topic
    assert len(events) == 4


def test_more_topics_than_the_cache_holds_are_delivered(bus: Bus) -> None:
    count = 0

    def callback(event: Envelope) -> None:
        nonlocal count
        count += 1

    bus.subscribe("a.*", callback)
    for number in range(10_000):
        bus.publish(f"a.{number}")
    assert count == 10_000


def test_a_topic_of_a_string_subclass_is_a_plain_string_in_the_event(bus: Bus) -> None:
    class Topic(str):
        __slots__ = ()

    events: list[Envelope] = []
    bus.subscribe("a.b", events.append)
    bus.publish(Topic("a.b"))
    assert type(events[0]["type"]) is str


@pytest.mark.parametrize(
    "error", [ValueError("broken"), SystemExit(3), GeneratorExit(), RecursionError()]
)
def test_a_raising_callback_is_logged_counted_and_stops_nobody(
    bus: Bus, caplog: pytest.LogCaptureFixture, error: BaseException
) -> None:
    def broken(event: Envelope) -> None:
        raise error

    events: list[Envelope] = []
    bus.subscribe("a", broken)
    bus.subscribe("a", events.append)
    bus.publish("a")
    assert len(events) == 1
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("hermes.events", logging.ERROR)
    assert record.exc_info is not None
    assert record.exc_info[1] is error
    assert "broken" in record.getMessage()
    first, second = bus.stats().subscriptions
    assert (first.failed, first.delivered, second.delivered) == (1, 0, 1)


def test_a_keyboard_interrupt_reaches_the_publisher(bus: Bus) -> None:
    def interrupt(event: Envelope) -> None:
        raise KeyboardInterrupt

    handle = bus.subscribe("a", interrupt)
    with pytest.raises(KeyboardInterrupt):
        bus.publish("a")
    bus.unsubscribe(handle)
    bus.publish("a")


def test_a_callback_may_subscribe_and_unsubscribe(bus: Bus) -> None:
    order: list[str] = []
    handles: list[Subscription] = []

    def first(event: Envelope) -> None:
        order.append("first")
        bus.unsubscribe(handles[0])
        bus.unsubscribe(handles[1])
        bus.subscribe("a", lambda event: order.append("new"))

    handles.append(bus.subscribe("a", first))
    handles.append(bus.subscribe("a", lambda event: order.append("ended by first")))
    bus.subscribe("a", lambda event: order.append("last"))
    bus.publish("a")
    assert order == ["first", "last"]
    bus.publish("a")
    assert order[2:] == ["last", "new"]
    assert bus.stats().delivered == 4


def test_a_finalizer_may_end_a_subscription_in_the_middle_of_a_change(bus: Bus) -> None:
    class Listener:
        def __init__(self) -> None:
            self.circle = self
            handle = bus.subscribe("a.b.c", lambda event: None)
            weakref.finalize(self, bus.unsubscribe, handle)

    thresholds = gc.get_threshold()
    gc.set_threshold(1, 1, 1)
    try:
        for _ in range(200):
            Listener()
    finally:
        gc.set_threshold(*thresholds)
    gc.collect()
    assert bus.stats().subscriptions == ()


def test_what_was_unsubscribed_is_let_go_of(bus: Bus) -> None:
    class Plugin:
        def callback(self, event: Envelope) -> None: ...

    plugin = Plugin()
    handle = bus.subscribe("a", plugin.callback)
    bus.publish("a")
    bus.unsubscribe(handle)
    gone = weakref.ref(plugin)
    del plugin
    gc.collect()
    assert gone() is None


def test_a_hundred_thousand_subscriptions_come_and_go_without_a_trace(bus: Bus) -> None:
    gc.collect()
    before = len(gc.get_objects())
    for number in range(100_000):
        handle = bus.subscribe(f"a.{number}.*.**", print)
        if number % 1000 == 0:
            bus.publish("b")
        bus.unsubscribe(handle)
    gc.collect()
    assert len(gc.get_objects()) - before < 100
    assert bus.stats().subscriptions == ()


@pytest.mark.parametrize("callback", [None, "print", 5])
def test_what_cannot_be_called_is_refused(bus: Bus, callback: Any) -> None:
    with pytest.raises(TypeError, match="callable"):
        bus.subscribe("a", callback)


def test_generators_are_refused_because_their_body_would_never_run(bus: Bus) -> None:
    def generator(event: Envelope) -> Iterator[int]:
        yield 1

    async def async_generator(event: Envelope) -> Any:
        yield 1

    for callback in (generator, async_generator):
        with pytest.raises(TypeError, match="generator"):
            bus.subscribe("a", callback)


def test_a_sync_callback_that_returns_a_coroutine_gets_it_closed_with_one_warning(
    bus: Bus, caplog: pytest.LogCaptureFixture
) -> None:
    ran: list[int] = []

    async def work() -> None:
        ran.append(1)

    bus.subscribe("a", lambda event: work())
    bus.publish("a")
    bus.publish("a")
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert "coroutine" in record.getMessage()
    assert ran == []
    assert bus.stats().subscriptions[0].failed == 2


def test_other_return_values_are_ignored(
    bus: Bus, caplog: pytest.LogCaptureFixture
) -> None:
    bus.subscribe("a", lambda event: 5)
    bus.publish("a")
    assert not caplog.records
    assert bus.stats().delivered == 1


def test_stats_tell_pattern_owner_name_and_what_became_of_the_events(bus: Bus) -> None:
    def callback(event: Envelope) -> None:
        if event.get("bad"):
            raise ValueError

    bus.subscribe("a.*", callback, owner="plugin.x")
    for bad in (True, False, False):
        bus.publish("a.b", {"bad": bad})
    bus.publish("nobody.listens")
    stats = bus.stats()
    (one,) = stats.subscriptions
    assert (one.pattern, one.owner) == ("a.*", "plugin.x")
    assert one.callback.endswith("callback")
    assert (one.delivered, one.failed, one.dropped, one.pending) == (2, 1, 0, 0)
    assert one.slowest > 0
    assert (stats.delivered, stats.failed, stats.refused) == (2, 1, 0)


def test_totals_include_subscriptions_that_have_ended(bus: Bus) -> None:
    handle = bus.subscribe("a", lambda event: None)
    bus.publish("a")
    bus.unsubscribe(handle)
    bus.publish("a")
    stats = bus.stats()
    assert (stats.delivered, stats.subscriptions) == (1, ())


def test_owned_subscriptions_end_together(bus: Bus) -> None:
    heard: list[str] = []
    with bus.owned_by("plugin.x"):
        bus.subscribe("a", lambda event: heard.append("x"))
        bus.subscribe("b", lambda event: heard.append("x"))
        with bus.owned_by("plugin.y"):
            bus.subscribe("a", lambda event: heard.append("y"))
        bus.subscribe("a", lambda event: heard.append("z"), owner="plugin.z")
    bus.subscribe("a", lambda event: heard.append("nobody's"))
    assert bus.end_owned("plugin.x") == 2
    assert bus.end_owned("plugin.x") == 0
    bus.publish("a")
    bus.publish("b")
    assert heard == ["y", "z", "nobody's"]


@pytest.mark.usefixtures("eager_switching")
def test_a_stable_subscription_misses_nothing_while_others_come_and_go(
    bus: Bus,
) -> None:
    stable: list[int] = []
    bus.subscribe("load.**", lambda event: stable.append(event["n"]))
    done = threading.Event()

    def churn() -> None:
        while not done.is_set():
            handles = [
                bus.subscribe(pattern, lambda event: None)
                for pattern in ("load.*", "**", "load.1.x", "other")
            ]
            for handle in handles:
                bus.unsubscribe(handle)

    def publish(start: int) -> None:
        for number in range(start, start + 2000):
            bus.publish(f"load.{number % 7}", {"n": number})

    def publish_all() -> None:
        try:
            in_threads(
                *(lambda start=start: publish(start) for start in range(0, 8000, 2000))
            )
        finally:
            done.set()

    in_threads(churn, churn, publish_all)
    assert sorted(stable) == list(range(8000))
    stats = bus.stats()
    assert (stats.subscriptions[0].delivered, len(stats.subscriptions)) == (8000, 1)


@pytest.mark.usefixtures("eager_switching")
def test_counters_equal_the_truth_under_threads(
    bus: Bus, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)

    def sometimes_broken(event: Envelope) -> None:
        if event["n"] % 3 == 0:
            raise ValueError

    for pattern in ("a", "*", "**"):
        bus.subscribe(pattern, sometimes_broken)

    def publish() -> None:
        for number in range(3000):
            bus.publish("a", {"n": number})

    in_threads(*[publish] * 6)
    stats = bus.stats()
    assert [(one.delivered, one.failed) for one in stats.subscriptions] == [
        (12_000, 6_000)
    ] * 3
    assert (stats.delivered, stats.failed) == (36_000, 18_000)


@pytest.mark.usefixtures("eager_switching")
def test_only_one_thread_ends_a_subscription(bus: Bus) -> None:
    for _ in range(200):
        handle = bus.subscribe("a", lambda event: None)
        results: list[bool] = []
        in_threads(
            *[
                lambda handle=handle, results=results: results.append(
                    bus.unsubscribe(handle)
                )
            ]
            * 4
        )
        assert sorted(results) == [False, False, False, True]


@UNHURRIED
@given(
    topics=st.lists(TOPICS, min_size=1, max_size=5),
    patterns=st.lists(PATTERNS, max_size=5),
)
def test_a_cached_route_leads_to_the_same_subscribers(
    topics: list[str], patterns: list[str]
) -> None:
    bus, heard = Bus(), list[int]()
    for number, pattern in enumerate(patterns):
        bus.subscribe(pattern, lambda event, number=number: heard.append(number))
    for topic in topics * 2:
        heard.clear()
        bus.publish(topic)
        assert heard == [
            n
            for n, pattern in enumerate(patterns)
            if matches(pattern.split("."), topic.split("."))
        ]


class AgainstModel(RuleBasedStateMachine):
    """Any order of subscribe, unsubscribe and publish, held against a list of patterns."""

    def __init__(self) -> None:
        super().__init__()
        self.bus = Bus()
        self.live: dict[int, tuple[str, Subscription]] = {}
        self.made = 0
        self.delivered = 0
        self.heard: list[int] = []

    @rule(pattern=PATTERNS)
    def subscribe(self, pattern: str) -> None:
        number = self.made = self.made + 1
        self.live[number] = (
            pattern,
            self.bus.subscribe(pattern, lambda event: self.heard.append(number)),
        )

    @precondition(lambda self: self.live)
    @rule(data=st.data())
    def unsubscribe(self, data: st.DataObject) -> None:
        _, handle = self.live.pop(data.draw(st.sampled_from(sorted(self.live))))
        assert self.bus.unsubscribe(handle)

    @rule(topic=TOPICS)
    def publish(self, topic: str) -> None:
        self.heard.clear()
        self.bus.publish(topic)
        expected = [
            n
            for n, (pattern, _) in self.live.items()
            if matches(pattern.split("."), topic.split("."))
        ]
        assert self.heard == expected
        self.delivered += len(expected)

    @invariant()
    def counts_agree(self) -> None:
        stats = self.bus.stats()
        assert stats.delivered == self.delivered
        assert [one.pattern for one in stats.subscriptions] == [
            pattern for pattern, _ in self.live.values()
        ]


TestAgainstModel = AgainstModel.TestCase
TestAgainstModel.settings = UNHURRIED


def test_a_publisher_can_ask_whether_anybody_listens() -> None:
    bus = Bus()
    assert not bus.has_subscribers("a.b")
    handle = bus.subscribe("a.**", lambda event: None)
    assert bus.has_subscribers("a.b")
    assert not bus.has_subscribers("b")
    bus.unsubscribe(handle)
    assert not bus.has_subscribers("a.b")

"""Compares the event bus with a naive one, blinker, pymitter and pyee: events per second of CPU time, in one run.

The others deliver a plain copy of the payload with `type`, `ts` and `src` added. Hermes also checks that it is JSON,
freezes it, and counts and times each call; the ratio in brackets is the one with the same checked and frozen envelope
for all. Buses without patterns get the exact topic. The contenders take turns in short rounds, because other programs on
the machine would otherwise favour one of them; a result is the median.
"""

import argparse
import gc
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

import blinker
import pyee
import pymitter

from hermes.events import Bus, Envelope
from hermes.events.envelope import FLAT, seal

Publish = Callable[[str, dict[str, Any]], object]
Make = Callable[[str, dict[str, Any]], dict[str, Any]]
SIZES = (1, 10, 100, 1_000, 10_000)
KINDS = ("exact", "*", "**", "mix")
PAYLOAD = {"session_id": "s-1", "text": "hello", "n": 1}


class Contender(Protocol):
    """A bus under test."""

    def subscribe(self, pattern: str, topic: str) -> None: ...

    def publish(self, topic: str, payload: dict[str, Any]) -> None: ...


def plain(topic: str, payload: dict[str, Any]) -> dict[str, Any]:
    """The envelope for the others: a copy that is neither checked nor frozen."""
    event = dict(payload)
    event["type"] = topic
    event["ts"] = time.time()
    event["src"] = topic.partition(".")[0]
    return event


def frozen(topic: str, payload: dict[str, Any]) -> dict[str, Any]:
    """The envelope of Hermes, made like its bus does."""
    now = time.time()
    event = Envelope(**payload)
    for value in event.values():
        kind = type(value)
        if kind is not str and kind is not int and kind not in FLAT:
            return seal(payload, topic, topic.partition(".")[0], now)
    dict.setdefault(event, "type", topic)
    dict.setdefault(event, "ts", now)
    dict.setdefault(event, "src", topic.partition(".")[0])
    return event


def listener() -> Callable[[Any], None]:
    """A new subscriber that does nothing."""

    def ignore(event: Any) -> None:
        del event

    return ignore


def receiver() -> Callable[..., None]:
    """The same with the signature that blinker calls."""

    def ignore(sender: object, event: Any) -> None:
        del sender, event

    return ignore


class Hermes:
    """The bus of Hermes."""

    def __init__(self) -> None:
        self._bus = Bus()
        self.publish = self._bus.publish

    def subscribe(self, pattern: str, topic: str) -> None:
        del topic
        self._bus.subscribe(pattern, listener())


class Naive:
    """A list of subscriptions, each compared with the topic of every event."""

    def __init__(self) -> None:
        self._subscriptions: list[tuple[str, Callable[[Any], object]]] = []

    def subscribe(self, pattern: str, topic: str) -> None:
        del topic
        self._subscriptions.append((pattern, listener()))

    def publish(self, topic: str, payload: dict[str, Any]) -> None:
        event = plain(topic, payload)
        for pattern, callback in self._subscriptions:
            if _matches(pattern.split("."), topic.split(".")):
                try:
                    callback(event)
                except Exception as error:  # noqa: BLE001 - what every bus has to do
                    print(error)


def _matches(pattern: list[str], topic: list[str]) -> bool:
    if not pattern:
        return not topic
    if pattern[0] == "**":
        return any(
            _matches(pattern[1:], topic[skipped:]) for skipped in range(len(topic) + 1)
        )
    return (
        bool(topic)
        and pattern[0] in ("*", topic[0])
        and _matches(pattern[1:], topic[1:])
    )


class Blinker:
    """Signals by name; no patterns, and a failing receiver stops the others."""

    make: Make = staticmethod(plain)

    def __init__(self) -> None:
        self._signals = blinker.Namespace()

    def subscribe(self, pattern: str, topic: str) -> None:
        del pattern
        self._signals.signal(topic).connect(receiver(), weak=False)

    def publish(self, topic: str, payload: dict[str, Any]) -> None:
        event = self.make(topic, payload)
        signal = self._signals.get(topic)
        if signal is not None:
            signal.send(None, event=event)


class FrozenBlinker(Blinker):
    """Blinker, delivering the envelope of Hermes."""

    make: Make = staticmethod(frozen)


class Pyee:
    """An event emitter; no patterns, and a failing listener stops the others."""

    make: Make = staticmethod(plain)

    def __init__(self) -> None:
        self._emitter = pyee.EventEmitter()

    def subscribe(self, pattern: str, topic: str) -> None:
        del pattern
        self._emitter.on(topic, listener())

    def publish(self, topic: str, payload: dict[str, Any]) -> None:
        self._emitter.emit(topic, self.make(topic, payload))


class FrozenPyee(Pyee):
    """Pyee, delivering the envelope of Hermes."""

    make: Make = staticmethod(frozen)


class Pymitter:
    """An event emitter with `*` for one segment; `**` is spelled out for the length of our topics."""

    def __init__(self) -> None:
        self._emitter = pymitter.EventEmitter(wildcard=True)

    def subscribe(self, pattern: str, topic: str) -> None:
        if pattern.endswith("**"):
            named = pattern.split(".")[:-1]
            pattern = ".".join(named + ["*"] * (topic.count(".") + 1 - len(named)))
        self._emitter.on(pattern, listener())

    def publish(self, topic: str, payload: dict[str, Any]) -> None:
        self._emitter.emit(topic, plain(topic, payload))


CONTENDERS: dict[str, Callable[[], Contender]] = {
    "hermes": Hermes,
    "naive": Naive,
    "blinker": Blinker,
    "pymitter": Pymitter,
    "pyee": Pyee,
}


class Scene(NamedTuple):
    """What is subscribed and published. `share` of the subscribers match an event."""

    share: str
    kind: str
    size: int

    def subscriptions(self) -> Iterator[tuple[str, str]]:
        """Each subscriber's pattern, and the topic for buses without patterns."""
        for number in range(self.size):
            session = f"s{number % 100 if self.share == '1%' else 0}"
            forms = {
                "exact": f"app.{session}.msg.delta",
                "*": f"app.{session}.*.delta",
                "**": f"app.{session}.**",
            }
            kind = list(forms)[number % 3] if self.kind == "mix" else self.kind
            yield forms[kind], forms["exact"]

    def topics(self) -> list[str]:
        # With fewer than 100 subscribers, sessions that nobody follows are published too, to reach the 1 %.
        return [
            f"app.s{number}.msg.delta"
            for number in range(100 if self.share == "1%" else 1)
        ]


def nanoseconds(publish: Publish, topics: list[str], seconds: float) -> float:
    """CPU time of one publish, over a round of about `seconds`."""
    clock, payload = time.process_time, PAYLOAD
    total, published, times = 0.0, 0, 1
    while True:
        started = clock()
        for _ in range(times):
            for topic in topics:
                publish(topic, payload)
        total += clock() - started
        published += times * len(topics)
        if total >= seconds:
            return total / published * 1e9
        times = (
            times * 2
            if total <= 0
            else max(1, int((seconds - total) / total * published / len(topics)))
        )


def compare(
    contenders: dict[str, Publish], topics: list[str], seconds: float, turns: int
) -> dict[str, list[float]]:
    """The cost of a publish for each contender, turn by turn."""
    for publish in contenders.values():
        nanoseconds(publish, topics, 0.0001)
    gc.collect()
    results: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(turns):
        for name, publish in contenders.items():
            results[name].append(nanoseconds(publish, topics, seconds))
    return results


def ratio(results: dict[str, list[float]], slower: str, faster: str) -> float:
    """How many times as fast `faster` is, compared turn by turn."""
    return statistics.median(
        a / b for a, b in zip(results[slower], results[faster], strict=True)
    )


def subscribed(make: Callable[[], Contender], scene: Scene) -> Publish:
    bus = make()
    for pattern, topic in scene.subscriptions():
        bus.subscribe(pattern, topic)
    return bus.publish


def print_table(names: list[str], seconds: float, turns: int) -> None:
    """Events per second in every scene."""
    print(
        f"{'match':6}{'pattern':9}{'subscribers':>11}"
        + "".join(f"{name:>12}" for name in names)
    )
    for share in ("1%", "100%"):
        for kind in KINDS:
            for size in SIZES:
                scene = Scene(share, kind, size)
                contenders = {
                    name: subscribed(CONTENDERS[name], scene) for name in names
                }
                results = compare(contenders, scene.topics(), seconds, turns)
                rates = [1e9 / statistics.median(results[name]) for name in names]
                print(
                    f"{share:6}{kind:9}{size:>11,}"
                    + "".join(f"{rate:>12,.0f}" for rate in rates),
                    flush=True,
                )


def bars(seconds: float, turns: int) -> bool:
    """Compare the bus with its bars. Returns True if it meets them all."""
    print("\nbars", flush=True)
    scene = Scene("1%", "mix", 1_000)
    results = _race({"hermes": Hermes, "naive": Naive}, scene, seconds, turns)
    cleared = [
        _bar(
            "1,000 subscribers, 1 % match: hermes / naive",
            ratio(results, "naive", "hermes"),
            300,
        )
    ]
    for size in SIZES:
        results = _race(
            {"hermes": Hermes, "blinker": Blinker, "frozen": FrozenBlinker},
            Scene("100%", "mix", size),
            seconds,
            turns,
        )
        title = f"{size:,} subscribers, all match: hermes / blinker"
        cleared.append(
            _bar(
                title,
                ratio(results, "blinker", "hermes"),
                2,
                ratio(results, "frozen", "hermes"),
            )
        )
    results = _race(
        {"hermes": Hermes, "pyee": Pyee, "frozen": FrozenPyee},
        Scene("100%", "exact", 1),
        seconds,
        turns,
    )
    title = "one subscriber, it matches: hermes / pyee"
    cleared.append(
        _bar(
            title,
            ratio(results, "pyee", "hermes"),
            1.4,
            ratio(results, "frozen", "hermes"),
        )
    )
    few, many = (
        subscribed(Hermes, Scene("1%", "mix", 1)),
        subscribed(Hermes, Scene("1%", "mix", 10_000)),
    )
    results = compare({"few": few, "many": many}, ["nobody.listens"], seconds, turns)
    cleared.append(
        _bar(
            "nobody matches: 10,000 subscribers / 1",
            ratio(results, "many", "few"),
            1.5,
            at_most=True,
        )
    )
    return all(cleared)


def _race(
    makers: dict[str, Callable[[], Contender]], scene: Scene, seconds: float, turns: int
) -> dict[str, list[float]]:
    contenders = {name: subscribed(make, scene) for name, make in makers.items()}
    return compare(contenders, scene.topics(), seconds, turns)


def _bar(
    title: str,
    measured: float,
    bar: float,
    same: float | None = None,
    *,
    at_most: bool = False,
) -> bool:
    is_cleared = measured <= bar if at_most else measured >= bar
    sign, verdict = ("<=" if at_most else ">="), ("ok" if is_cleared else "MISSED")
    note = f"   ({same:.2f} with the same envelope)" if same is not None else ""
    print(f"  {title:48}{measured:9.2f}  {sign} {bar:<5} {verdict}{note}", flush=True)
    return is_cleared


def main(argv: list[str]) -> int:
    """Print the table and the bars. Returns 1 if a bar is missed."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks bus", description=__doc__
    )
    parser.add_argument("--only", choices=("table", "bars"), help="one section")
    parser.add_argument(
        "--quick", action="store_true", help="shorter rounds, less exact"
    )
    options = parser.parse_args(argv)
    seconds, turns = (0.005, 5) if options.quick else (0.02, 9)
    if options.only != "bars":
        print_table(list(CONTENDERS), seconds / 4, 5)
    if options.only == "table":
        return 0
    return 0 if bars(seconds, turns * 3) else 1

"""Measures what a bridge costs a publisher, and its throughput to a real dashboard."""

import argparse
import asyncio
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.dashboard import Server, running
from hermes.bridge.bridge import Bridge, BridgeStats
from hermes.bridge.outbox import Outbox
from hermes.bridge.websocket import Target
from hermes.events import Bus

_BURST = 250  # events published between two checks of the queue
_MOST = 10_000  # queued durable events: a tenth of what a spool holds
_ROUNDS = 7  # the best counts, because other programs use the machine too
_DELTA = {"session_id": "0192-bench", "turn_id": "t1", "text": " the next few words"}
_STARTED: dict[str, Any] = {
    "type": "agent.tool.started", "ts": 1.5, "src": "agent", "session_id": "0192-bench", "turn_id": "t1", "epoch": 0,
    "seq": 0, "call_id": "call_1", "name": "read_file", "arguments": '{"path": "src/main.py"}',
}  # fmt: skip
_KINDS = (
    ("transient", "agent.message.delta", _DELTA, 5_000, 3.0),
    ("durable", "agent.tool.started", _STARTED, 500, 60.0),
)

Row = tuple[str, float, float, str]


@contextmanager
def bridged(bus: Bus, find: Callable[[], Target | None]) -> Iterator[Bridge]:
    """Runs a bridge inside the context."""
    with tempfile.TemporaryDirectory(prefix="hermes-bench-") as folder:
        bridge = Bridge(bus, find, Outbox(Path(folder)))
        try:
            yield bridge
        finally:
            bridge.stop(0.0)


def added(target: Target) -> list[Row]:
    """Microseconds of CPU time that a bridge adds to a publish, with a dashboard and without."""
    rows: list[Row] = []
    for kind, topic, payload, count, bar in _KINDS:
        alone = _best(_bus(), topic, payload, count)
        bus = _bus()
        with bridged(bus, lambda: target) as bridge:
            _until(lambda bridge=bridge: bridge.state == "connected")
            live = _best(bus, topic, payload, count) - alone
        bus = _bus()
        with bridged(bus, lambda: None):
            dead = _best(bus, topic, payload, count) - alone
        rows += [
            (f"added to a {kind} publish", live, bar, "us"),
            (
                "the same without a dashboard, more than with one",
                dead - live,
                bar / 10,
                "us",
            ),
        ]
    return rows


def _bus() -> Bus:
    bus = Bus()
    bus.subscribe("agent.**", id)
    return bus


def _best(bus: Bus, topic: str, payload: dict[str, Any], count: int) -> float:
    best = float("inf")
    for _ in range(_ROUNDS):
        start = time.thread_time()
        for _ in range(count):
            bus.publish(topic, payload)
        best = min(best, time.thread_time() - start)
        time.sleep(0.02)  # lets the bridge's thread run outside the measurement
    return best / count * 1e6


async def carried(server: Server, target: Target, part: int) -> list[Row]:
    """Events that arrive per second, and per second of CPU time of the busier process."""
    rows: list[Row] = []
    for kind, topic, payload, count, bar in (
        ("transient", "agent.message.delta", _DELTA, 1_000_000 // part, 100_000),
        (
            "durable",
            "agent.tool.started",
            {key: _STARTED[key] for key in ("call_id", "name", "arguments")},
            100_000 // part,
            10_000,
        ),
    ):
        before, used = (await server.status())["ingest"]["published"], server.seconds()
        own, took, stats = await asyncio.to_thread(_pour, target, topic, payload, count)
        used = server.seconds() - used
        arrived = (await server.status())["ingest"]["published"] - before
        lost, cost = (
            stats.dropped + stats.refused,
            (own / count * 1e6, used / count * 1e6),
        )
        print(
            f"    {count:,} {kind} events, {arrived:,} arrived, {lost:,} dropped; "
            f"processor: {cost[0]:.1f} us to publish and send one, {cost[1]:.1f} us to take it"
        )
        rows += [
            (f"{kind} events a second", arrived / took, -bar, "/s"),
            (
                f"{kind} events a second of processor time",
                arrived / max(own, used),
                -bar,
                "/s",
            ),
            (f"{kind} events that did not arrive", count - arrived, 0, "events"),
        ]
    return rows


def _pour(
    target: Target, topic: str, payload: dict[str, Any], count: int
) -> tuple[float, float, BridgeStats]:
    """Publishes as fast as the bridge can send. Returns its CPU time, the elapsed seconds, and its counters."""
    bus = _bus()
    with bridged(bus, lambda: target) as bridge:
        _until(lambda: bridge.state == "connected")
        used, start = time.process_time(), time.perf_counter()
        outbox = bridge.outbox
        for _ in range(count // _BURST):
            for _ in range(_BURST):
                bus.publish(topic, payload)
            while outbox.is_filling or outbox.spool.waiting > _MOST:
                time.sleep(0.0005)
        _until(lambda: not outbox.spool.waiting and bridge.arrived >= outbox.heard)
        return time.process_time() - used, time.perf_counter() - start, bridge.stats()


def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "it never came to that"
        time.sleep(0.005)


def main(argv: list[str]) -> int:
    """Prints the figures. Returns 1 if a bar is missed. A negative bar is a minimum."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks bridge", description=__doc__
    )
    parser.add_argument("--quick", action="store_true", help="a fifth of the time")
    return asyncio.run(_all(quick=parser.parse_args(argv).quick))


async def _all(*, quick: bool) -> int:
    async with running() as server:
        token = server.headers["Authorization"].removeprefix("Bearer ")
        target = Target(server.url.replace("http", "ws", 1) + "/api/pub", token)
        rows = await asyncio.to_thread(added, target)
        rows += await carried(server, target, 5 if quick else 1)
    missed = 0
    for what, value, bar, unit in rows:
        good = value >= -bar if bar < 0 else value <= bar
        missed += not good
        print(
            f"  {what}: {value:,.1f} {unit} {'>=' if bar < 0 else '<='} {abs(bar):,g} {'ok' if good else 'MISSED'}"
        )
    return 1 if missed else 0

"""Async callbacks, on real loops."""

import asyncio
import functools
import gc
import logging
import threading
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from hermes.events import Bus, BusStats, Envelope


@pytest.fixture
def bus() -> Bus:
    return Bus()


async def until(condition: Callable[[], bool]) -> None:
    """Let other tasks run until `condition` holds, for five seconds at most."""
    async with asyncio.timeout(5):
        while not condition():  # noqa: ASYNC110 - what is waited for has no event of its own
            await asyncio.sleep(0)


class Listener:
    def __init__(self) -> None:
        self.events: list[Envelope] = []

    async def hear(self, event: Envelope) -> None:
        await asyncio.sleep(0)
        self.events.append(event)

    async def hear_more(self, extra: int, event: Envelope, *, option: int = 0) -> None:
        self.events.append(event)


class AsyncCall(Listener):
    async def __call__(self, event: Envelope) -> None:
        self.events.append(event)


def callbacks(listener: AsyncCall) -> list[Callable[[Envelope], Any]]:
    async def function(event: Envelope) -> None:
        listener.events.append(event)

    nested = functools.partial(functools.partial(listener.hear_more, 1), option=2)
    return [function, listener.hear, nested, listener, functools.partial(listener)]


@pytest.mark.parametrize("kind", range(5))
async def test_every_kind_of_async_callback_runs_on_the_publishers_loop(
    bus: Bus, kind: int
) -> None:
    listener = AsyncCall()
    bus.subscribe("a", callbacks(listener)[kind])
    bus.publish("a", {"n": 1})
    assert listener.events == []
    await until(lambda: bool(listener.events))
    assert listener.events[0]["n"] == 1


async def test_a_subscriber_without_a_loop_runs_on_the_publishers(bus: Bus) -> None:
    listener = Listener()
    subscribing = threading.Thread(target=bus.subscribe, args=("a", listener.hear))
    subscribing.start()
    subscribing.join(timeout=10)
    bus.publish("a")
    await until(lambda: bool(listener.events))


async def test_a_publisher_without_a_loop_uses_the_subscribers(bus: Bus) -> None:
    threads: list[int] = []

    async def callback(event: Envelope) -> None:
        threads.append(threading.get_ident())

    bus.subscribe("a", callback)
    await asyncio.to_thread(bus.publish, "a")
    await until(lambda: bool(threads))
    assert threads == [threading.get_ident()]


async def test_the_publishers_loop_comes_first(bus: Bus) -> None:
    threads: list[int] = []

    async def callback(event: Envelope) -> None:
        threads.append(threading.get_ident())

    bus.subscribe("a", callback)

    async def publish_elsewhere() -> int:
        bus.publish("a")
        await until(lambda: bool(threads))
        return threading.get_ident()

    elsewhere = await asyncio.to_thread(asyncio.run, publish_elsewhere())
    assert threads == [elsewhere]


def test_without_any_loop_the_event_is_dropped_with_one_warning(
    bus: Bus, caplog: pytest.LogCaptureFixture
) -> None:
    listener, heard = Listener(), list[Envelope]()
    for _ in range(3):
        bus.subscribe("a.*", listener.hear)
    bus.subscribe("a.*", heard.append)
    bus.publish("a.b")
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert all(word in record.getMessage() for word in ("dropped", "a.b", "3"))
    assert len(heard) == 1
    stats = bus.stats()
    assert [one.dropped for one in stats.subscriptions] == [1, 1, 1, 0]
    assert (stats.dropped, stats.delivered) == (3, 1)


def test_a_closed_loop_is_none(bus: Bus, caplog: pytest.LogCaptureFixture) -> None:
    async def subscribe() -> None:
        bus.subscribe("a", Listener().hear)

    asyncio.run(subscribe())
    bus.publish("a")
    assert "dropped" in caplog.text
    assert bus.stats().dropped == 1


def test_what_a_closed_loop_never_ran_counts_as_dropped(bus: Bus) -> None:
    loop = asyncio.new_event_loop()

    async def subscribe() -> None:
        bus.subscribe("a", Listener().hear)

    loop.run_until_complete(subscribe())
    bus.publish("a")
    bus.publish("a")
    assert bus.stats().pending == 2
    loop.close()
    stats = bus.stats()
    assert (stats.pending, stats.dropped, stats.subscriptions[0].dropped) == (0, 2, 2)


async def test_a_failing_async_callback_is_logged_with_its_traceback_and_counted(
    bus: Bus, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(event: Envelope) -> None:
        await asyncio.sleep(0)
        raise ValueError("broken on purpose")

    bus.subscribe("a", broken)
    bus.publish("a")
    await until(lambda: bus.stats().pending == 0)
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("hermes.events", logging.ERROR)
    assert "broken on purpose" in caplog.text
    assert "Traceback" in caplog.text
    assert (bus.stats().failed, bus.stats().delivered) == (1, 0)


async def test_an_async_callback_that_exits_does_not_end_the_program(bus: Bus) -> None:
    async def leave(event: Envelope) -> None:
        raise SystemExit(3)

    bus.subscribe("a", leave)
    bus.publish("a")
    await until(lambda: bus.stats().failed == 1)


async def test_a_cancelled_callback_is_no_error(
    bus: Bus, caplog: pytest.LogCaptureFixture
) -> None:
    tasks: list[asyncio.Task[Any] | None] = []

    async def wait(event: Envelope) -> None:
        tasks.append(asyncio.current_task())
        await asyncio.Event().wait()

    bus.subscribe("a", wait)
    bus.publish("a")
    await until(lambda: bool(tasks))
    assert bus.stats().subscriptions[0].pending == 1
    assert tasks[0] is not None
    tasks[0].cancel()
    await until(lambda: bus.stats().pending == 0)
    assert (bus.stats().failed, caplog.records) == (0, [])


async def test_scheduled_tasks_are_kept_alive_until_done(bus: Bus) -> None:
    done: list[int] = []
    gates: weakref.WeakSet[asyncio.Future[None]] = weakref.WeakSet()

    async def callback(event: Envelope) -> None:
        gate = asyncio.get_running_loop().create_future()
        gates.add(gate)
        await gate
        done.append(event["n"])

    handle = bus.subscribe("a", callback)
    for number in range(10):
        bus.publish("a", {"n": number})
    bus.unsubscribe(handle)
    await until(lambda: len(gates) == 10)
    gc.collect()
    for gate in list(gates):
        gate.set_result(None)
    await until(lambda: bus.stats().pending == 0)
    assert sorted(done) == list(range(10))
    assert bus.stats().delivered == 10


async def test_an_async_subscription_counts_and_is_timed(bus: Bus) -> None:
    async def callback(event: Envelope) -> None:
        await asyncio.sleep(0)

    bus.subscribe("a", callback)
    publishing = [asyncio.to_thread(bus.publish, "a") for _ in range(20)]
    for _ in range(20):
        bus.publish("a")
    await asyncio.gather(*publishing)
    await until(lambda: bus.stats().pending == 0)
    stats: BusStats = bus.stats()
    assert (stats.subscriptions[0].delivered, stats.delivered) == (40, 40)
    assert stats.subscriptions[0].slowest > 0


def test_one_subscription_serves_many_loops_in_a_row(bus: Bus) -> None:
    listener = Listener()
    bus.subscribe("a", listener.hear)

    async def publish() -> None:
        before = len(listener.events)
        bus.publish("a")
        await until(lambda: len(listener.events) > before)

    for _ in range(5):
        asyncio.run(publish())
    assert (bus.stats().delivered, bus.stats().pending) == (5, 0)

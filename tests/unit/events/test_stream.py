import asyncio
import threading
from typing import Any

import pytest

from hermes.events import Bus, Envelope, Policy, Stream
from hermes.schema.events import Gap


@pytest.fixture
def bus() -> Bus:
    return Bus()


async def read(stream: Stream, count: int) -> list[Any]:
    """The next `count` events: their number, or for a gap how many it stands for."""
    events: list[Envelope] = []
    async with asyncio.timeout(10):
        while len(events) < count:
            events.append(await anext(stream))
    return [
        ("gap", event["dropped"]) if event["type"] == "gap" else event["n"]
        for event in events
    ]


def publish(bus: Bus, *numbers: int) -> None:
    for number in numbers:
        bus.publish("a.b", {"n": number})


async def test_a_stream_yields_what_matches_its_pattern_in_order(bus: Bus) -> None:
    async with bus.stream("a.*") as events:
        publish(bus, 1, 2, 3)
        bus.publish("other", {"n": 9})
        publish(bus, 4)
        assert await read(events, 4) == [1, 2, 3, 4]


async def test_a_waiting_reader_is_woken(bus: Bus) -> None:
    async with bus.stream("a.b") as events:
        reading = asyncio.create_task(read(events, 2))
        await asyncio.sleep(0)
        publish(bus, 1)
        await asyncio.sleep(0)
        publish(bus, 2)
        assert await reading == [1, 2]


async def test_events_from_many_threads_all_arrive(bus: Bus) -> None:
    async with bus.stream("a.b", maxsize=10_000) as events:
        threads = [
            threading.Thread(target=publish, args=(bus, *range(n, 4000, 4)))
            for n in range(4)
        ]
        for thread in threads:
            thread.start()
        numbers = await read(events, 4000)
        for thread in threads:
            thread.join(timeout=10)
    assert sorted(numbers) == list(range(4000))
    for start in range(4):
        mine = [number for number in numbers if number % 4 == start]
        assert mine == sorted(mine)


async def test_every_event_from_threads_is_either_read_or_in_a_gap(bus: Bus) -> None:
    async with bus.stream("a.b", maxsize=7) as events:
        threads = [
            threading.Thread(target=publish, args=(bus, *range(2000))) for _ in range(3)
        ]
        for thread in threads:
            thread.start()
        seen = missing = 0
        async with asyncio.timeout(30):
            while seen + missing < 6000:
                event = await anext(events)
                missing += event.get("dropped", 0)
                seen += event["type"] != "gap"
        for thread in threads:
            thread.join(timeout=10)
        assert bus.stats().subscriptions[0].dropped == missing
        assert bus.stats().subscriptions[0].delivered == seen


async def test_drop_oldest_puts_the_gap_before_the_oldest_kept(bus: Bus) -> None:
    async with bus.stream("a.b", maxsize=3) as events:
        publish(bus, *range(10))
        assert await read(events, 4) == [("gap", 7), 7, 8, 9]
        publish(bus, 10)
        assert await read(events, 1) == [10]
    assert bus.stats().dropped == 7


async def test_drop_newest_puts_the_gap_after_the_kept(bus: Bus) -> None:
    async with bus.stream("a.b", maxsize=3, policy="drop_newest") as events:
        publish(bus, 0, 1, 2, 3, 4)
        assert await read(events, 1) == [0]
        publish(bus, 5, 6)
        assert await read(events, 5) == [1, 2, ("gap", 2), 5, ("gap", 1)]
        publish(bus, 7)
        assert await read(events, 1) == [7]


async def test_close_ends_the_stream_after_a_gap(bus: Bus) -> None:
    async with bus.stream("a.b", maxsize=2, policy="close") as events:
        publish(bus, 0, 1, 2, 3, 4)
        assert bus.stats().subscriptions == ()
        assert await read(events, 3) == [0, 1, ("gap", 1)]
        with pytest.raises(StopAsyncIteration):
            await anext(events)


async def test_a_gap_says_which_stream_it_is_about_and_when_it_was_noticed() -> None:
    bus = Bus(clock=lambda: 7.5)
    async with bus.stream("a.*", maxsize=1) as events:
        publish(bus, 1, 2)
        gap = await anext(events)
    content = {"dropped": 1, "pattern": "a.*", "policy": "drop_oldest"}
    assert gap == {"type": "gap", "ts": 7.5, "src": "gap", **content}
    assert content.keys() == set(Gap.__struct_fields__)


async def test_leaving_ends_the_subscription_and_the_iteration(bus: Bus) -> None:
    async with bus.stream("a.b") as events:
        publish(bus, 1)
        assert len(bus.stats().subscriptions) == 1
    assert bus.stats().subscriptions == ()
    publish(bus, 2)
    assert [event async for event in events] == []


async def test_ending_the_owner_lets_the_reader_finish(bus: Bus) -> None:
    with bus.owned_by("plugin.x"):
        stream = bus.stream("a.b")
    async with stream as events:
        publish(bus, 1)
        assert bus.end_owned("plugin.x") == 1
        publish(bus, 2)
        assert [event["n"] async for event in events] == [1]


async def test_a_waiting_reader_is_released_when_the_stream_ends(bus: Bus) -> None:
    async def read_all(events: Stream) -> list[Envelope]:
        return [event async for event in events]

    async with bus.stream("a.b", owner="x") as events:
        reading = asyncio.create_task(read_all(events))
        await asyncio.sleep(0)
        await asyncio.to_thread(bus.end_owned, "x")
        assert await asyncio.wait_for(reading, timeout=5) == []


async def test_a_cancelled_reader_loses_nothing(bus: Bus) -> None:
    async with bus.stream("a.b") as events:
        reading = asyncio.create_task(read(events, 1))
        await asyncio.sleep(0)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        publish(bus, 1, 2)
        assert await read(events, 2) == [1, 2]


async def test_a_second_reader_is_refused(bus: Bus) -> None:
    async with bus.stream("a.b") as events:
        reading = asyncio.create_task(read(events, 1))
        await asyncio.sleep(0)
        with pytest.raises(RuntimeError, match="one reader"):
            await anext(events)
        publish(bus, 1)
        assert await reading == [1]


async def test_a_stream_begins_once_and_with_async_with(bus: Bus) -> None:
    stream = bus.stream("a.b")
    with pytest.raises(RuntimeError, match="async with"):
        await anext(stream)
    async with stream:
        with pytest.raises(RuntimeError, match="once"):
            await stream.__aenter__()


def test_a_reader_whose_loop_is_gone_ends_the_stream(bus: Bus) -> None:
    loop = asyncio.new_event_loop()

    async def begin() -> tuple[Stream, asyncio.Task[Any]]:
        events = await bus.stream("a.b").__aenter__()
        reading = asyncio.create_task(read(events, 1))
        await asyncio.sleep(0)
        return events, reading

    events, reading = loop.run_until_complete(begin())
    reading.cancel()
    loop.run_until_complete(asyncio.gather(reading, return_exceptions=True))
    loop.close()
    publish(bus, 1, 2)
    events.close()
    assert bus.stats().subscriptions == ()


@pytest.mark.parametrize("maxsize", [0, -1, 1.5, True, "9", None])
def test_a_bad_size_is_refused(bus: Bus, maxsize: Any) -> None:
    with pytest.raises(ValueError, match="maxsize"):
        bus.stream("a", maxsize)


@pytest.mark.parametrize("policy", ["", "drop", None])
def test_a_bad_policy_is_refused(bus: Bus, policy: Policy) -> None:
    with pytest.raises(ValueError, match="drop_oldest, drop_newest, close"):
        bus.stream("a", policy=policy)

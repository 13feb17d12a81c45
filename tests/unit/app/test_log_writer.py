"""Rows are published once, in the order of the log, whoever writes them and however they become known."""

import asyncio
import random
import threading
from concurrent.futures import Future
from itertools import count
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.app.log_writer import LogWriter, PublishedRows
from hermes.schema.event_base import Event
from hermes.schema.events import SessionTitled
from hermes.store.log_row import Row
from hermes.store.session_log import SessionLog

TITLED = SessionTitled(title="x")


def row(seq: int) -> Row:
    return Row(0, "s", seq, 1, 0.0, "t", None, "", "{}")


async def nothing(session: str) -> None:
    """Nothing has to be read before a row is published."""


class FakeLog:
    """Hands out rows as a log would. Submitted writes end when the test says so."""

    def __init__(self) -> None:
        self._seq = count(1)
        self.failure: Exception | None = None
        self.submitted: list[Future[tuple[Row, ...]]] = []

    def append(self, session: str, *events: Event, **_: Any) -> tuple[Row, ...]:
        if self.failure is not None:
            raise self.failure
        return tuple(row(next(self._seq)) for _ in events)

    def submit(self, session: str, *events: Event, **_: Any) -> Any:
        self.submitted.append(Future())
        return self.submitted[-1]


class Bench:
    def __init__(self) -> None:
        self.log = FakeLog()
        self.seen: list[int] = []
        self.writer = LogWriter(
            lambda: cast("SessionLog", self.log), self.publish, nothing
        )

    def publish(self, one: Row, foreign: bool) -> None:
        self.seen.append(one.seq)


def test_rows_are_published_once_in_order_and_come_back() -> None:
    bench = Bench()
    rows = bench.writer.append("s", TITLED, TITLED)
    assert bench.seen == [one.seq for one in rows] == [1, 2]
    bench.writer.publish(*rows)
    assert bench.seen == [1, 2]


def test_a_subscriber_that_writes_is_told_of_its_row_after_those_before_it() -> None:
    bench = Bench()
    seen: list[int] = []

    def publish(one: Row, foreign: bool) -> None:
        seen.append(one.seq)
        if one.seq == 1:
            writer.append("s", TITLED, TITLED)

    writer = LogWriter(lambda: cast("SessionLog", bench.log), publish, nothing)
    writer.append("s", TITLED, TITLED)
    assert seen == [1, 2, 3, 4]


def test_threads_that_write_at_once_publish_everything_in_order() -> None:
    bench = Bench()

    def work() -> None:
        for _ in range(200):
            bench.writer.append("s", TITLED, TITLED)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert bench.seen == list(range(1, 3201))


def test_what_could_not_be_written_is_not_published() -> None:
    bench = Bench()
    bench.log.failure = OSError("disk full")
    with pytest.raises(OSError, match="disk full"):
        bench.writer.append("s", TITLED)
    bench.log.failure = None
    bench.writer.append("s", TITLED, TITLED)
    assert bench.seen == [1, 2]


async def test_a_row_waits_for_a_write_that_began_before_it_was_known() -> None:
    bench = Bench()
    writing = asyncio.ensure_future(bench.writer.write("s", TITLED))
    await asyncio.sleep(0)
    bench.writer.publish(row(5), foreign=True)
    assert bench.seen == []
    bench.log.submitted[0].set_result((row(4),))
    await writing
    assert bench.seen == [4, 5]


async def test_a_row_right_after_one_that_was_published_does_not_wait() -> None:
    bench = Bench()
    bench.writer.append("s", TITLED)
    writing = asyncio.ensure_future(bench.writer.write("s", TITLED))
    await asyncio.sleep(0)
    bench.writer.append("s", TITLED)
    assert bench.seen == [1, 2]
    bench.log.submitted[0].set_exception(OSError("disk full"))
    with pytest.raises(OSError, match="disk full"):
        await writing


@given(st.lists(st.integers(1, 60), max_size=200))
def test_each_row_is_claimed_once(rows: list[int]) -> None:
    published, seen = PublishedRows(), set[int]()
    for one in rows:
        assert published.claim("s", 1, one) is (one not in seen)
        seen.add(one)


def test_sessions_and_epochs_are_apart() -> None:
    published = PublishedRows()
    assert published.claim("a", 5, 1)
    assert published.claim("b", 5, 1)
    assert published.claim("a", 6, 1)
    assert published.claim("a", 5, 2)
    assert not published.claim("a", 6, 1)
    assert published.has("a", 5, 2)
    assert not published.has("a", 5, 3)


def test_rows_in_order_take_no_room() -> None:
    published = PublishedRows()
    order = list(range(1, 2001))
    random.Random(1).shuffle(order)
    for one in order:
        assert published.claim("s", 1, one)
    assert published._sessions["s", 1] == [[1, 2000]]

"""The feed: rows are published in the order of the log, whoever writes them."""

import threading
from itertools import count

import pytest

from hermes.app.ordered_publisher import Feed
from hermes.store.log_row import Row


class Writer:
    """Hands out rows as a log would."""

    def __init__(self) -> None:
        self._seq = count(1)

    def __call__(self) -> tuple[Row, ...]:
        return tuple(
            Row(0, "s", next(self._seq), 1, 0.0, "t", None, "", "{}") for _ in range(2)
        )


def test_rows_are_published_once_in_order_and_come_back() -> None:
    feed, seen = Feed(), list[int]()
    rows = feed.write(Writer(), lambda row: seen.append(row.seq))
    assert seen == [row.seq for row in rows] == [1, 2]


def test_a_subscriber_that_writes_is_told_of_its_row_after_those_before_it() -> None:
    feed, writer, seen = Feed(), Writer(), list[int]()

    def publish(row: Row) -> None:
        seen.append(row.seq)
        if row.seq == 1:
            feed.write(writer, publish)

    feed.write(writer, publish)
    assert seen == [1, 2, 3, 4]


def test_threads_that_write_at_once_publish_everything_in_order() -> None:
    feed, writer, seen = Feed(), Writer(), list[int]()

    def work() -> None:
        for _ in range(200):
            feed.write(writer, lambda row: seen.append(row.seq))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == list(range(1, 3201))


def test_what_could_not_be_written_is_not_published() -> None:
    feed, seen = Feed(), list[int]()

    def fail() -> tuple[Row, ...]:
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        feed.write(fail, lambda row: seen.append(row.seq))
    feed.write(Writer(), lambda row: seen.append(row.seq))
    assert seen == [1, 2]

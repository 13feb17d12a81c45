"""Rows are published once, in whatever order they become known."""

import random

from hypothesis import given
from hypothesis import strategies as st

from hermes.app.published_rows import PublishedRows


@given(st.lists(st.integers(1, 60), max_size=200))
def test_each_row_is_claimed_once(rows: list[int]) -> None:
    told, seen = PublishedRows(), set[int]()
    for row in rows:
        assert told.claim("s", 1, row) is (row not in seen)
        seen.add(row)


def test_sessions_and_epochs_are_apart() -> None:
    told = PublishedRows()
    assert told.claim("a", 5, 1)
    assert told.claim("b", 5, 1)
    assert told.claim("a", 6, 1)
    assert told.claim("a", 5, 2)
    assert not told.claim("a", 6, 1)
    assert told.has("a", 5, 2)
    assert not told.has("a", 5, 3)


def test_rows_in_order_take_no_room() -> None:
    told = PublishedRows()
    order = list(range(1, 2001))
    random.Random(1).shuffle(order)
    for row in order:
        assert told.claim("s", 1, row)
    assert told._sessions["s", 1] == [[1, 2000]]

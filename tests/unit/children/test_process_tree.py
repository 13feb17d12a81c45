"""Marks name their session, and killing goes on while it helps."""

from hermes.children.process_tree import kill_all, new_mark


def test_marks_of_a_session_are_alike_and_different() -> None:
    marks = {new_mark("one") for _ in range(50)}
    assert len(marks) > 45
    assert len({mark >> 24 for mark in marks}) == 1
    assert {mark >> 24 for mark in marks} != {new_mark("two") >> 24}


def test_a_mark_fits_a_resource_limit() -> None:
    assert 1 << 60 <= new_mark("x") < 1 << 63


_NOBODY = 1 << 30
"""Above every process number, so a signal reaches nobody."""


class SlowList:
    """Processes that take three seconds to list; a part of them has ended each time, or none ever does."""

    def __init__(self, count: int, ended_each_time: int) -> None:
        self.now = 0.0
        self.left = [_NOBODY + number for number in range(count)]
        self._ended = ended_each_time

    def remaining(self) -> list[int]:
        self.now += 3.0
        listed = list(self.left)
        self.left = self.left[self._ended :]
        return listed

    def clock(self) -> float:
        return self.now


def test_a_list_that_takes_long_does_not_end_the_killing() -> None:
    processes = SlowList(count=40, ended_each_time=10)
    assert kill_all(processes.remaining, processes.clock)
    assert processes.left == []


def test_killing_in_vain_ends() -> None:
    processes = SlowList(count=3, ended_each_time=0)
    assert not kill_all(processes.remaining, processes.clock)
    assert processes.now < 20


def test_killing_what_never_ends_growing_ends() -> None:
    processes = SlowList(count=1000, ended_each_time=1)
    assert not kill_all(processes.remaining, processes.clock)
    assert processes.now < 40

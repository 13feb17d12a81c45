import logging

import pytest

from hermes.primitives.repeated_errors import RepeatedErrors


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def errors(clock: Clock) -> RepeatedErrors:
    return RepeatedErrors(
        logging.getLogger("hermes.test"),
        first_pause_s=1.0,
        max_pause_s=8.0,
        clock=clock,
    )


def test_an_error_that_repeats_is_logged_once_and_counted_with_a_pause_that_grows(
    errors: RepeatedErrors, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    pauses = []
    for _ in range(6):
        clock.now += 1
        pauses.append(errors.note("accepting", OSError(24, "Too many open files")))
    assert pauses == [1.0, 2.0, 4.0, 8.0, 8.0, 8.0]
    (problem,) = errors.problems()
    assert (problem.what, problem.count, problem.since, problem.last) == (
        "accepting",
        6,
        1001.0,
        1006.0,
    )
    assert not problem.is_over
    errors.succeeded("accepting")  # too early to tell
    assert errors.problems() == [problem]
    assert errors.note("accepting", OSError(24, "Too many open files")) == 8.0
    clock.now += 11
    errors.succeeded("accepting")
    errors.succeeded("accepting")
    assert [record.getMessage() for record in caplog.records] == [
        "accepting failed: [Errno 24] Too many open files; retrying, and counting further failures",
        "accepting works again after failing 7 times",
    ]
    assert errors.problems() == [problem._replace(count=7, is_over=True)]
    assert errors.note("accepting", "again") == 1.0
    assert errors.problems()[0].count == 1


def test_what_is_long_over_is_forgotten_and_there_are_never_many(
    errors: RepeatedErrors, clock: Clock
) -> None:
    for number in range(100):
        errors.note(f"work {number}", "no")
    assert len(errors.problems()) == 32
    clock.now += 3601
    assert errors.problems() == []
    errors.succeeded("never failed")

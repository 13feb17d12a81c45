"""One timer for many reads."""

import asyncio

import pytest

from hermes.primitives.read_timeout import ReadTimeout

LONG_S = 3_600.0


async def _never() -> bytes:
    await asyncio.Event().wait()
    return b""


async def _soon() -> bytes:
    await asyncio.sleep(0)
    return b"data"


async def test_a_read_that_ends_in_time_returns_its_data() -> None:
    timeout = ReadTimeout()
    assert [await timeout.wait(_soon, LONG_S) for _ in range(3)] == [b"data"] * 3
    timeout.close()


async def test_a_read_that_takes_too_long_raises_timeout_error() -> None:
    timeout = ReadTimeout()
    with pytest.raises(TimeoutError):
        await timeout.wait(_never, 0.001)
    assert await timeout.wait(_soon, LONG_S) == b"data", "it can be used again"
    timeout.close()


async def test_a_shorter_limit_counts_although_the_timer_was_set_for_a_longer_one() -> (
    None
):
    timeout = ReadTimeout()
    await timeout.wait(_soon, LONG_S)
    with pytest.raises(TimeoutError):
        await timeout.wait(_never, 0.001)
    timeout.close()


async def test_a_timer_that_comes_due_too_early_is_set_again() -> None:
    timeout = ReadTimeout()
    await timeout.wait(_soon, 0.001)
    with pytest.raises(TimeoutError):
        await timeout.wait(_never, 0.01)
    timeout.close()


async def test_cancelling_the_task_is_not_taken_for_a_timeout() -> None:
    timeout = ReadTimeout()
    task = asyncio.ensure_future(timeout.wait(_never, LONG_S))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    timeout.close()


async def test_a_read_that_swallows_the_timeout_leaves_no_cancellation_behind() -> None:
    async def stubborn() -> bytes:
        try:
            return await _never()
        except asyncio.CancelledError:
            return b"late"

    timeout = ReadTimeout()
    assert await timeout.wait(stubborn, 0.001) == b"late"
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0
    timeout.close()

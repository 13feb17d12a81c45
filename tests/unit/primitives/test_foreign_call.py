"""Functions that may never return."""

import asyncio
import contextvars
import threading

import pytest

from hermes.primitives.threads import in_own_thread

WORD: contextvars.ContextVar[str] = contextvars.ContextVar("word", default="")


async def test_the_result_and_the_context_come_through() -> None:
    WORD.set("here")
    assert await in_own_thread(WORD.get, name="test") == "here"


async def test_an_error_is_raised_in_the_caller() -> None:
    def fail() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await in_own_thread(fail, name="test")


async def test_calls_that_hang_leave_the_shared_threads_free() -> None:
    hang = threading.Event()
    calls = [
        asyncio.ensure_future(in_own_thread(hang.wait, name="test")) for _ in range(64)
    ]
    await asyncio.sleep(0)
    try:
        assert await asyncio.wait_for(asyncio.to_thread(lambda: 1), 30) == 1
    finally:
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        hang.set()

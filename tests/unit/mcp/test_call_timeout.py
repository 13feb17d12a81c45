"""How long a call may be silent."""

import asyncio

import pytest

from hermes.mcp.server_limits import CallTimeout


async def test_silence_ends_a_call() -> None:
    with pytest.raises(TimeoutError):
        async with CallTimeout(0.01):
            await asyncio.Event().wait()


async def test_signs_of_life_do_not_extend_it_for_ever() -> None:
    async def talk(patience: CallTimeout) -> None:
        while True:
            patience.extend()
            await asyncio.sleep(0)

    with pytest.raises(TimeoutError):
        async with CallTimeout(0.01) as patience:
            await talk(patience)


async def test_the_clock_stands_while_the_user_is_asked() -> None:
    loop = asyncio.get_running_loop()
    async with CallTimeout(0.01) as patience:
        with patience.paused():
            done = asyncio.Event()
            loop.call_later(0.1, done.set)
            await done.wait()


async def test_the_clock_goes_on_after_the_answer() -> None:
    async def ask_and_wait() -> None:
        async with CallTimeout(0.01) as patience:
            with patience.paused():
                pass
            await asyncio.Event().wait()

    with pytest.raises(TimeoutError):
        await ask_and_wait()


async def test_a_question_may_outlive_its_call() -> None:
    async with CallTimeout(10) as patience:
        standing = patience.paused()
        standing.__enter__()
    standing.__exit__(None, None, None)
    with patience.paused():
        patience.extend()

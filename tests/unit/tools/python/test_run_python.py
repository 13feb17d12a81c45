"""The time limit of `run_python` stands still while calls are made."""

import asyncio

from hermes.tools.python.run_python import Pausable


async def test_the_limit_is_off_while_calls_are_made() -> None:
    pause = Pausable(60)
    async with pause.limit:
        before = pause.limit.when()
        with pause:
            assert pause.limit.when() is None
            with pause:
                assert pause.limit.when() is None
            assert pause.limit.when() is None
        after = pause.limit.when()
    assert before is not None
    assert after is not None
    assert before <= after <= asyncio.get_running_loop().time() + 60


async def test_a_call_that_ends_after_the_limit_has_passed_changes_nothing() -> None:
    pause = Pausable(0)
    try:
        async with pause.limit:
            await asyncio.Event().wait()
    except TimeoutError:
        pass
    with pause:
        assert pause.limit.expired()

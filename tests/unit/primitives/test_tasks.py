import asyncio
import contextlib

import pytest

from hermes.primitives.tasks import (
    BackgroundTasks,
    cancel_and_wait,
    cancel_until_ended,
    run_until_first,
    running,
)


class Worker:
    """Waits until it is released; ends in the way the test wants when it is cancelled."""

    def __init__(self, *, deaf_to: int = 0, fails: bool = False) -> None:
        self.cancelled = 0
        self.release = asyncio.Event()
        self._deaf_to = deaf_to
        self._fails = fails

    async def run(self) -> str:
        while True:
            try:
                await self.release.wait()
            except asyncio.CancelledError:
                self.cancelled += 1
                if self._fails:
                    raise RuntimeError("no") from None
                if self.cancelled > self._deaf_to:
                    raise
            else:
                return "done"


async def _fail() -> None:
    raise RuntimeError("no")


async def _started(*tasks: "asyncio.Task[str]") -> None:
    await asyncio.sleep(0)
    assert not any(task.done() for task in tasks)


async def test_a_background_task_is_kept_until_it_ends() -> None:
    tasks, worker = BackgroundTasks("working"), Worker()
    task = tasks.start(worker.run())
    assert len(tasks) == 1
    worker.release.set()
    await tasks.join()
    assert task.result() == "done"
    assert len(tasks) == 0


async def test_joining_waits_for_tasks_started_meanwhile() -> None:
    tasks, worker = BackgroundTasks("working"), Worker()

    async def begin_another() -> None:
        tasks.start(worker.run())
        worker.release.set()

    tasks.start(begin_another())
    async with asyncio.timeout(5):
        await tasks.join()
    assert len(tasks) == 0


async def test_a_failed_background_task_is_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    tasks = BackgroundTasks("tidying up")
    tasks.start(_fail())
    await tasks.join()
    assert await tasks.close()
    assert [record.getMessage() for record in caplog.records] == ["tidying up failed"]
    assert "RuntimeError: no" in caplog.text


async def test_a_failure_that_the_caller_handles_is_not_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    tasks = BackgroundTasks("working")
    with pytest.raises(RuntimeError):
        await tasks.start(_fail(), awaited=True)
    assert len(tasks) == 0
    assert not caplog.records


async def test_closing_cancels_once_and_waits_for_the_end() -> None:
    tasks, worker = BackgroundTasks("working"), Worker()
    task = tasks.start(worker.run())
    await _started(task)
    assert await tasks.close()
    assert task.cancelled()
    assert worker.cancelled == 1


async def test_closing_gives_up_on_a_task_that_does_not_end() -> None:
    tasks, worker = BackgroundTasks("working"), Worker(deaf_to=1)
    task = tasks.start(worker.run())
    await _started(task)
    assert not await tasks.close(timeout_s=0.01)
    assert not task.done()
    worker.release.set()
    await tasks.join()


async def test_cancelling_leaves_results_and_reports_failures(
    caplog: pytest.LogCaptureFixture,
) -> None:
    loop = asyncio.get_running_loop()
    failed_before, done = (
        loop.create_task(_fail()),
        loop.create_task(asyncio.sleep(0, "x")),
    )
    await asyncio.wait({failed_before, done})
    stubborn = loop.create_task(Worker(fails=True).run())
    await _started(stubborn)
    assert await cancel_and_wait(failed_before, done, stubborn)
    assert done.result() == "x"
    assert str(failed_before.exception()) == "no"
    (record,) = caplog.records
    assert record.getMessage() == "a task failed when it was cancelled"


async def test_cancelling_nothing_returns_at_once() -> None:
    assert await cancel_and_wait()


async def test_a_lost_cancellation_is_repeated() -> None:
    worker = Worker(deaf_to=1)
    task = asyncio.get_running_loop().create_task(worker.run())
    await _started(task)
    async with asyncio.timeout(30):
        await cancel_until_ended(task)
    assert worker.cancelled == 2


async def test_work_beside_a_block_ends_with_it() -> None:
    worker = Worker()
    with contextlib.suppress(KeyError):
        async with running(worker.run()) as task:
            await _started(task)
            raise KeyError
    assert task.cancelled()


async def test_work_beside_a_block_may_end_first() -> None:
    worker = Worker()
    worker.release.set()
    async with running(worker.run()) as task:
        assert await task == "done"


async def test_the_first_end_ends_the_others() -> None:
    worker = Worker()
    await run_until_first(worker.run(), asyncio.sleep(0))
    assert worker.cancelled == 1


@pytest.mark.parametrize("insist", [False, True])
async def test_the_first_failure_is_raised(insist: bool) -> None:
    worker = Worker()
    with pytest.raises(RuntimeError):
        await run_until_first(worker.run(), _fail(), insist=insist)
    assert worker.cancelled == 1

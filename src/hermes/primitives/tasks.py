"""Tasks with an owner: referenced while they run, logged when they fail, ended with their owner.

Use `asyncio.TaskGroup` if the failure of one task should end the others and the block.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Coroutine, Iterable
from typing import Any, TypeVar

T = TypeVar("T")

log = logging.getLogger("hermes.tasks")

_CANCEL_AGAIN_S = 0.5


class BackgroundTasks:
    """The tasks of one owner that nobody awaits. A failed task is logged as `what`, once."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._tasks: set[asyncio.Task[Any]] = set()

    def __len__(self) -> int:
        """Returns how many tasks still run."""
        return sum(not task.done() for task in self._tasks)

    def start(
        self, work: Coroutine[Any, Any, T], *, awaited: bool = False
    ) -> "asyncio.Task[T]":
        """Starts a task. With `awaited`, the caller awaits it and handles its failure."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard if awaited else self._ended)
        return task

    async def join(self) -> None:
        """Waits until no task runs, including those started in the meantime."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    def cancel(self) -> None:
        """Cancels all tasks without waiting for them."""
        _cancel(self._tasks)

    async def close(self, timeout_s: float | None = None) -> bool:
        """Cancels all tasks and waits until they have ended, for at most `timeout_s`. Returns whether they have."""
        if cancelled := _cancel(self._tasks):
            await asyncio.wait(cancelled, timeout=timeout_s)
        return not self._tasks

    def _ended(self, task: "asyncio.Task[Any]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("%s failed", self._what, exc_info=error)


async def cancel_and_wait(
    *tasks: "asyncio.Future[Any]", timeout_s: float | None = None
) -> bool:
    """Cancels tasks and waits until they have ended, for at most `timeout_s`. Returns whether they have.

    The result of a task that has already ended is left alone. A task that fails during its cancellation is logged.
    """
    cancelled = _cancel(tasks)
    if cancelled:
        await asyncio.wait(cancelled, timeout=timeout_s)
    _report(cancelled)
    return all(task.done() for task in tasks)


async def cancel_until_ended(*tasks: "asyncio.Future[Any]") -> None:
    """Cancels tasks repeatedly until they have ended, as `cancel_and_wait` does.

    Some libraries lose a cancellation if data arrives at the same moment.
    """
    cancelled = pending = _cancel(tasks)
    while pending:
        await asyncio.wait(pending, timeout=_CANCEL_AGAIN_S)
        pending = _cancel(pending)
    _report(cancelled)


@contextlib.asynccontextmanager
async def running(work: Coroutine[Any, Any, T]) -> "AsyncIterator[asyncio.Task[T]]":
    """Runs a coroutine beside the block. At the end of the block, cancels it if it still runs, and awaits it."""
    task = asyncio.get_running_loop().create_task(work)
    try:
        yield task
    finally:
        await cancel_and_wait(task)


async def run_until_first(
    *work: Coroutine[Any, Any, object], insist: bool = False
) -> None:
    """Runs coroutines until the first one ends, then ends the others. Raises the first one's exception, if any.

    With `insist`, the others are cancelled repeatedly.
    """
    loop = asyncio.get_running_loop()
    tasks = [loop.create_task(one) for one in work]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        await (cancel_until_ended if insist else cancel_and_wait)(*tasks)
    ended = [task for task in tasks if task in done]
    failed = [task for task in ended if task.cancelled() or task.exception()]
    for task in failed:
        task.result()


def _cancel(tasks: "Iterable[asyncio.Future[Any]]") -> "set[asyncio.Future[Any]]":
    """Cancels the tasks that still run, and returns them."""
    return {task for task in tuple(tasks) if task.cancel()}


def _report(tasks: "Iterable[asyncio.Future[Any]]") -> None:
    """Logs the exceptions of tasks that were cancelled."""
    for task in tasks:
        error = task.exception() if task.done() and not task.cancelled() else None
        if error is not None:
            log.error("a task failed when it was cancelled", exc_info=error)

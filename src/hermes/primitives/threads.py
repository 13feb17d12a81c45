"""Threads for an event loop, and for a call that may never return.

The event loop is for a library whose callers are threads or other event loops.
"""

import asyncio
import contextlib
import contextvars
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")
_END_ROUNDS = 3  # a task that is cancelled may start another


class EventLoopThread:
    """Runs an event loop in a thread until `stop`, which leaves no task and no connection behind."""

    def __init__(self, name: str) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def start(self, work: Coroutine[Any, Any, T]) -> "Future[T]":
        """Runs a coroutine on the loop. May be called on any thread."""
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    def stop(self) -> None:
        """Cancels what is still running, closes what is still open, and ends the thread."""
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_forever()
            self.loop.run_until_complete(self._end())
        finally:
            self.loop.close()

    async def _end(self) -> None:
        for _ in range(_END_ROUNDS):
            tasks = asyncio.all_tasks(self.loop) - {asyncio.current_task()}
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        # Libraries abandon connections that are still closing (TLS) or that a cancelled task was opening. asyncio has
        # no public list of them.
        for transport in list(getattr(self.loop, "_transports", {}).values()):
            transport.abort()
        for _ in range(2):  # sockets are closed in the loop's next iteration
            await asyncio.sleep(0)


async def in_own_thread(function: Callable[[], T], *, name: str) -> T:
    """Calls a function that may never return, such as a plugin's. Returns or raises what the function does.

    Nothing waits for its thread: a caller that gives up leaves the event loop's shared threads free, and the process
    can end.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()
    context = contextvars.copy_context()

    def settle(result: T | None, error: BaseException | None) -> None:
        if done.done():  # the caller has given up
            return
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(result)  # pyrefly: ignore[bad-argument-type]

    def run() -> None:
        result, error = None, None
        try:
            result = context.run(function)
        except BaseException as raised:  # noqa: BLE001 - it is raised in the caller
            error = raised
        with contextlib.suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(settle, result, error)

    threading.Thread(target=run, name=name, daemon=True).start()
    return await done

"""Calls a function that may never return, such as one of a plugin.

It runs in a thread of its own, which nobody waits for: a caller who gives up costs the event loop's shared threads
nothing, and the process can end.
"""

import asyncio
import contextlib
import contextvars
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def in_own_thread(function: Callable[[], T], *, name: str) -> T:
    """Returns what the function returns, or raises what it raises."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()
    context = contextvars.copy_context()

    def settle(result: T | None, error: BaseException | None) -> None:
        if done.done():  # the caller gave up
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
        with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(settle, result, error)

    threading.Thread(target=run, name=name, daemon=True).start()
    return await done

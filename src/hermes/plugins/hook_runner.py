"""Runs hooks: each has its own thread and queue, so that one that fails or hangs affects no other.

`fire` returns at once. Events reach a hook in order, one at a time, each with the hook's own
timeout.
"""

import asyncio
import inspect
import io
import logging
import queue
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from types import ModuleType
from typing import Any

import msgspec

from hermes.errors import HermesError
from hermes.plugins import verified_import
from hermes.plugins.hooks import HANDLER, Hook
from hermes.text.translation import translator

t = translator(__name__)

log = logging.getLogger("hermes.hooks")

_MAX_QUEUED_HOOK_EVENTS = 1000  # queued per hook
_MAX_HUNG_CALLS = 3  # hung calls after which a hook is disabled
_PREFIX = "hermes_hook_"

Handler = Callable[[str, dict[str, Any]], Any]


class HookStats(msgspec.Struct):
    """What happened to the events of one hook."""

    name: str
    done: int = 0
    failed: int = 0
    timed_out: int = 0
    dropped: int = 0
    slowest: float = 0.0


class HookRunner:
    """The trusted hooks of one process."""

    def __init__(self, hooks: list[Hook]) -> None:
        self._workers = [_Worker(hook) for hook in hooks if hook.state == "trusted"]

    def fire(self, event_type: str, context: Mapping[str, Any]) -> None:
        """Sends an event to every hook that subscribes to it. Never waits, never raises."""
        for worker in self._workers:
            if worker.hook.subscribes_to(event_type):
                worker.put(event_type, dict(context))

    def stats(self) -> list[HookStats]:
        return [worker.stats for worker in self._workers]

    def close(self, timeout_s: float = 5.0) -> None:
        """Accepts no more events, and waits a limited time for running calls."""
        deadline = time.monotonic() + timeout_s
        for worker in self._workers:
            worker.end()
        for worker in self._workers:
            worker.join(deadline - time.monotonic())


class _Worker:
    def __init__(self, hook: Hook) -> None:
        self.hook = hook
        self.stats = HookStats(hook.name)
        self._queue: queue.Queue[tuple[str, dict[str, Any]] | None] = queue.Queue()
        self._thread: threading.Thread | None = None
        self._ended = False
        self._hanging = 0

    def put(self, event_type: str, context: dict[str, Any]) -> None:
        if self._ended or self._queue.qsize() >= _MAX_QUEUED_HOOK_EVENTS:
            self.stats.dropped += 1
            log.warning(
                "the hook %s is too slow or off: it did not receive %s",
                self.hook.name,
                event_type,
            )
            return
        self._queue.put((event_type, context))
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._run, name=f"hermes-hook-{self.hook.name}", daemon=True
            )
            self._thread.start()

    def end(self) -> None:
        self._ended = True
        self._queue.put(None)

    def join(self, seconds: float) -> None:
        if self._thread is not None:
            self._thread.join(max(0.0, seconds))
            if self._thread.is_alive():
                log.warning(
                    "the hook %s did not finish in time; %d events were not handled",
                    self.hook.name,
                    self._queued(),
                )

    def _queued(self) -> int:
        return self._queue.qsize()

    def _run(self) -> None:
        handler: Handler | None = None
        while (item := self._queue.get()) is not None:
            if handler is None:
                try:
                    handler = load_handler(self.hook)
                except BaseException as error:  # noqa: BLE001 - somebody else's code, at import
                    self._give_up(error)
                    return
            self._call(handler, *item)
            if self._hanging >= _MAX_HUNG_CALLS:
                self._give_up(
                    HermesError(
                        t.later(
                            "{max_hung_calls} of its calls never returned",
                            max_hung_calls=_MAX_HUNG_CALLS,
                        )
                    )
                )
                return

    def _give_up(self, error: BaseException) -> None:
        """Disables the hook in this process."""
        self._ended = True
        self.stats.failed += 1
        self.stats.dropped += self._queue.qsize()
        log.error(
            "the hook %s is off until Hermes is restarted",
            self.hook.name,
            exc_info=error,
        )

    def _call(self, handler: Handler, event_type: str, context: dict[str, Any]) -> None:
        timeout = self.hook.manifest.timeout if self.hook.manifest else 10.0
        outcome: list[BaseException | None] = []
        started = time.monotonic()
        call = threading.Thread(
            target=_run_handler,
            args=(handler, event_type, context, timeout, outcome),
            daemon=True,
        )
        call.start()
        call.join(timeout + 0.5)
        self.stats.slowest = max(self.stats.slowest, time.monotonic() - started)
        if not outcome:
            self._hanging += 1
        error = outcome[0] if outcome else TimeoutError()
        if error is None:
            self.stats.done += 1
        elif isinstance(error, TimeoutError):
            self.stats.timed_out += 1
            log.warning(
                "the hook %s took longer than %g s for %s",
                self.hook.name,
                timeout,
                event_type,
            )
        else:
            self.stats.failed += 1
            log.error(
                "the hook %s failed on %s", self.hook.name, event_type, exc_info=error
            )


def _run_handler(
    handler: Handler,
    event_type: str,
    context: dict[str, Any],
    timeout: float,
    outcome: list[BaseException | None],
) -> None:
    """Makes one call, sync or async, in a thread that may be abandoned."""
    try:
        result = handler(event_type, context)
        if inspect.isawaitable(result):
            asyncio.run(asyncio.wait_for(_awaited(result), timeout))
    except BaseException as error:  # noqa: BLE001 - a hook is a subscriber: what it raises is its own
        outcome.append(error)
    else:
        outcome.append(None)


async def _awaited(result: Any) -> None:
    await result


def load_handler(hook: Hook, *, printing: bool = False) -> Handler:
    """Loads `handle` from exactly the bytes that the user approved. Raises what its code raises.

    Without `printing`, its output goes to the log: the terminal belongs to somebody else.
    """
    name = f"{_PREFIX}{hook.name.replace('-', '_')}_{hook.hash[:16]}"

    def prepare(module: ModuleType) -> None:
        if not printing:
            vars(module)["print"] = partial(_print_to_log, hook.name)

    module = verified_import.load(
        hook.folder,
        HANDLER,
        verified_import.read(hook.folder, hook.hash),
        name,
        prepare,
    )
    handler = getattr(module, "handle", None)
    if not callable(handler):
        raise HermesError(
            t.later(
                "{file} has no function `handle(event_type, context)`.",
                file=hook.folder / HANDLER,
            )
        )
    return handler


def _print_to_log(name: str, *values: object, file: Any = None, **more: Any) -> None:
    if file is not None:
        print(*values, file=file, **more)
        return
    text = io.StringIO()
    print(*values, file=text, **more)
    log.info("the hook %s: %s", name, text.getvalue().rstrip())

"""`--json`: every event of the run as a line of JSON, as it happens."""

import asyncio
import contextlib
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

_MAX_WAITING_LINES = 10_000  # then the threads that make more wait too
_FINISH_TIMEOUT_S = 1.0  # for the rest, once somebody wants to leave


class JsonLines:
    """Writes events to stdout, each at once, from its own thread: a reader that stalls does not block the event loop.

    The fields are those of docs/events.md.
    """

    def __init__(self) -> None:
        self._encode = msgspec.json.Encoder().encode
        self._home = threading.get_ident()  # the loop's thread, which never waits
        self._change = threading.Condition()
        self._lines: deque[bytes] = deque()
        self._ended = False
        self._hurried = False
        sys.stdout.flush()
        self._fd = sys.stdout.fileno()
        self.failure: OSError | None = None
        self.on_failure: Callable[[], object] | None = None
        threading.Thread(target=self._write, name="hermes-json", daemon=True).start()

    def on_event(self, event: Mapping[str, Any]) -> None:
        """Writes an event, from any thread. It is dropped when the reader is gone."""
        line = self._encode(event) + b"\n"
        with self._change:
            if self._ended or self.failure is not None:
                return
            self._lines.append(line)
            self._change.notify_all()
            if threading.get_ident() != self._home:
                self._change.wait_for(
                    lambda: (
                        len(self._lines) <= _MAX_WAITING_LINES
                        or self._is_over
                        or self._hurried
                    )
                )

    def stop_waiting(self) -> None:
        """Stops waiting for the reader, except for a moment at the end."""
        with self._change:
            self._hurried = True
            self._change.notify_all()

    async def finish(self) -> int:
        """Waits until everything is written, or for a moment after `stop_waiting`. Returns the number of lines that
        were not.
        """
        return await asyncio.to_thread(self._finish)

    @property
    def _is_over(self) -> bool:
        return self._ended or self.failure is not None

    def _finish(self) -> int:
        def is_done() -> bool:
            return not self._lines or self.failure is not None

        with self._change:
            self._ended = True
            self._change.notify_all()
            self._change.wait_for(lambda: is_done() or self._hurried)
            self._change.wait_for(is_done, _FINISH_TIMEOUT_S)
            return 0 if self.failure is not None else len(self._lines)

    def _write(self) -> None:
        try:
            while lines := self._next():
                rest = memoryview(b"".join(lines))
                while rest:
                    rest = rest[os.write(self._fd, rest) :]
                with self._change:
                    for _ in lines:
                        self._lines.popleft()
                    self._change.notify_all()
        except OSError as error:
            with self._change:
                self.failure = error
                self._change.notify_all()
            if self.on_failure is not None:
                with contextlib.suppress(
                    RuntimeError
                ):  # the loop is closed: the end has come anyway
                    self.on_failure()

    def _next(self) -> list[bytes]:
        """The lines to write now; none at the end."""
        with self._change:
            self._change.wait_for(lambda: self._lines or self._ended)
            return list(self._lines)

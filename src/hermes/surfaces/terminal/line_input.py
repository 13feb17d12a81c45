"""Reads lines from a terminal that edits them itself, without blocking the event loop."""

import asyncio
import os
import sys
from types import TracebackType
from typing import NamedTuple, Self


class TypedLine(NamedTuple):
    """A line without its newline, and when it was sent in the loop's time; None from a pipe."""

    text: str
    at: float | None = None


class LineReader:
    """Reads stdin line by line inside an event loop. `None` is the end."""

    def __init__(self) -> None:
        self._fd = sys.stdin.fileno()
        self._rest = b""
        self._typed = os.isatty(self._fd)
        self._queue: asyncio.Queue[TypedLine | None] = asyncio.Queue()

    def __enter__(self) -> Self:
        asyncio.get_running_loop().add_reader(self._fd, self._receive)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        asyncio.get_running_loop().remove_reader(self._fd)

    async def read(self) -> TypedLine | None:
        """Returns the next line."""
        return await self._queue.get()

    def end(self) -> None:
        """Makes `read` return None."""
        self._queue.put_nowait(None)

    def _receive(self) -> None:
        try:
            data = os.read(self._fd, 65536)
        except OSError:  # the terminal is gone
            data = b""
        if not data:
            asyncio.get_running_loop().remove_reader(self._fd)
            self._queue.put_nowait(None)
            return
        *whole, self._rest = (self._rest + data).split(b"\n")
        at = asyncio.get_running_loop().time() if self._typed else None
        for line in whole:
            self._queue.put_nowait(
                TypedLine(line.decode("utf-8", "replace").rstrip("\r"), at)
            )

"""Shows output while a command runs."""

import asyncio
import time
from collections.abc import Callable

from hermes.tools.escapes import clean


class Live:
    """Shows output at most 20 times a second; if there is too much, only the latest part."""

    _SECONDS = 0.05
    _BYTES = 4000

    def __init__(self, show: Callable[[str], None]) -> None:
        self._show = show
        self._waiting = bytearray()
        self._skipped = 0
        self._shown = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def feed(self, chunk: bytes) -> None:
        """Adds the next piece of output."""
        self._waiting += chunk[-self._BYTES :]
        surplus = len(self._waiting) - self._BYTES
        self._skipped += max(0, len(chunk) - self._BYTES) + max(0, surplus)
        if surplus > 0:
            del self._waiting[:surplus]
        if self._timer is None:
            wait = max(0.0, self._shown + self._SECONDS - time.monotonic())
            self._timer = asyncio.get_running_loop().call_later(wait, self._flush)

    def close(self) -> None:
        """Shows what is left."""
        if self._timer is not None:
            self._timer.cancel()
            self._flush()

    def _flush(self) -> None:
        self._timer = None
        self._shown = time.monotonic()
        whole = whole_characters(self._waiting)
        text = clean(bytes(self._waiting[:whole]).decode(errors="replace"))
        del self._waiting[:whole]
        if self._skipped:
            text = f"[{self._skipped:,} bytes not shown]\n{text}"
            self._skipped = 0
        if text:
            self._show(text)


def whole_characters(data: bytearray) -> int:
    """Returns the length of the part that ends with a whole character."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte >= 0xC0:
            needed = 2 + (byte >= 0xE0) + (byte >= 0xF0)
            return len(data) - back if needed > back else len(data)
        if byte < 0x80:
            break
    return len(data)

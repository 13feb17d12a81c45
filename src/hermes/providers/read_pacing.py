"""Reads a fast stream less often, and more at a time.

A model that writes hundreds of tokens in a second would wake the process for each of them, although a screen shows no
more than 60 pictures in a second. Waking up costs more than reading a token does.
"""

from collections.abc import Callable
from typing import Protocol

_WINDOW_S = 0.25  # short replies, and the start of long ones, are read as they come
_FAST_READS_PER_S = 80  # a screen needs fewer
_PAUSE_S = 0.016  # until a screen shows its next picture
_STALL_S = 0.05  # a stream that pauses for longer counts as new
_MAX_PIECE_BYTES = 16 * 1024  # a larger piece is no stream of tokens


class PausableTransport(Protocol):
    """What can be left unread for a while."""

    def pause_reading(self) -> None: ...
    def resume_reading(self) -> None: ...


class Timers(Protocol):
    """The part of an event loop that knows the time."""

    def time(self) -> float: ...
    def call_later(self, delay: float, callback: Callable[[], object], /) -> object: ...


class ReadPacing:
    """Pauses a transport between the reads of a stream that has been fast for a while."""

    def __init__(self, transport: PausableTransport, loop: Timers) -> None:
        self._transport = transport
        self._loop = loop
        self._window_began = 0.0
        self._open_since = 0.0  # when the transport could last be read
        self._reads = 0
        self._is_fast = False

    def restart(self) -> None:
        """Counts anew, for another reply."""
        self._window_began = self._open_since = self._loop.time()
        self._reads, self._is_fast = 0, False

    def note_read(self, size: int) -> None:
        """Takes note of a read. Pauses the transport if the stream is fast."""
        now = self._loop.time()
        if now - self._open_since > _STALL_S or not 0 < size <= _MAX_PIECE_BYTES:
            self.restart()
        self._open_since = now
        self._reads += 1
        passed = now - self._window_began
        if passed >= _WINDOW_S:
            self._is_fast = self._is_fast or self._reads >= _FAST_READS_PER_S * passed
            self._window_began, self._reads = now, 0
        if self._is_fast:
            self._transport.pause_reading()
            self._loop.call_later(_PAUSE_S, self._resume)

    def _resume(self) -> None:
        self._open_since = self._loop.time()
        self._transport.resume_reading()

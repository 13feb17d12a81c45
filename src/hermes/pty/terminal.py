"""A child terminal in an event loop. It stores the output, lets any number of viewers follow it, and slows the child
down to the slowest of them, so that a slow viewer costs no memory."""

import asyncio
import contextlib
from collections import deque
from types import TracebackType
from typing import Self

from hermes.pty.pty_process import READ_BYTES, PtyBridge
from hermes.pty.scrollback import MAX_SCROLLBACK_BYTES, Scrollback

MAX_BEHIND_BYTES = (
    MAX_SCROLLBACK_BYTES // 2
)  # bytes a viewer may be behind before the child has to wait
RESUME_BEHIND_BYTES = MAX_SCROLLBACK_BYTES // 8  # behind: the child continues
MAX_INPUT_BYTES = 1024 * 1024  # queued for the child
_LINGER_S = 0.001  # how long a read waits for more, to pass output on in larger pieces
MAX_FRAME_BYTES = 192 * 1024  # a large frame costs hardly more than a small one
_UNWATCHED_INTERVAL_S = 0.01  # reads less often while nobody watches
_VIEWER_GRACE_S = (
    5.0  # how long the position of the last viewer is kept, if its connection breaks
)
_EXIT_CHECK_INTERVAL_S = 0.05  # for a child that left its terminal


class Terminal:
    """Owns a `PtyBridge`. Create and use it inside one event loop."""

    def __init__(
        self,
        bridge: PtyBridge,
        *,
        limit: int = MAX_SCROLLBACK_BYTES,
        grace: float = _VIEWER_GRACE_S,
    ) -> None:
        self._bridge = bridge
        self._grace = grace
        self._left: Viewer | None = None
        self._loop = asyncio.get_running_loop()
        self._fd = bridge.fileno()
        self._reading = False
        self._later: asyncio.TimerHandle | None = None
        self._input: deque[memoryview] = deque()
        self._waiting = 0
        self._room = asyncio.Event()
        self._room.set()
        self._viewers: set[Viewer] = set()
        self._ended = asyncio.Event()
        self._closing: asyncio.Task[None] | None = None
        self.scrollback = Scrollback(limit)
        self.shown = 0
        """The furthest position any viewer has reached. A viewer's terminal has answered the program's queries before it."""
        self._go_on()

    @property
    def pid(self) -> int:
        return self._bridge.pid

    @property
    def exit_code(self) -> int | None:
        """How the program ended; None while it runs."""
        return self._bridge.exit_code if self._ended.is_set() else None

    @property
    def ended(self) -> bool:
        """Whether the program has ended and all its output is in the scrollback."""
        return self._ended.is_set()

    @property
    def paused(self) -> bool:
        """Whether the child has to wait for a viewer."""
        return not self._reading and self._later is None and not self.ended

    @property
    def viewers(self) -> int:
        return len(self._viewers)

    @property
    def waiting(self) -> int:
        """Bytes of input that the child has not read yet."""
        return self._waiting

    def watch(self, position: int) -> "Viewer":
        """Returns a viewer that follows from a position in the scrollback."""
        viewer = Viewer(self, position)
        self._viewers.add(viewer)
        self._left = None
        self.pace()
        return viewer

    def remove_viewer(self, viewer: "Viewer") -> None:
        """Removes a viewer. If it was the last, its position is kept for a moment."""
        self._viewers.discard(viewer)
        if not self._viewers:
            self._left = viewer
            self._loop.call_later(self._grace, self._give_up, viewer)
        self.pace()

    def _give_up(self, viewer: "Viewer") -> None:
        if self._left is viewer:
            self._left = None
            self.pace()

    async def write(self, data: bytes) -> None:
        """Sends input to the child, in order. Waits while much of it is pending."""
        await self._room.wait()
        if self.ended or not data:
            return
        self._input.append(memoryview(data))
        self._waiting += len(data)
        self._flush()

    def resize(self, cols: int, rows: int) -> None:
        self._bridge.resize(cols, rows)

    async def finished(self) -> None:
        """Waits until the program has ended."""
        await self._ended.wait()

    async def close(self) -> None:
        """Ends the program and everything it started at the terminal. Idempotent."""
        if self._closing is None:
            self._stop_reading()
            with contextlib.suppress(ValueError):
                self._loop.remove_writer(self._fd)
            self._closing = self._loop.create_task(
                asyncio.to_thread(self._bridge.close)
            )
        await asyncio.shield(self._closing)
        self._end()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    def pace(self) -> None:
        """Stops reading from the child while a viewer is far behind, and continues once it has caught up."""
        behind = max(
            (viewer.behind for viewer in self._viewers),
            default=self._left.behind if self._left else 0,
        )
        if self._reading and behind > MAX_BEHIND_BYTES:
            self._stop_reading()
        elif (
            not self._reading and behind <= RESUME_BEHIND_BYTES and self._later is None
        ):
            self._go_on()

    def _go_on(self) -> None:
        self._later = None
        if not self._reading and not self.ended and self._closing is None:
            self._reading = True
            self._loop.add_reader(self._fd, self._read)

    def _stop_reading(self) -> None:
        if self._later is not None:
            self._later.cancel()
            self._later = None
        if self._reading:
            self._reading = False
            self._loop.remove_reader(self._fd)

    def _read(self) -> None:
        piece = self._bridge.read(0, most=MAX_FRAME_BYTES, linger=_LINGER_S)
        self.scrollback.add(piece or b"")
        for viewer in self._viewers:
            viewer.news.set()
        if piece is None:
            self._end()
        elif self._bridge.hung_up and not piece:
            self._pause_reading(_EXIT_CHECK_INTERVAL_S)
        elif not self._viewers and not self._left and len(piece) >= READ_BYTES // 8:
            self._pause_reading(_UNWATCHED_INTERVAL_S)
        else:
            self.pace()

    def _pause_reading(self, seconds: float) -> None:
        self._stop_reading()
        self._later = self._loop.call_later(seconds, self._go_on)

    def _flush(self) -> None:
        """Writes what the child accepts now; the rest follows when it accepts more."""
        while self._input:
            taken = self._bridge.send(self._input[0])
            self._waiting -= taken
            if taken < len(self._input[0]):
                self._input[0] = self._input[0][taken:]
                break
            self._input.popleft()
        if self._waiting >= MAX_INPUT_BYTES:
            self._room.clear()
        else:
            self._room.set()
        if self._input and self._closing is None and not self.ended:
            self._loop.add_writer(self._fd, self._flush)
        elif self._bridge.fileno() >= 0:
            self._loop.remove_writer(self._fd)

    def _end(self) -> None:
        self._stop_reading()
        if self._bridge.fileno() >= 0:
            self._loop.remove_writer(self._fd)
        self._input.clear()
        self._waiting = 0
        self._room.set()
        self._ended.set()
        for viewer in self._viewers:
            viewer.news.set()


class Viewer:
    """A client that follows a terminal. With a `window`, output counts as seen only when the client confirms it.

    `position` is the next byte to take, `seen` what the client has really shown.
    """

    def __init__(self, terminal: Terminal, position: int) -> None:
        self._terminal = terminal
        self.news = asyncio.Event()
        self.news.set()
        self.position = position
        self.seen = position
        self.window = 0
        """The most bytes to hand out before they are confirmed; 0 for no limit."""

    @property
    def behind(self) -> int:
        return self._terminal.scrollback.end - (
            self.seen if self.window else self.position
        )

    async def take(self, most: int = MAX_FRAME_BYTES) -> bytes | None:
        """Returns the next bytes; None when the program has ended and all was taken."""
        while True:
            room = (
                most
                if not self.window
                else min(most, self.window - (self.position - self.seen))
            )
            found = (
                self._terminal.scrollback.after(self.position, room)
                if room > 0
                else b""
            )
            if found:
                self.position += len(found)
                self._terminal.shown = max(self._terminal.shown, self.position)
                self._terminal.pace()
                return found
            if self._terminal.ended and self.position >= self._terminal.scrollback.end:
                return None
            self.news.clear()
            await self.news.wait()

    def confirm(self, count: int) -> None:
        """Records that the client has shown this many more bytes."""
        self.seen = min(self.position, self.seen + max(0, count))
        self.news.set()
        self._terminal.pace()

    def close(self) -> None:
        self._terminal.remove_viewer(self)

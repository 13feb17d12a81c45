"""Terminal output for the live screen: writes whole frames, survives a lost terminal, and limits how often it redraws."""

import os
import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import TextIO

from prompt_toolkit.data_structures import Size

from hermes.settings.load import environment
from hermes.surfaces.terminal.mouse import ClickOutput

_PAUSE_FACTOR = 8.0  # the pause, in multiples of the CPU time that the drawing took
_MIN_INTERVAL_S = 0.014  # about 70 in a second; screens show 60
_MAX_PAUSE_S = 0.5


class FrameOutput(ClickOutput):
    """Collects the output of one frame. Calls `gone` when the terminal can no longer be written to."""

    def __init__(self, stdout: TextIO, gone: Callable[[], object]) -> None:
        # Do not query the terminal (for its cursor position): a late answer would be read as input.
        super().__init__(stdout, terminal_size, enable_cpr=False)
        self._hung_up = gone
        self.held = False
        """Whether output is being collected for a frame."""
        self.columns = 0
        """The window's width when the last frame was drawn."""
        environ = environment()
        self.reflows = (
            "XTERM_VERSION" not in environ and environ.get("TERM", "") != "linux"
        )
        """Whether the terminal rewraps existing rows when the window gets narrower. Nearly all do."""

    def hold(self) -> None:
        """Starts collecting output for the next frame."""
        self.held = True

    def release(self, columns: int) -> None:
        """Writes the collected frame."""
        self.held, self.columns = False, columns
        self.flush()

    # pyrefly: ignore[missing-override-decorator]
    def erase_down(self) -> None:
        """Erases from the start of the row to the end of the window. Not from the first column on: where that is the
        whole window, tmux would keep it in its scrollback.
        """
        self.write_raw("\r\x1b[K\x1b[C\x1b[J\r")

    # pyrefly: ignore[missing-override-decorator]
    def flush(self) -> None:
        if self.held:
            return
        try:
            super().flush()
        except OSError:
            self._hung_up()


def terminal_size() -> Size:
    """Returns the window's size, or a default one if there is no terminal."""
    try:
        found = os.get_terminal_size(sys.stdout.fileno())
    except (OSError, ValueError):
        return Size(rows=24, columns=80)
    return Size(rows=found.lines or 24, columns=found.columns or 80)


class RedrawThrottle:
    """Tells when the next drawing is due. As a context manager, measures one drawing."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        cpu_clock: Callable[[], float] = time.thread_time,
    ) -> None:
        self._clock = clock
        self._cpu_clock = cpu_clock  # a busy machine does not count as slow drawing
        self._began = self._cpu_began = 0.0
        self._last_cost = 0.0  # of the drawing before, in CPU time
        self._next = float("-inf")

    @property
    def wait(self) -> float:
        """Seconds until the next drawing is due; zero or less if it is due now."""
        return self._next - self._clock()

    def __enter__(self) -> None:
        self._began, self._cpu_began = self._clock(), self._cpu_clock()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        cost = self._cpu_clock() - self._cpu_began
        usual = min(cost, self._last_cost)  # one slow drawing may be due to anything
        self._last_cost = cost
        pause = min(_MAX_PAUSE_S, usual * _PAUSE_FACTOR)
        self._next = max(self._began + _MIN_INTERVAL_S, self._clock() + pause)

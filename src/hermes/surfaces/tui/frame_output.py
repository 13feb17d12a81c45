"""Terminal output for the live screen: writes whole frames at once and survives a lost terminal."""

import os
import sys
from collections.abc import Callable
from typing import TextIO

from prompt_toolkit.data_structures import Size

from hermes.settings.load import environment
from hermes.surfaces.terminal.mouse import ClickOutput


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

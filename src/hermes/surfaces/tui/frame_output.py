"""The terminal as the live screen writes to it: whole frames in one go, and no crash when it is gone."""

import os
import sys
from collections.abc import Callable
from typing import TextIO

from prompt_toolkit.data_structures import Size
from prompt_toolkit.output.vt100 import Vt100_Output

from hermes.settings.load import environment


class FrameOutput(Vt100_Output):
    """Collects what belongs to one frame. Calls `gone` when the terminal can't be written to any more."""

    def __init__(self, stdout: TextIO, gone: Callable[[], object]) -> None:
        # No questions to the terminal (where is the cursor?): an answer that comes late would be taken for input.
        super().__init__(stdout, terminal_size, enable_cpr=False)
        self._gone = gone
        self.held = False
        """Whether a frame is being put together."""
        self.columns = 0
        """How wide the window was when the last frame was drawn."""
        environ = environment()
        self.reflows = (
            "XTERM_VERSION" not in environ and environ.get("TERM", "") != "linux"
        )
        """Whether the terminal breaks rows that are there to fit a narrower window; nearly all do."""

    def hold(self) -> None:
        """What follows is part of the frame that is drawn next."""
        self.held = True

    def release(self, columns: int) -> None:
        """The frame is complete."""
        self.held, self.columns = False, columns
        self.flush()

    # pyrefly: ignore[missing-override-decorator]
    def flush(self) -> None:
        if self.held:
            return
        try:
            super().flush()
        except OSError:
            self._gone()


def terminal_size() -> Size:
    """The window's size; a usual one when there is none any more."""
    try:
        found = os.get_terminal_size(sys.stdout.fileno())
    except (OSError, ValueError):
        return Size(rows=24, columns=80)
    return Size(rows=found.lines or 24, columns=found.columns or 80)

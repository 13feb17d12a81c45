"""Progress on stderr: at a terminal, a line that is redrawn in place; elsewhere, the caller prints a line now and
then."""

import sys
import time

from hermes.settings.load import environment
from hermes.surfaces.terminal.style import terminal_width
from hermes.surfaces.terminal.text import cut, width

_REDRAW_S = 0.1


class ProgressLine:
    """The line. `is_live` says whether it can be redrawn."""

    def __init__(self) -> None:
        self.is_live = (
            sys.stderr.isatty() and environment().get("TERM", "dumb") != "dumb"
        )
        self._drawn = 0.0

    @property
    def columns(self) -> int:
        """How wide it may be."""
        return terminal_width(sys.stderr) - 1

    def draw(self, text: str, *, now: bool = False) -> None:
        """Shows a text in place of the last one, unless that was a moment ago. With `now` in any case."""
        moment = time.monotonic()
        if self.is_live and (now or moment - self._drawn >= _REDRAW_S):
            self._drawn = moment
            print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Makes room for another line, above the next one that is drawn."""
        if self.is_live and self._drawn:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        """Leaves the line as it is."""
        if self.is_live and self._drawn:
            print(file=sys.stderr, flush=True)
            self._drawn = 0.0


def bar(share: float, columns: int) -> str:
    """Formats a share as `[#####-----]  48%`."""
    size = max(5, min(30, columns // 4))
    filled = int(min(1.0, share) * size)
    return f"[{'#' * filled}{'-' * (size - filled)}] {min(1.0, share):4.0%}"


def fitted(parts: list[str], columns: int) -> str:
    """The parts side by side, as much as fits."""
    return cut(_side_by_side(parts), columns)


def fits(parts: list[str], columns: int) -> bool:
    """Returns whether all of the parts fit side by side."""
    return width(_side_by_side(parts)) <= columns


def _side_by_side(parts: list[str]) -> str:
    return "  ".join(filter(None, parts))

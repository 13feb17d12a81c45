"""The answer of a one-shot run on stdout: rendered Markdown on a terminal, the bare text anywhere else."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from hermes.settings.load import environment
from hermes.surfaces.terminal.spoken_text import SpokenText
from hermes.surfaces.terminal.style import (
    settings_of_this_run,
    stdout_style,
    terminal_height,
    terminal_width,
)
from hermes.surfaces.terminal.styled_text import Row, painted, plain
from hermes.surfaces.terminal.text import clean, width
from hermes.surfaces.terminal.tool_line import marks_for

if TYPE_CHECKING:
    from hermes.surfaces.terminal.markdown.render import Markdown

_MIN_COLUMNS = 20


class AnswerOutput:
    """Writes an answer while it arrives. Rows that can still change are drawn again in place."""

    def __init__(self) -> None:
        self._is_terminal = sys.stdout.isatty()
        is_linear = settings_of_this_run().display.layout == "linear"
        self._renders = (
            self._is_terminal and environment().get("TERM") != "dumb" and not is_linear
        )
        self._spoken = SpokenText() if self._is_terminal and is_linear else None
        self._style = stdout_style()
        self._markdown: Markdown | None = None
        self._open: Sequence[Row] = ()
        """The rows below the final ones, as they are on the screen."""
        self._is_mid_line = False

    def write(self, text: str) -> None:
        """Writes the next piece of the answer."""
        if not text:
            return
        if not self._renders:
            self._put_plain(clean(text) if self._is_terminal else text)
            return
        if self._markdown is None:
            self._markdown = self._new_markdown()
        columns = _columns()
        final = self._markdown.feed(clean(text), columns)
        most = max(terminal_height(sys.stdout) - 1, 1)
        self._draw(final, self._markdown.rest(columns, most)[-most:])

    def end(self) -> None:
        """Ends the answer, and its last line."""
        if self._markdown is not None:
            self._draw(self._markdown.end(_columns()), ())
            self._markdown = None
            return
        if self._spoken is not None:
            self._put(self._spoken.end())
        if self._is_mid_line:
            self._put("\n")
            self._is_mid_line = False

    def _put_plain(self, text: str) -> None:
        self._is_mid_line = not text.endswith("\n")
        self._put(self._spoken.feed(text) if self._spoken is not None else text)

    def _new_markdown(self) -> "Markdown":
        from hermes.surfaces.terminal.markdown.render import Markdown

        is_ascii = marks_for(sys.stdout.encoding).bar == "|"
        return Markdown(colours=self._style.enabled, ascii_only=is_ascii)

    def _draw(self, final: Sequence[Row], rest: Sequence[Row]) -> None:
        """Replaces the open rows. The cursor stays after the last one."""
        if not final and rest == self._open:
            return
        done = "".join(f"{painted(row, self._style)}\n" for row in final)
        more = "\n".join(painted(row, self._style) for row in rest)
        self._put(self._erase() + done + more)
        self._open = rest

    def _erase(self) -> str:
        """Returns what removes the open rows, which take more lines if the window became narrower."""
        if not self._open:
            return ""
        columns = max(terminal_width(sys.stdout), 1)
        lines = sum(max(-(-width(plain(row)) // columns), 1) for row in self._open)
        up = f"\x1b[{lines - 1}A" if lines > 1 else ""
        return f"\r{up}\x1b[J"

    def _put(self, text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()


def _columns() -> int:
    return max(terminal_width(sys.stdout), _MIN_COLUMNS) - 1

"""Terminal styles: colour only where it is wanted, and values without control characters."""

import functools
import os
import sys
from collections.abc import Mapping, Sequence
from typing import TextIO

from hermes.commands.views import FAIL, OK, WARN
from hermes.errors import HermesError
from hermes.settings.load import environment, load
from hermes.settings.sections import Settings
from hermes.surfaces.terminal.theme import NEUTRAL, Theme, theme_for

__all__ = [
    "FAIL",
    "OK",
    "WARN",
    "Style",
    "columns",
    "hanging",
    "printable",
    "settings_of_this_run",
    "stderr_style",
    "stdout_style",
    "terminal_height",
    "terminal_width",
    "wants_color",
]


class Style:
    """Colours text, or leaves it plain."""

    def __init__(self, *, enabled: bool, theme: Theme = NEUTRAL) -> None:
        self.enabled = enabled
        self.theme = theme

    def bold(self, text: str) -> str:
        return self._mark("1", text)

    def dim(self, text: str) -> str:
        return self._mark("2", text)

    def red(self, text: str) -> str:
        return self._mark("31", text)

    def green(self, text: str) -> str:
        return self._mark("32", text)

    def yellow(self, text: str) -> str:
        return self._mark("33", text)

    def cyan(self, text: str) -> str:
        return self._mark("36", text)

    def status(self, mark: str) -> str:
        """Returns `ok`, `warn` or `fail`, coloured and padded to one width."""
        paint = {OK: self.green, WARN: self.yellow, FAIL: self.red}[mark]
        return paint(f"{mark:<4}")

    def _mark(self, code: str, text: str) -> str:
        sgr = self.theme.sgr(code)
        return f"\x1b[{sgr}m{text}\x1b[0m" if self.enabled and sgr and text else text


def wants_color(
    stream: TextIO, environ: Mapping[str, str], color: str = "auto"
) -> bool:
    """Returns whether to colour output to `stream`. `display.color`, in `color`, wins over NO_COLOR."""
    if color != "auto":
        return color == "always"
    if environ.get("NO_COLOR") or environ.get("TERM") == "dumb":
        return False
    return stream.isatty()


def stdout_style() -> Style:
    """Returns the style of stdout, by `display.color` and the terminal."""
    return _style(sys.stdout)


def stderr_style() -> Style:
    """Returns the style of stderr, by `display.color` and the terminal."""
    return _style(sys.stderr)


def _style(stream: TextIO) -> Style:
    environ, display = environment(), settings_of_this_run().display
    return Style(
        enabled=wants_color(stream, environ, display.color),
        theme=theme_for(display.theme, environ),
    )


@functools.cache
def settings_of_this_run() -> Settings:
    """Returns the settings, read once per process.

    Defaults if they cannot be read: the command itself reports that.
    """
    try:
        return load(environment())
    except HermesError:
        return Settings()


def printable(text: str) -> str:
    """Makes control characters in `text` visible. Line breaks stay."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in " \n" else ascii(c)[1:-1] for c in text)


_MAX_COLUMN_CELLS = 40  # a longer cell shifts only its own row


def columns(
    rows: Sequence[Sequence[str]], *, indent: int = 2, gap: int = 2
) -> list[str]:
    """Aligns rows of plain text."""
    lengths = [[len(cell) for cell in column] for column in zip(*rows, strict=True)]
    widths = [
        max([size for size in sizes if size <= _MAX_COLUMN_CELLS], default=0)
        for sizes in lengths
    ]
    pad, space = " " * indent, " " * gap
    return [
        (
            pad
            + space.join(
                cell.ljust(width) for cell, width in zip(row, widths, strict=True)
            )
        ).rstrip()
        for row in rows
    ]


def hanging(text: str, stream: TextIO, indent: int) -> str:
    """Wraps `text` that starts at column `indent` to the terminal; unchanged if there is none."""
    if not stream.isatty():
        return text
    import textwrap

    width = max(terminal_width(stream) - indent, 20)
    lines = textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)
    return ("\n" + " " * indent).join(lines)


def terminal_width(stream: TextIO | None = None) -> int:
    """Returns the terminal's width; 80 if there is none."""
    try:
        return os.get_terminal_size((stream or sys.stdout).fileno()).columns or 80
    except (OSError, ValueError):
        return 80


def terminal_height(stream: TextIO) -> int:
    """Returns the number of lines of the terminal; 24 if there is none."""
    try:
        return os.get_terminal_size(stream.fileno()).lines or 24
    except (OSError, ValueError):
        return 24

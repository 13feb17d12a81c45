"""Draws streamed text past prompt_toolkit, which lays out and compares the whole frame for every change.

Rows are inserted, deleted and rewritten in place with escape codes. The rows below (calls, input, status line) move
in the terminal and are not drawn again. The renderer's record of the last frame is changed accordingly, so that its
next frame starts from what the terminal shows.
"""

from collections import defaultdict
from collections.abc import Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING

from prompt_toolkit.data_structures import Point, Size
from prompt_toolkit.layout.screen import Char

from hermes.surfaces.terminal.style import Style
from hermes.surfaces.terminal.styled_text import Row, painted, plain
from hermes.surfaces.terminal.text import width

if TYPE_CHECKING:
    from prompt_toolkit.application import Application
    from prompt_toolkit.layout.screen import Screen

_STALE = Char("?", "reverse blink")  # a cell that never occurs in a frame
_BLANK = Char(" ", "")


def replace_top_rows(
    app: "Application[None]",
    old: Sequence[Row],
    new: Sequence[Row],
    *,
    printed: int,
    size: Size,
    style: Style,
) -> bool:
    """Replaces the first rows of the frame, `old`, by `new`. The first `printed` of those leave the frame: they
    belong to the scrollback from now on. Returns False, having drawn nothing, if only a whole frame will do.
    """
    screen = app.renderer.last_rendered_screen
    added = len(new) - len(old)
    if screen is None or screen.height + added > size.rows:
        return False
    cursor = screen.get_cursor_position(app.layout.current_window)
    parts = [_moved_rows(screen.height, len(old), added, cursor)]
    for number, (before, row) in enumerate(zip_longest(old, new)):
        if row is not None and row != before:
            up = cursor.y + added - number
            parts.append(_up(up) + painted(row, style) + f"\x1b[K\x1b[{up}B\r")
    changes = "".join(parts)
    if changes:
        app.output.write_raw(changes + "\r" + (f"\x1b[{cursor.x}C" if cursor.x else ""))
    _record(app, screen, old, new[printed:])
    return True


def _moved_rows(height: int, at: int, added: int, cursor: Point) -> str:
    """Makes room for `added` rows at row `at` of the frame, or removes rows before it. Ends in the cursor's row."""
    if added == 0:
        return ""
    if added < 0:
        return f"{_up(cursor.y - at - added)}\x1b[{-added}M{_down(cursor.y - at)}"
    below = height - 1 - cursor.y
    scrolled = (
        _down(below) + "\r\n" * added
    )  # at the bottom of the window, this scrolls
    return f"{scrolled}{_up(height - 1 + added - at)}\x1b[{added}L{_down(cursor.y + added - at)}"


def _up(rows: int) -> str:
    return f"\x1b[{rows}A\r" if rows else "\r"


def _down(rows: int) -> str:
    return f"\x1b[{rows}B\r" if rows else "\r"


def _record(
    app: "Application[None]", screen: "Screen", old: Sequence[Row], kept: Sequence[Row]
) -> None:
    """Notes in the record of the last frame what its first rows are now. Their cells count as changed."""
    moved = len(kept) - len(old)
    if moved:
        lower = {
            y + moved: row for y, row in screen.data_buffer.items() if y >= len(old)
        }
        screen.data_buffer.clear()
        screen.data_buffer.update(lower)
        screen.height += moved
        screen.cursor_positions = {
            window: Point(at.x, at.y + moved)
            for window, at in screen.cursor_positions.items()
        }
        at = app.renderer._cursor_pos  # noqa: SLF001 - it has no public name
        app.renderer._cursor_pos = Point(at.x, at.y + moved)  # noqa: SLF001
    for number, row in enumerate(kept):
        if not moved and row == old[number]:
            continue
        cells = dict.fromkeys(range(width(plain(row))), _STALE)
        screen.data_buffer[number] = defaultdict(lambda: _BLANK, cells)

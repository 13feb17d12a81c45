"""The mouse in menus: which row was clicked.

A terminal reports a click by its row in the window. The position of the cursor is asked for only after a click, because
a late answer to any other query could be read as keys. Movements are never asked for.
"""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.output.vt100 import Vt100_Output

if TYPE_CHECKING:
    from prompt_toolkit.application import Application

_REPORT = re.compile(r"\x1b\[<(\d+);(\d+);(\d+)([Mm])")
_POSITION = re.compile(r"\x1b\[(\d+);(\d+)R")
_ASK_POSITION = "\x1b[6n"
_LEFT, _WHEEL_UP, _WHEEL_DOWN = 0, 64, 65


class ClickOutput(Vt100_Output):
    """Terminal output that asks for clicks and the wheel only, not for movements."""

    # pyrefly: ignore[missing-override-decorator]
    def enable_mouse_support(self) -> None:
        self.write_raw("\x1b[?1000h\x1b[?1006h")

    # pyrefly: ignore[missing-override-decorator]
    def disable_mouse_support(self) -> None:
        self.write_raw("\x1b[?1006l\x1b[?1000l")


class MouseClicks:
    """Turns the terminal's reports into clicks on rows, counted from the cursor's; on a full screen, from the top.

    `pressed` is called when the button goes down, and returns what handles the click; None if nothing can be clicked
    now. So a click counts for what was on the screen when it was made.
    """

    def __init__(
        self,
        pressed: Callable[[], Callable[[int], object] | None],
        wheel: Callable[[int], object] = lambda _: None,
    ) -> None:
        self._pressed = pressed
        self._wheel = wheel
        self._down: tuple[int, Callable[[int], object]] | None = None
        self._asked: tuple[int, Callable[[int], object]] | None = None

    def keys(self) -> KeyBindings:
        """Returns the bindings. Reports that mean nothing are swallowed: they are no keys."""
        keys = KeyBindings()
        keys.add(Keys.Vt100MouseEvent, eager=True)(self._report)
        keys.add(Keys.CPRResponse, eager=True)(self._position)
        return keys

    def _report(self, event: KeyPressEvent) -> None:
        found = _REPORT.fullmatch(event.data)
        if found is None:
            return
        button, row, is_release = int(found[1]), int(found[3]), found[4] == "m"
        if button in (_WHEEL_UP, _WHEEL_DOWN):
            self._wheel(-1 if button == _WHEEL_UP else 1)
        elif button == _LEFT and not is_release:
            handle = self._pressed()
            self._down = (row, handle) if handle is not None else None
        elif button == _LEFT:
            down, self._down = self._down, None
            if down is not None and down[0] == row:  # otherwise it was dragged
                self._clicked(event.app, row, down[1])

    def _clicked(
        self, app: "Application[Any]", row: int, handle: Callable[[int], object]
    ) -> None:
        if app.renderer.full_screen:
            handle(row - 1)
            return
        self._asked = (row, handle)
        app.output.write_raw(_ASK_POSITION)
        app.output.flush()

    def _position(self, event: KeyPressEvent) -> None:
        found, asked = _POSITION.fullmatch(event.data), self._asked
        self._asked = None
        if found is not None and asked is not None:
            row, handle = asked
            handle(row - int(found[1]))

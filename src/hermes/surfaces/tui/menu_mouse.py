"""The mouse on the live screen. The terminal handles it (to select and scroll text), except while a menu or a list
is open."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from hermes.surfaces.terminal.mouse import MouseClicks

if TYPE_CHECKING:
    from prompt_toolkit.application import Application
    from prompt_toolkit.layout.containers import Container

    from hermes.surfaces.terminal.question_menu import QuestionMenu
    from hermes.surfaces.tui.menu_input import MenuInput
    from hermes.surfaces.tui.overlays.overlay_window import OverlayWindow


class MenuMouse:
    """Passes clicks to the open menu or list. `choice_at` returns the choice that a row of the menu shows."""

    def __init__(
        self,
        menu: "MenuInput",
        overlay: "OverlayWindow",
        choice_at: Callable[[int], int | None],
    ) -> None:
        self.is_wanted = True
        """Whether the settings allow it."""
        self._menu = menu
        self._overlay = overlay
        self._choice_at = choice_at
        self._released: QuestionMenu | None = (
            None  # the menu whose mouse was given back
        )
        self._menu_top = 0  # the menu's first row, counted from the cursor's
        clicks = MouseClicks(self._pressed, self._wheel)
        self.keys = clicks.keys()

    def is_on(self) -> bool:
        """Whether the terminal should report clicks now. A window that is only read keeps its mouse."""
        if not self.is_wanted:
            return False
        if self._overlay.is_open:
            return self._overlay.takes_clicks
        menu = self._menu.menu
        return self._menu.chooses and menu is not self._released

    def note_frame(self, app: "Application[None]", window: "Container") -> None:
        """Notes where a frame that was just drawn has the menu."""
        screen = app.renderer.last_rendered_screen
        if screen is None or not self._menu.is_open:
            return
        cursor = screen.get_cursor_position(app.layout.current_window)
        for one, place in screen.visible_windows_to_write_positions.items():
            if one is window:
                self._menu_top = place.ypos - cursor.y

    def _pressed(self) -> Callable[[int], object] | None:
        if not self.is_on():
            return None
        if self._overlay.is_open:
            return self._overlay.click
        menu = self._menu.menu
        step = menu.step if menu is not None else ""

        def choose(row: int) -> None:
            number = self._choice_at(row - self._menu_top)
            is_same = menu is self._menu.menu and menu is not None and menu.step == step
            if number is not None and is_same:
                self._menu.choose(number)

        return choose

    def _wheel(self, step: int) -> None:
        """Scrolls a list. Above a question it gives the mouse back: the person wants to read what is above it."""
        if self._overlay.is_open:
            self._overlay.scroll(step)
        else:
            self._released = self._menu.menu
            self._menu.redraw()

"""Shows an overlay in the whole window, on the terminal's alternate screen, and gives it the keys."""

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from prompt_toolkit.formatted_text import AnyFormattedText
from prompt_toolkit.layout import Window
from prompt_toolkit.layout.controls import FormattedTextControl

from hermes.surfaces.terminal.styled_text import Row
from hermes.surfaces.tui.frame_output import terminal_size
from hermes.surfaces.tui.overlays.overlay import Overlay, overlay_keys

if TYPE_CHECKING:
    from prompt_toolkit.application import Application


class OverlayWindow:
    """The place for one overlay at a time. `fragments` turns its rows into prompt_toolkit's text."""

    def __init__(self, fragments: Callable[[Sequence[Row]], AnyFormattedText]) -> None:
        self._fragments = fragments
        self._overlay: Overlay | None = None
        self._is_ended = False
        self._pressed = asyncio.Event()
        self.window = Window(
            FormattedTextControl(
                self._text,
                focusable=True,
                show_cursor=False,
                key_bindings=overlay_keys(self._press),
            ),
            always_hide_cursor=True,
        )

    @property
    def is_open(self) -> bool:
        """Whether an overlay is shown."""
        return self._overlay is not None

    @property
    def takes_clicks(self) -> bool:
        """Whether the overlay that is shown can be clicked."""
        return self._overlay is not None and self._overlay.takes_clicks

    def click(self, row: int) -> None:
        """Passes a click to the overlay."""
        if self._overlay is not None:
            self._overlay.click(row)
            self._pressed.set()

    def scroll(self, step: int) -> None:
        """Moves in the overlay, as the wheel does."""
        self._press("up" if step < 0 else "down")

    async def run(self, app: "Application[None]", overlay: Overlay) -> None:
        """Shows an overlay until the person or `end` closes it. The live area is drawn again afterwards."""
        if self.is_open or self._is_ended:
            return
        focused = app.layout.current_window
        app.renderer.erase()
        self._overlay, app.renderer.full_screen = overlay, True
        app.layout.focus(self.window)
        try:
            await self._until_closed(app, overlay)
        finally:
            self._overlay, app.renderer.full_screen = None, False
            app.renderer.reset()
            app.layout.focus(focused)
            app.invalidate()

    def end(self) -> None:
        """Closes the overlay: the chat ends."""
        self._is_ended = True
        self._pressed.set()

    async def _until_closed(self, app: "Application[None]", overlay: Overlay) -> None:
        while not overlay.is_closed and not self._is_ended:
            self._pressed.clear()
            app.invalidate()
            if not await overlay.load():
                await self._pressed.wait()

    def _press(self, key: str) -> None:
        if self._overlay is not None:
            self._overlay.press(key)
            self._pressed.set()

    def _text(self) -> AnyFormattedText:
        if self._overlay is None:
            return []
        size = terminal_size()
        return self._fragments(self._overlay.rows(size.columns - 1, size.rows))

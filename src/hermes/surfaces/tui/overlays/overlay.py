"""What can take the whole window for a while, and the keys it gets."""

from collections.abc import Callable, Sequence
from typing import Protocol

from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys

from hermes.surfaces.terminal.styled_text import Row

NAMED_KEYS = (
    *("up", "down", "left", "right", "pageup", "pagedown", "home", "end"),
    *("enter", "escape", "backspace", "delete", "tab", "s-tab"),
    *(
        "c-c",
        "c-d",
        "c-e",
        "c-n",
        "c-o",
        "c-p",
        "c-r",
        "c-t",
        "c-u",
        "c-w",
        "c-x",
        "c-y",
    ),
)
"""The keys that `press` gets by name. A printable key is its character."""


class Overlay(Protocol):
    """A list or a text in the whole window."""

    takes_clicks: bool
    """Whether clicks and the wheel go to it. They are the terminal's otherwise, to select text."""

    @property
    def is_closed(self) -> bool:
        """Whether the person is done with it."""
        ...

    def rows(self, columns: int, height: int) -> Sequence[Row]:
        """Returns what is shown: at most `height` rows of at most `columns` cells."""
        ...

    def press(self, key: str) -> None:
        """Handles a key."""
        ...

    def click(self, row: int) -> None:
        """Handles a click on a row."""
        ...

    async def load(self) -> bool:
        """Reads what the last key made necessary. Returns whether the rows have changed."""
        ...


def overlay_keys(press: Callable[[str], object]) -> KeyBindings:
    """Returns bindings that pass every key to `press`."""
    keys = KeyBindings()
    for name in NAMED_KEYS:
        keys.add(name, eager=True)(_pressing(press, name))

    def text(event: KeyPressEvent) -> None:
        for char in event.data:
            if char.isprintable():
                press(char)

    keys.add(Keys.Any)(text)
    keys.add(Keys.BracketedPaste, eager=True)(text)
    return keys


def _pressing(
    press: Callable[[str], object], name: str
) -> Callable[[KeyPressEvent], None]:
    def handle(_: KeyPressEvent) -> None:
        press(name)

    return handle

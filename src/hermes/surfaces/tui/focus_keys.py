"""The terminal's reports that its window got or lost the focus, as keys of prompt_toolkit."""

from collections.abc import Callable

from prompt_toolkit.input.ansi_escape_sequences import ANSI_SEQUENCES
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.keys import Keys

_GOT, _LOST = Keys.F23, Keys.F24
"""No keyboard has them, and prompt_toolkit has no keys for these reports."""


def focus_keys(on_focus: Callable[[bool], object]) -> KeyBindings:
    """Bindings that pass the reports on. Without them the reports would be typed as text."""
    ANSI_SEQUENCES.update({"\x1b[I": _GOT, "\x1b[O": _LOST})
    keys = KeyBindings()
    keys.add(_GOT, eager=True)(lambda _: on_focus(True))
    keys.add(_LOST, eager=True)(lambda _: on_focus(False))
    return keys

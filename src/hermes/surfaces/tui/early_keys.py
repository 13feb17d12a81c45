"""Keys that a person types before the chat's prompt appears.

A terminal that edits its own lines turns Enter into a new line and echoes keys. A chat turns both off as soon as it
starts. Keys that were typed even earlier are read here and entered at the prompt.
"""

import os
import select
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_READ_BYTES = 65_536


class EarlyKeys:
    """The terminal's input before the prompt. `typed` is what was typed before anybody read keys."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self.typed = ""

    def begin(self) -> None:
        """Turns off echo and line editing, and reads what is there. Ctrl-C still ends the program."""
        now = termios.tcgetattr(self._fd)
        now[0] &= ~(termios.ICRNL | termios.INLCR | termios.IGNCR)
        now[3] &= ~(termios.ECHO | termios.ICANON)
        termios.tcsetattr(self._fd, termios.TCSANOW, now)
        data = b""
        if select.select([self._fd], [], [], 0)[0]:
            data = os.read(self._fd, _READ_BYTES)
        # The terminal had turned Enter into a new line, and Ctrl-D into a zero byte.
        text = data.decode("utf-8", "replace")
        self.typed = text.replace("\n", "\r").replace("\0", "\x04")

    def leave_to_screen(self) -> None:
        """Makes Ctrl-C, Ctrl-S and Ctrl-V keys like others: the screen is about to read them."""
        now = termios.tcgetattr(self._fd)
        now[0] &= ~(termios.IXON | termios.IXOFF)
        now[3] &= ~(termios.IEXTEN | termios.ISIG)
        termios.tcsetattr(self._fd, termios.TCSANOW, now)


@contextmanager
def early_keys() -> Iterator[EarlyKeys]:
    """Keeps the keys for the prompt. Restores the terminal's settings at the end."""
    fd = sys.stdin.fileno()
    before = termios.tcgetattr(fd)
    keys = EarlyKeys(fd)
    try:
        keys.begin()
        yield keys
    finally:
        with suppress(termios.error):  # the terminal is gone
            termios.tcsetattr(fd, termios.TCSADRAIN, before)

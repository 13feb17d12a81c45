"""Child terminals: runs programs on a pseudo-terminal, with Hermes in the place of the person."""

from hermes.pty.pty_process import PtyBridge, PtyStalled, PtyUnavailableError
from hermes.pty.scrollback import Scrollback
from hermes.pty.terminal import Terminal, Viewer

__all__ = [
    "PtyBridge",
    "PtyStalled",
    "PtyUnavailableError",
    "Scrollback",
    "Terminal",
    "Viewer",
]

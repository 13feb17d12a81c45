"""Child terminals: programs that believe they sit at a terminal, with a process of ours in the person's place."""

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

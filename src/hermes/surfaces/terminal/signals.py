"""Signals that end a run: Ctrl-C, SIGTERM, and SIGHUP when the terminal is closed."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from hermes.text.translation import translator

t = translator(__name__)

EXIT_INTERRUPTED = 130


def message_saved() -> str:
    """Returns what is said when a run ends before its answer."""
    return t(
        "Your message was saved. The process that runs this session will answer it."
    )


@contextmanager
def interruptible() -> Iterator[None]:
    """Makes Ctrl-C raise KeyboardInterrupt while the context is open.

    Until then `main` lets it kill the process.
    """
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def listen_for_end(end: Callable[[int], object]) -> None:
    """Calls `end` with the exit code on SIGTERM and SIGHUP, unless they are ignored (nohup)."""
    import asyncio

    terminals = [
        fd for fd in (1, 2) if os.isatty(fd)
    ]  # checked now: a lost terminal no longer looks like one

    def hang_up() -> None:
        null = os.open(os.devnull, os.O_WRONLY)
        for fd in terminals:
            os.dup2(null, fd)
        end(128 + signal.SIGHUP)

    loop = asyncio.get_running_loop()
    if signal.getsignal(signal.SIGTERM) is not signal.SIG_IGN:
        loop.add_signal_handler(signal.SIGTERM, end, 128 + signal.SIGTERM)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        loop.add_signal_handler(signal.SIGHUP, hang_up)

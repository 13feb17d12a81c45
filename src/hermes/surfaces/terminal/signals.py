"""The signals that end a run: Ctrl-C, SIGTERM, and SIGHUP, which comes when the terminal's window is closed."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

EXIT_INTERRUPTED = 130
SAVED = "Your message is saved; the process that runs this session will answer it."


@contextmanager
def interruptible() -> Iterator[None]:
    """While inside, Ctrl-C raises KeyboardInterrupt; `main` lets it end the process until a run listens for it."""
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
    """In the running loop, calls `end` with the exit code at SIGTERM and SIGHUP, unless they are ignored (nohup)."""
    import asyncio

    terminals = [
        fd for fd in (1, 2) if os.isatty(fd)
    ]  # now: of one that is gone nobody can tell what it was

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

"""`PtyBridge`: one child on one pseudo-terminal, as bytes in and bytes out. It never decodes, and never blocks longer
than its caller allows."""

import contextlib
import os
import select
import struct
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from hermes.errors import HermesError, os_reason
from hermes.pty.process_group import PtyChild
from hermes.text.translation import translator

t = translator(__name__)

try:
    import fcntl
    import termios
except ImportError:  # a platform without pseudo-terminals
    fcntl = termios = None

READ_BYTES = 64 * 1024  # the default maximum of one read
_KERNEL_READ_BYTES = 4096  # what the kernel usually returns at once
_STREAMING_BYTES = (
    _KERNEL_READ_BYTES // 2
)  # after a read of this size, more is likely to follow
_NEXT_READ_MS = 1
_MAX_WINSIZE_COLUMNS = 0xFFFF
_IUTF8 = 0o40000  # erase whole characters; the same number on Linux and macOS


class PtyUnavailableError(HermesError):
    """There are no pseudo-terminals here."""


class PtyStalled(HermesError):
    """The child does not read, so not everything was written."""


class PtyBridge:
    """A running child at a terminal. `spawn` starts it; `close` ends it and everything it started there."""

    def __init__(self, master: int, child: PtyChild) -> None:
        self._master = master
        self._child = child
        self._hung_up = False
        self._more = select.poll()
        self._more.register(master, select.POLLIN)
        self._room = memoryview(bytearray(_KERNEL_READ_BYTES))

    @classmethod
    def is_available(cls) -> bool:
        """Whether this system has pseudo-terminals."""
        try:
            master, slave = _open()
        except PtyUnavailableError:
            return False
        os.close(master)
        os.close(slave)
        return True

    @classmethod
    def spawn(
        cls,
        argv: Sequence[str],
        *,
        cwd: str | Path | None = None,
        env: Mapping[str, str] | None = None,
        cols: int = 80,
        rows: int = 24,
    ) -> Self:
        """Starts a program on its own terminal. `env` replaces the environment; None inherits it."""
        master, slave = _open()
        try:
            _set_size(master, cols, rows)
            _prefer_utf8(slave)
            child = PtyChild.start(argv, os.ttyname(slave), cwd=cwd, env=env)
            os.set_blocking(master, False)
        except BaseException:
            os.close(master)
            raise
        finally:
            os.close(slave)
        return cls(master, child)

    @property
    def pid(self) -> int:
        return self._child.pid

    @property
    def exit_code(self) -> int | None:
        """How the child ended, a signal as a negative number; None while it runs."""
        return self._child.code if self._child.poll() else None

    @property
    def hung_up(self) -> bool:
        """Whether no process has the terminal open any more. The child may still run, detached from it."""
        return self._hung_up

    def is_alive(self) -> bool:
        return not self._child.poll()

    def fileno(self) -> int:
        """For an event loop; -1 once closed."""
        return self._master

    def read(
        self, timeout: float = 0.2, *, most: int = READ_BYTES, linger: float = 0.0
    ) -> bytes | None:
        """Returns up to `most` bytes: empty if nothing came in time, None if the child has ended and all was read.

        `linger` is how long to follow a stream of output, to return more of it at once.
        """
        if self._master < 0:
            return None
        end = time.monotonic() + max(0.0, timeout)
        found = self._read_available(most, linger)
        if (
            not found
            and not self._hung_up
            and timeout > 0
            and _ready(self._master, select.POLLIN, timeout)
        ):
            found = self._read_available()
        if found:
            return found
        if self._hung_up:
            self._child.wait(max(0.0, end - time.monotonic()))
        if self._child.poll():
            return self._read_available() or None
        return b""

    def send(self, data: bytes | memoryview) -> int:
        """Writes what the terminal accepts now and returns how many bytes. A child that has ended accepts everything."""
        if self._master < 0 or self._hung_up:
            return len(data)
        try:
            return os.write(self._master, data)
        except BlockingIOError:
            return 0
        except OSError:  # EIO: the child is gone
            return len(data)

    def write(self, data: bytes, *, timeout_s: float = 5.0) -> None:
        """Writes everything. Raises PtyStalled if the child accepts nothing for `timeout_s` seconds."""
        rest = memoryview(data)
        while rest:
            taken = self.send(rest)
            rest = rest[taken:]
            if (
                rest
                and not taken
                and not _ready(self._master, select.POLLOUT, timeout_s)
            ):
                if self._child.poll():
                    return
                raise PtyStalled(
                    t.later(
                        "The program does not read: {count:,} of {total:,} bytes were not written.",
                        count=len(rest),
                        total=len(data),
                    ),
                    hint=t.later("It may be stopped; resume or end it."),
                )

    def resize(self, cols: int, rows: int) -> None:
        """Sets the terminal's size, at least 1 by 1. Never raises."""
        if self._master >= 0:
            with contextlib.suppress(OSError):
                _set_size(self._master, cols, rows)

    def close(self) -> None:
        """Ends the child and what it started, by SIGHUP, SIGTERM and SIGKILL half a second apart. Idempotent."""
        master, self._master = self._master, -1
        if master < 0:
            return
        try:
            self._child.hang_up(_foreground(master))
        finally:
            os.close(master)  # also wakes a thread that is waiting to write
            self._child.end()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _read_available(self, most: int = READ_BYTES, linger: float = 0.0) -> bytes:
        """Reads the available output. The buffer is reused, because allocating one for each read is expensive."""
        size, master, room = 0, self._master, self._room
        end = 0.0
        while size < most:
            if size == len(room):
                room = self._enlarge(most)
            try:
                got = os.readv(master, (room[size:most],))
            except BlockingIOError:
                now = time.monotonic()
                end = end or now + linger
                if (
                    size < _STREAMING_BYTES
                    or now >= end
                    or not self._more.poll(_NEXT_READ_MS)
                ):
                    break
                continue
            except OSError:  # EIO on Linux, where others report the end of the file
                got = 0
            if not got:
                self._hung_up = True
                break
            size += got
        return bytes(room[:size])

    def _enlarge(self, size: int) -> memoryview:
        """Makes the buffer larger for a stream. Most terminals never need it."""
        room = memoryview(bytearray(size))
        room[: len(self._room)] = self._room
        self._room = room
        return room


def _open() -> tuple[int, int]:
    if termios is None or not hasattr(os, "posix_spawn"):
        raise PtyUnavailableError(
            t.later("This system has no pseudo-terminals."),
            hint=t.later(
                "On Windows, run Hermes inside WSL. Otherwise use the chat on the page, or your own terminal."
            ),
        )
    try:
        return os.openpty()
    except OSError as error:
        raise PtyUnavailableError(
            t.later(
                "No terminal can be opened ({os_reason}).", os_reason=os_reason(error)
            ),
            hint=t.later("Close some terminals; in a container, mount /dev/pts."),
        ) from error


def _set_size(fd: int, cols: int, rows: int) -> None:
    assert fcntl is not None  # noqa: S101 - there is a terminal, so there is this
    assert termios is not None  # noqa: S101 - as above
    size = [min(max(1, int(number)), _MAX_WINSIZE_COLUMNS) for number in (rows, cols)]
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))


def _prefer_utf8(fd: int) -> None:
    assert termios is not None  # noqa: S101 - as above
    modes = termios.tcgetattr(fd)
    modes[0] |= _IUTF8
    termios.tcsetattr(fd, termios.TCSANOW, modes)


def _foreground(master: int) -> int:
    """The process group that has the terminal; 0 when there is none."""
    try:
        return os.tcgetpgrp(master)
    except OSError:
        return 0


def _ready(fd: int, event: int, timeout: float) -> bool:
    if fd < 0:
        return False
    poll = select.poll()
    poll.register(fd, event)
    return bool(poll.poll(timeout * 1000))

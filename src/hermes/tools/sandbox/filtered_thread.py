"""Starts programs from a thread that has confined itself: the limits of a thread also apply to what it starts.

No code of Hermes runs in a process between fork and exec.
"""

import ctypes
import os
import threading
from collections.abc import Callable

from hermes.tools.sandbox.confinement import Started
from hermes.tools.sandbox.seccomp import SyscallNumbers

_SECCOMP = {0xC000003E: 317, 0xC00000B7: 277}
_FILTER, _NEW_LISTENER = 1, 1 << 3
_NO_NEW_PRIVILEGES = 38


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p))


def start_in_thread(start: Callable[[], Started], *, stays: bool = False) -> Started:
    """Starts a program from a separate thread.

    With `stays`, the thread ends after the program: the kernel can end a program together with the thread that started
    it.
    """
    outcome: list[Started | BaseException] = []
    has_started = threading.Event()

    def run() -> None:
        try:
            started = start()
        except BaseException as error:  # noqa: BLE001 - raised again by the thread that waits
            outcome.append(error)
            has_started.set()
            return
        watched = os.pidfd_open(started.process.pid) if stays else -1
        outcome.append(started)
        has_started.set()
        if stays:
            _wait(watched)

    threading.Thread(target=run, name="hermes-confined", daemon=True).start()
    has_started.wait()
    if isinstance(outcome[0], BaseException):
        raise outcome[0]
    return outcome[0]


def load_filter(calls: SyscallNumbers, code: bytes, *, asks: bool) -> int:
    """Loads a filter for this thread; returns the file on which the kernel asks, if the filter `asks`. Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    check(libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0))
    buffer = ctypes.create_string_buffer(code, len(code))
    program = _Program(len(code) // 8, ctypes.cast(buffer, ctypes.c_void_p))
    flags = _NEW_LISTENER if asks else 0
    return check(
        libc.syscall(_SECCOMP[calls.arch], _FILTER, flags, ctypes.byref(program))
    )


def check(result: int) -> int:
    """Raises OSError if a call to the C library failed."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def _wait(process: int) -> None:
    import select

    poll = select.poll()
    poll.register(process, select.POLLIN)
    try:
        poll.poll()
    finally:
        os.close(process)

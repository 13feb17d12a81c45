"""Runs codex and ends with everything it started. A program of its own: `python -I -S leash.py LIFE PROGRAM...`

LIFE is a pipe whose other end only Hermes holds. It closes when Hermes lets go of codex, and also when Hermes is
killed. Then everything below ends: codex itself, wedged or not, and commands that made a session of their own, which
no signal to a process group reaches. Imports nothing of Hermes, so that it starts in a few milliseconds.
"""

import contextlib
import ctypes
import os
import select
import signal
import sys
import time

_PDEATHSIG, _SUBREAPER = 1, 36  # of prctl(2)
_POLITE = 0.3  # seconds between the request to end and the order
_LAST = 5.0
_NOT_STARTED = 127


def main(arguments: list[str]) -> int:
    """The exit code is that of the program, or 128 and the signal that ended it."""
    life, program = int(arguments[0]), arguments[1:]
    os.set_inheritable(life, False)
    _prctl(_SUBREAPER, 1)
    bell, ringer = os.pipe()
    os.set_blocking(ringer, False)
    signal.set_wakeup_fd(ringer, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    child = os.fork()
    if not child:
        _exec(program)
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nothing, stream)  # only codex holds the pipes now: when it ends, Hermes sees that
    code = _wait(child, life, bell)
    _end_everything()
    return code


def _exec(program: list[str]) -> None:
    try:
        os.setsid()
        _prctl(_PDEATHSIG, signal.SIGKILL)
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        os.execv(program[0], program)  # noqa: S606 - that is what it is for
    except OSError as error:
        os.write(2, f"{program[0]} can't be started: {error.strerror}\n".encode())
    finally:
        os._exit(_NOT_STARTED)


def _wait(child: int, life: int, bell: int) -> int:
    while True:
        if (code := _collect(child)) is not None:
            return code
        ready, _, _ = select.select([life, bell], (), ())
        if bell in ready:
            os.read(bell, 4096)
        if life in ready and not os.read(life, 1):
            return 128 + signal.SIGTERM


def _collect(child: int) -> int | None:
    """Takes what has ended; the program's exit code if it is among that."""
    code: int | None = None
    with contextlib.suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            if ended[0] == child:
                status = os.waitstatus_to_exitcode(ended[1])
                code = status if status >= 0 else 128 - status
    return code


def _end_everything() -> None:
    began = time.monotonic()
    order = signal.SIGTERM
    _send_all(order)
    while _any_left() and time.monotonic() - began < _LAST:
        if time.monotonic() - began > _POLITE:
            _send_all(signal.SIGKILL)
        time.sleep(0.005)


def _any_left() -> bool:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def _send_all(number: int) -> None:
    for pid in _descendants():
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)
            os.kill(pid, signal.SIGCONT)  # what is stopped would not hear the request


def _descendants() -> list[int]:
    parents: dict[int, int] = {}
    with contextlib.suppress(OSError):
        for name in os.listdir("/proc"):  # noqa: PTH208 - pathlib would have to be imported
            if name.isdecimal():
                with contextlib.suppress(OSError, ValueError, IndexError), open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123
                    parents[int(name)] = int(file.read().rpartition(b")")[2].split()[1])
    found: list[int] = []
    level = {os.getpid()}
    while level := {pid for pid, parent in parents.items() if parent in level}:
        found += level
    return found


def _prctl(option: int, value: int) -> None:
    """Where there is such a thing; elsewhere the two pipes have to do."""
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

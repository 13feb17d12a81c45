"""Runs one program and ends with everything it started. A program of its own: `python -I -S leash.py LIFE PROGRAM...`

LIFE is a pipe whose other end only Hermes holds. When it closes, because Hermes lets go of the program or was killed,
every process below is asked to end and then forced. Orphans come to this process, so neither a daemon nor a command
with a session of its own gets away. Nothing of Hermes is imported: it starts in a few milliseconds.
"""

import contextlib
import ctypes
import os
import select
import signal
import sys
import time

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_GRACE = 0.5
_GIVE_UP = 5.0
_NOT_STARTED = 127


def main(arguments: list[str]) -> int:
    """Runs the program; the result is its exit code, or 128 and the signal."""
    life, command = int(arguments[0]), arguments[1:]
    os.set_inheritable(life, False)
    _control(_PR_SET_CHILD_SUBREAPER, 1)
    woken, waker = os.pipe()
    os.set_blocking(waker, False)
    signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    told: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: told.append(number))
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    child = os.fork()
    if child == 0:
        _become(command)
    _let_go_of_streams()
    code = _watch(child, life, woken, told)
    _end_all(child)
    return code


def _become(command: list[str]) -> None:
    """Turns into the program. It dies with the leash, and its signals to its own group don't reach it."""
    try:
        os.setsid()
        _control(_PR_SET_PDEATHSIG, signal.SIGKILL)
        signal.set_wakeup_fd(-1)
        for number in (
            signal.SIGCHLD,
            signal.SIGTERM,
            signal.SIGINT,
            signal.SIGHUP,
            signal.SIGPIPE,
        ):
            signal.signal(number, signal.SIG_DFL)
        os.execvp(command[0], command)  # noqa: S606 - that is its purpose
    except OSError as error:
        os.write(2, f"{command[0]} can't be started: {error.strerror}\n".encode())
    finally:
        os._exit(_NOT_STARTED)


def _let_go_of_streams() -> None:
    """Only the program and what it starts hold the pipes: their end is seen at once."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    os.close(nothing)


def _watch(child: int, life: int, woken: int, told: list[int]) -> int:
    """Waits for the program's end, for the end of Hermes, or to be told to end."""
    while True:
        code = _reap(child)
        if code is not None:
            return code
        ready, _, _ = select.select([life, woken], (), ())
        if woken in ready:
            os.read(woken, 512)
        if told or (life in ready and not os.read(life, 1)):
            return 128 + signal.SIGTERM


def _reap(child: int) -> int | None:
    """Takes every process that has ended; the exit code of the program if it is among them."""
    found: int | None = None
    with contextlib.suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            if ended[0] == child:
                code = os.waitstatus_to_exitcode(ended[1])
                found = code if code >= 0 else 128 - code
    return found


def _end_all(child: int) -> None:
    """Asks, waits a little, forces; until there is no process below."""
    began = time.monotonic()
    _signal_all(child, signal.SIGTERM)
    while _has_children() and time.monotonic() - began < _GIVE_UP:
        if time.monotonic() - began > _GRACE:
            _signal_all(child, signal.SIGKILL)
        time.sleep(0.01)


def _has_children() -> bool:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def _signal_all(child: int, number: signal.Signals) -> None:
    """Signals every process below; where they can't be listed, the program's own group."""
    try:
        found = _below(os.getpid())
    except FileNotFoundError:
        found = [-child]
    for pid in found:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)
            os.kill(pid, signal.SIGCONT)  # what is stopped would not hear the request


def _below(top: int) -> list[int]:
    """Every process below `top`, by the kernel's list of parents."""
    children: dict[int, list[int]] = {}
    for name in filter(str.isdecimal, os.listdir("/proc")):  # noqa: PTH208 - pathlib takes longer to import
        with (
            contextlib.suppress(OSError, ValueError, IndexError),
            open(f"/proc/{name}/stat", "rb") as file,  # noqa: PTH123
        ):
            parent = int(file.read().rpartition(b")")[2].split()[1])
            children.setdefault(parent, []).append(int(name))
    found: list[int] = []
    waiting = [top]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += below
    return found


def _control(option: int, value: int) -> None:
    """prctl(2), where there is one; elsewhere the life pipe has to do."""
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

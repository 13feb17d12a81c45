"""Runs one program and ends it together with everything it started: `python -S leash.py LIFE_PIPE PROGRAM...`

Only Hermes holds the other end of LIFE_PIPE. When that end closes, because Hermes ends the program or was killed, every
process below gets SIGTERM and then SIGKILL. This process adopts orphans, so neither a daemon nor a command with its own
session escapes. It imports nothing from Hermes, so that it starts in a few milliseconds.
"""

import contextlib
import ctypes
import os
import select
import signal
import sys
import time

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_CHILD_SUBREAPER = 36
_TERMINATE_GRACE_S = 0.5
_KILL_TIMEOUT_S = 5.0
_NOT_STARTED = 127
_CHANGED_SIGNALS = (
    signal.SIGCHLD,
    signal.SIGTERM,
    signal.SIGINT,
    signal.SIGHUP,
    signal.SIGPIPE,
)


def main(arguments: list[str]) -> None:
    """Runs the program, then exits with its status."""
    life_pipe, command = int(arguments[0]), arguments[1:]
    os.set_inheritable(life_pipe, False)
    _control(_PR_SET_CHILD_SUBREAPER, 1)
    woken, waker = os.pipe()
    os.set_blocking(waker, False)
    signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    terminated: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: terminated.append(number))
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    program = os.fork()
    if program == 0:
        _become(command)
    _release_streams()
    code = _watch(program, life_pipe, woken, terminated)
    _end_all(program)
    _exit_like(code)


def _become(command: list[str]) -> None:
    """Becomes the program, in a new session, so that signals to its group don't reach the leash.

    The program dies with the leash.
    """
    try:
        os.setsid()
        _control(_PR_SET_PDEATHSIG, signal.SIGKILL)
        signal.set_wakeup_fd(-1)
        for number in _CHANGED_SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        os.execvp(command[0], command)  # noqa: S606 - that is its purpose
    except OSError as error:
        os.write(2, f"{command[0]} can't be started: {error.strerror}\n".encode())
    finally:
        os._exit(_NOT_STARTED)


def _release_streams() -> None:
    """Closes this process's standard streams, so that only the program and its children hold the pipes.

    The end of the pipes is then seen at once.
    """
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    os.close(null)


def _watch(program: int, life_pipe: int, woken: int, terminated: list[int]) -> int:
    """Waits until the program ends, Hermes ends, or SIGTERM arrives. Returns the program's return code."""
    while True:
        code = _reap(program)
        if code is not None:
            return code
        ready, _, _ = select.select([life_pipe, woken], (), ())
        if woken in ready:
            os.read(woken, 512)
        if terminated or (life_pipe in ready and not os.read(life_pipe, 1)):
            return -signal.SIGTERM


def _reap(program: int) -> int | None:
    """Reaps every process that has ended; returns the program's return code if it is among them."""
    code: int | None = None
    with contextlib.suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            if ended[0] == program:
                code = os.waitstatus_to_exitcode(ended[1])
    return code


def _end_all(program: int) -> None:
    """Sends SIGTERM, waits a little, then sends SIGKILL until no process is left below."""
    began = time.monotonic()
    _signal_all(program, signal.SIGTERM)
    while _has_children() and time.monotonic() - began < _KILL_TIMEOUT_S:
        if time.monotonic() - began > _TERMINATE_GRACE_S:
            _signal_all(program, signal.SIGKILL)
        time.sleep(0.01)


def _has_children() -> bool:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def _signal_all(program: int, number: signal.Signals) -> None:
    """Signals every process below; if they can't be listed, the program's own group."""
    try:
        found = _below(os.getpid())
    except FileNotFoundError:
        found = [-program]
    for pid in found:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)
            os.kill(pid, signal.SIGCONT)  # a stopped process would not receive it


def _below(top: int) -> list[int]:
    """Returns every descendant of `top`, from the kernel's list of parents."""
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


def _exit_like(code: int) -> None:
    """Ends with the program's exit code, or by the signal that killed it."""
    if code < 0:
        _control(_PR_SET_DUMPABLE, 0)  # the program has already dumped its core, if any
        with contextlib.suppress(OSError):  # SIGKILL has no handler to reset
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    sys.exit(code if code >= 0 else 128 - code)


def _control(option: int, value: int) -> None:
    """Calls prctl(2) if the system has it; without it, LIFE_PIPE must suffice."""
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


if __name__ == "__main__":
    main(sys.argv[1:])

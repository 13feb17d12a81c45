"""The child of a terminal and everything it starts there, started and ended together.

These are the processes of its session, its descendants, and processes with its mark in their environment: a process
that began its own session, or lost its parent, still belongs to the terminal.
"""

import contextlib
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import NamedTuple, Self

from hermes.children.helper_programs import find_program

_STEP = 0.5  # seconds between two signals
_GRAIN = 0.01  # seconds between looks, where nothing says that a process has ended
_PROC = Path("/proc")
_MARK = "HERMES_TERMINAL_MARK"
_USUAL = (
    signal.SIGHUP,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGPIPE,
    signal.SIGTERM,
    signal.SIGTSTP,
)
# A folder can't be given to posix_spawn. The shell goes there and becomes the program.
_MOVE = ("/bin/sh", "-c", 'cd -- "$0" && unset OLDPWD && exec "$@"')


class PtyChild:
    """The leader of a session of processes. `code` is how it ended."""

    def __init__(
        self, pid: int, mark: str = "", others: AbstractSet[int] = frozenset()
    ) -> None:
        """`others` are processes that were already running, so none of them belongs to the terminal."""
        self.pid = pid
        self.code: int | None = None
        self._mark = mark.encode()
        self._others = others
        self._known: set[tuple[int, int]] = set()
        self._groups = {pid}
        self._alive = _open_pid(pid)

    @classmethod
    def start(
        cls,
        argv: Sequence[str],
        terminal: str,
        *,
        cwd: str | Path | None,
        env: Mapping[str, str] | None,
    ) -> Self:
        """Starts a program whose controlling terminal is `terminal`.

        A new session's first process gets a terminal by opening it. posix_spawn does that without running any Python
        in the child, which would not be safe beside other threads.
        """
        mark, others = os.urandom(16).hex(), frozenset(_running())
        environ = {**(os.environ if env is None else env), _MARK: mark}
        program = _find(argv, environ)
        words = [program, *argv[1:]]
        if cwd is not None:
            if not Path(cwd).is_dir():
                raise NotADirectoryError(f"there is no folder {cwd}")
            words = [*_MOVE, str(cwd), program, *argv[1:]]
        pid = os.posix_spawn(
            words[0],
            words if cwd is not None else [argv[0], *argv[1:]],
            environ,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, terminal, os.O_RDWR, 0),
                (os.POSIX_SPAWN_DUP2, 0, 1),
                (os.POSIX_SPAWN_DUP2, 0, 2),
            ],
            setsid=True,
            setsigmask=(),
            setsigdef=_USUAL,
        )
        return cls(pid, f"{_MARK}={mark}", others)

    def poll(self) -> bool:
        """Whether it has ended; then it is reaped."""
        if self.code is not None:
            return True
        try:
            found, status = os.waitpid(self.pid, os.WNOHANG)
        except ChildProcessError:  # somebody else has reaped it
            found, status = self.pid, 0
        if found:
            self.code = os.waitstatus_to_exitcode(status)
            self._forget()
        return bool(found)

    def wait(self, seconds: float) -> bool:
        """Waits until it has ended; False when it has not in that time."""
        end = time.monotonic() + seconds
        while not self.poll():
            left = end - time.monotonic()
            if left <= 0:
                return False
            self._pause(left)
        return True

    def hang_up(self, foreground: int) -> None:
        """Tells everyone at the terminal that it is gone; `foreground` is the group that had it."""
        if foreground > 0:
            self._groups.add(foreground)
        self._signal(signal.SIGHUP)
        self._signal(signal.SIGCONT)  # who is stopped hears nothing

    def end(self) -> None:
        """Waits for everyone to go, and sees to it."""
        try:
            for stronger in (signal.SIGTERM, signal.SIGKILL):
                if self._wait_for_all(_STEP):
                    return
                self._signal(stronger)
            self._wait_for_all(_STEP)
        finally:
            self.poll()
            self._forget()

    def _wait_for_all(self, seconds: float) -> bool:
        end = time.monotonic() + seconds
        if not self.wait(seconds):
            return False
        while self._members():
            if time.monotonic() >= end:
                return False
            time.sleep(_GRAIN)
        return True

    def _members(self) -> list[int]:
        """The processes that belong to the terminal: in its session, descended from a member, or with the mark."""
        running = {
            pid: state
            for pid in _running()
            if pid not in self._others and (state := _state(pid))
        }
        found = {
            pid
            for pid, state in running.items()
            if state.session == self.pid or self._is_marked(pid)
        }
        found |= {
            pid for pid, state in running.items() if (pid, state.started) in self._known
        }
        while (
            more := {pid for pid, state in running.items() if state.parent in found}
            - found
        ):
            found |= more
        self._known |= {(pid, running[pid].started) for pid in found}
        return sorted(found)

    def _is_marked(self, pid: int) -> bool:
        try:
            return self._mark in (_PROC / str(pid) / "environ").read_bytes().split(
                b"\0"
            )
        except OSError:  # gone, or another user's
            return False

    def _signal(self, number: signal.Signals) -> None:
        done = set(self._members())
        if self.code is None:
            done.add(self.pid)
        for pid in done:
            _quietly(os.kill, pid, number)
        for group in self._groups if self.code is None else ():
            _quietly(os.killpg, group, number)

    def _pause(self, seconds: float) -> None:
        if self._alive < 0:
            time.sleep(min(seconds, _GRAIN))
            return
        poll = select.poll()
        poll.register(self._alive, select.POLLIN)
        poll.poll(seconds * 1000)

    def _forget(self) -> None:
        if self._alive >= 0:
            os.close(self._alive)
            self._alive = -1


def _find(argv: Sequence[str], environ: Mapping[str, str]) -> str:
    if not argv:
        raise ValueError("a terminal needs a program")
    program = find_program(argv[0], environ)
    if program is None:
        raise FileNotFoundError(f"there is no program {argv[0]}")
    return program


def _open_pid(pid: int) -> int:
    """A descriptor that becomes readable when the process ends; -1 where there is no such thing."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            return os.pidfd_open(pid)
    return -1


class _State(NamedTuple):
    parent: int
    session: int
    started: int


def _running() -> list[int]:
    """The numbers of all processes; none where they can't be listed."""
    try:
        return [int(name) for name in os.listdir(_PROC) if name.isdecimal()]  # noqa: PTH208 - numbers are all
    except OSError:
        return []


def _state(pid: int) -> _State | None:
    """What is known of a process; None when it has ended, even if nobody has reaped it yet."""
    try:
        fields = (_PROC / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    return (
        None
        if fields[0] in {b"Z", b"X"}
        else _State(int(fields[1]), int(fields[3]), int(fields[19]))
    )


def _quietly(
    send: Callable[[int, int], None], target: int, number: signal.Signals
) -> None:
    with contextlib.suppress(
        ProcessLookupError, PermissionError
    ):  # gone, or somebody else's by now
        send(target, number)

"""Starts the program on a terminal, and ends it with everything it started there.

It also ends when Hermes is killed: the kernel hangs up the terminal, and `OrphanReaper` kills what ignores that.
"""

import contextlib
import os
import select
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from hermes.children.helper_programs import find_program
from hermes.children.orphan_reaper import OrphanReaper
from hermes.children.process_tree import (
    ProcessTree,
    carries,
    new_mark,
    send_signal,
)
from hermes.text.translation import translator

t = translator(__name__)


_SIGNAL_INTERVAL_S = 0.5
_PROCESS_POLL_INTERVAL_S = 0.01  # on systems that can't report the end of a process
_MARK_VARIABLE = "HERMES_TERMINAL_MARK"
_DEFAULT_SIGNALS = (
    signal.SIGHUP,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGPIPE,
    signal.SIGTERM,
    signal.SIGTSTP,
)
# posix_spawn can neither set a limit nor change the folder, so a shell does both and then execs the program.
_SET_MARK = "ulimit -S -w {mark} 2>/dev/null || ulimit -S -x {mark} 2>/dev/null"
_SHELL_VARIABLES = ("PWD", "OLDPWD", "SHLVL")


class PtyChild:
    """The program that leads a terminal's session. `code` says how it ended."""

    def __init__(self, pid: int, mark: int, reaper: OrphanReaper) -> None:
        self.pid = pid
        self.code: int | None = None
        self._mark = mark
        self._tree = ProcessTree(pid, self._is_marked)
        self._reaper = reaper
        self._foreground = pid
        self._pidfd = _open_pidfd(pid)

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

        The first process of a new session gets a controlling terminal by opening it. posix_spawn does that without
        running Python in the child, which would not be safe beside other threads.
        """
        mark = new_mark(terminal)
        environ = {
            **(os.environ if env is None else env),
            _MARK_VARIABLE: str(mark),
        }
        program = _find(argv, environ)
        if cwd is not None and not Path(cwd).is_dir():
            raise NotADirectoryError(t.logged("there is no folder {cwd}", cwd=cwd))
        script = _start_script(mark, environ, changes_folder=cwd is not None)
        reaper = OrphanReaper()
        reaper.watch(mark)
        pid = os.posix_spawn(
            "/bin/sh",
            ["sh", "-c", script, str(cwd), program, *argv[1:]],
            environ,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, terminal, os.O_RDWR, 0),
                (os.POSIX_SPAWN_DUP2, 0, 1),
                (os.POSIX_SPAWN_DUP2, 0, 2),
            ],
            setsid=True,
            setsigmask=(),
            setsigdef=_DEFAULT_SIGNALS,
        )
        return cls(pid, mark, reaper)

    def poll(self) -> bool:
        """Reaps the program if it has ended. Returns whether it has."""
        if self.code is not None:
            return True
        try:
            ended, status = os.waitpid(self.pid, os.WNOHANG)
        except ChildProcessError:  # already reaped elsewhere
            ended, status = self.pid, 0
        if ended:
            self.code = os.waitstatus_to_exitcode(status)
            self._close_pidfd()
        return bool(ended)

    def wait(self, seconds: float) -> bool:
        """Waits until the program has ended. Returns False if it still runs after this many seconds."""
        deadline = time.monotonic() + seconds
        while not self.poll():
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            self._pause(left)
        return True

    def hang_up(self, foreground: int) -> None:
        """Sends SIGHUP to everything at the terminal; `foreground` is the process group that has it."""
        self._foreground = foreground
        # A stopped process handles SIGHUP only after SIGCONT.
        self._signal(signal.SIGHUP, signal.SIGCONT)

    def end(self) -> None:
        """Waits for everything on the terminal to end; sends SIGTERM, then SIGKILL, to what does not."""
        try:
            for number in (signal.SIGTERM, signal.SIGKILL):
                if self._wait_for_all(_SIGNAL_INTERVAL_S):
                    break
                self._signal(number)
            else:
                self._wait_for_all(_SIGNAL_INTERVAL_S)
        finally:
            self.poll()
            self._close_pidfd()
            self._reaper.forget(self._mark)
            self._reaper.close()

    def _wait_for_all(self, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        if not self.wait(seconds):
            return False
        while self._tree.members(with_child=False):
            if time.monotonic() >= deadline:
                return False
            time.sleep(_PROCESS_POLL_INTERVAL_S)
        return True

    def _is_marked(self, pid: int) -> bool:
        return carries(pid, self._mark, _MARK_VARIABLE)

    def _signal(self, *numbers: signal.Signals) -> None:
        running = self.code is None
        receivers = self._tree.members(with_child=running)
        if running:
            groups = {self.pid, self._foreground} - {0}
            receivers += [-group for group in groups]
        for number in numbers:
            send_signal(receivers, number)

    def _pause(self, seconds: float) -> None:
        if self._pidfd < 0:
            time.sleep(min(seconds, _PROCESS_POLL_INTERVAL_S))
            return
        poll = select.poll()
        poll.register(self._pidfd, select.POLLIN)
        poll.poll(seconds * 1000)

    def _close_pidfd(self) -> None:
        if self._pidfd >= 0:
            os.close(self._pidfd)
            self._pidfd = -1


def _start_script(
    mark: int, environ: Mapping[str, str], *, changes_folder: bool
) -> str:
    """The shell script that marks its process, changes to the folder `$0` and execs the program `$@`."""
    set_mark = _SET_MARK.format(mark=mark)
    if changes_folder:
        return f'{set_mark}; cd -- "$0" && unset OLDPWD && exec "$@"'  # not translated
    added = " ".join(name for name in _SHELL_VARIABLES if name not in environ)
    return f'{set_mark}; unset {added or "_"}; exec "$@"'


def _find(argv: Sequence[str], environ: Mapping[str, str]) -> str:
    if not argv:
        raise ValueError(t.logged("a terminal needs a program"))
    program = find_program(argv[0], environ)
    if program is None:
        raise FileNotFoundError(t.logged("there is no program {argv}", argv=argv[0]))
    return program


def _open_pidfd(pid: int) -> int:
    """Opens a descriptor that becomes readable when the process ends; -1 where the system has none."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            return os.pidfd_open(pid)
    return -1

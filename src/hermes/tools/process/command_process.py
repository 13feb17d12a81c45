"""One command and everything it starts: run in the sandbox in a separate session, watched, and ended together."""

import asyncio
import contextlib
import fcntl
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from hermes.children.process_tree import (
    MARK_VARIABLE,
    ProcessTree,
    carries,
    kill_all,
    new_mark,
    process_name,
    read_state,
    send_signal,
)
from hermes.tools.process.resource_limits import ResourceLimits, ResourceWatch, tasks
from hermes.tools.sandbox.confinement import ConfinedLaunch, Fence, Sandbox
from hermes.tools.sandbox.seccomp_notify import answer_notices

_PIPE_BYTES = 1024 * 1024
_READ_BYTES = 256 * 1024
_REPORT_BYTES = 64 * 1024
_RESOURCE_CHECK_INTERVAL_S = 0.1
_KILLED_TIMEOUT_S = 0.2
_SANDBOX_PROGRAM = "bwrap"
_MAX_REPORTED_PROCESSES = 60
"""How many processes a command reports at its end. The report must fit into a pipe that nobody reads yet."""


class CommandOrder(msgspec.Struct, frozen=True):
    """A command, and where and how to run it."""

    command: str
    shell: Path
    folder: Path
    environment: Mapping[str, str]
    session: str = ""
    takes_input: bool = False
    limits: ResourceLimits = ResourceLimits()


class ExitReport(NamedTuple):
    """What a command reported when it ended by itself: its last folder and what it left running."""

    folder: Path | None
    left_running: list[str]


class CommandProcess:
    """A running command. `stop` must be awaited, whatever happens."""

    def __init__(self, order: CommandOrder, sandbox: Sandbox, fence: Fence) -> None:
        self.mark = new_mark(order.session)
        self.problem = ""
        """Why the command had to be stopped: it exceeded a limit."""
        self.output, output = os.pipe()
        self._report_pipe, report = os.pipe()
        self._report = b""
        self.input, stdin = -1, subprocess.DEVNULL
        if order.takes_input:
            stdin, self.input = os.pipe()
        self._stop_answering = lambda: None
        confined = fence.reach != "machine" and sandbox.kind != "none"
        own_pids = confined and sandbox.kind == "bubblewrap"
        script = start_script(
            order, report, self.mark, own_pids=own_pids, confined=confined
        )
        try:
            launch = ConfinedLaunch(
                [str(order.shell), "-c", script, str(order.shell), order.command],
                order.folder,
                {**order.environment, MARK_VARIABLE: str(self.mark)},
                stdin,
                output,
                (report,),
                supervised=True,
            )
            started = sandbox.start(launch, fence)
            self._stop_answering = answer_notices(started, fence, self._is_marked)
        except BaseException:
            self.close()
            raise
        finally:
            for handle in (output, report, *((stdin,) if order.takes_input else ())):
                os.close(handle)
        self._process = started.process
        self.ends_with_hermes = started.ends_with_hermes
        self.pid = self._process.pid
        self._tree = ProcessTree(self.pid, self._is_marked)
        folders = (fence.temporary, fence.workspace)
        self._watch = ResourceWatch(
            order.limits, fence.temporary, folders, lambda: len(self._members())
        )
        for handle in self._pipes():
            os.set_blocking(handle, False)
        # A larger pipe is faster, nothing more.
        with contextlib.suppress(OSError, AttributeError):
            fcntl.fcntl(self.output, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)

    def _is_marked(self, pid: int) -> bool:
        return carries(pid, self.mark)

    async def began(self) -> bool:
        """Waits until the command itself runs. Returns False if the sandbox could not be created and nothing was run."""
        loop = asyncio.get_running_loop()
        reported = asyncio.Event()
        loop.add_reader(self._report_pipe, reported.set)
        try:
            await reported.wait()
        finally:
            loop.remove_reader(self._report_pipe)
        self._report = os.read(self._report_pipe, _REPORT_BYTES)
        return bool(self._report)

    async def wait(
        self, seconds: float | None, on_output: Callable[[bytes], None]
    ) -> int | None:
        """Passes on output until the command itself ends.

        Returns its exit code, or None if it ran too long or exceeded a limit, which `problem` names.
        """
        loop = asyncio.get_running_loop()

        def read() -> None:
            if self._read(on_output) == 0:
                loop.remove_reader(self.output)

        loop.add_reader(self.output, read)
        try:
            async with asyncio.timeout(seconds):
                await self._exit()
        except TimeoutError:
            return None
        finally:
            loop.remove_reader(self.output)
        return None if self.problem else self._process.wait()

    def drain(self, on_output: Callable[[bytes], None]) -> None:
        """Passes on what is still in the pipe."""
        for _ in range(2 * _PIPE_BYTES // _READ_BYTES + 64):
            if not self._read(on_output):
                return

    def exit_report(self) -> ExitReport:
        """Returns what the command reported when it ended."""
        with contextlib.suppress(BlockingIOError):
            self._report += os.read(self._report_pipe, _REPORT_BYTES)
        lines = self._report.split(b"\n")[1:]  # the first line says that it began
        folder = os.fsdecode(lines[0]) if lines else ""
        last_folder = Path(folder) if folder.startswith("/") else None
        return ExitReport(last_folder, list(_left_running(lines[1:])))

    async def stop(self, grace: float) -> list[str]:
        """Ends everything that still runs, by SIGTERM and after `grace` seconds by SIGKILL. Returns the names."""
        left = self._terminable()
        names = [process_name(pid) for pid in left]
        try:
            if left and not self.problem:
                send_signal(left, signal.SIGTERM)
                send_signal(left, signal.SIGCONT)
                deadline = time.monotonic() + grace
                while self._terminable() and time.monotonic() < deadline:  # noqa: ASYNC110 - only the kernel knows
                    await asyncio.sleep(0.01)
        finally:
            self._kill()
        return names

    def close(self) -> None:
        """Closes the pipes."""
        self._stop_answering()
        for handle in self._pipes():
            os.close(handle)
        self.input = -1

    def _pipes(self) -> list[int]:
        pipes = (self.output, self._report_pipe, self.input)
        return [handle for handle in pipes if handle >= 0]

    async def _exit(self) -> None:
        """Waits until the command has ended or must be stopped."""
        try:
            pidfd = os.pidfd_open(self.pid)
        except (AttributeError, OSError):  # not on this system
            await asyncio.to_thread(self._process.wait)
            return
        loop = asyncio.get_running_loop()
        exited = asyncio.Event()
        loop.add_reader(pidfd, exited.set)
        try:
            while not exited.is_set() and not self.problem:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(exited.wait(), _RESOURCE_CHECK_INTERVAL_S)
                    return
                self.problem = self._watch.problem()
        finally:
            loop.remove_reader(pidfd)
            os.close(pidfd)

    def _read(self, on_output: Callable[[bytes], None]) -> int | None:
        """Reads one piece and returns its size: 0 at the end, None if there is nothing now."""
        try:
            chunk = os.read(self.output, _READ_BYTES)
        except BlockingIOError:
            return None
        if chunk:
            on_output(chunk)
        return len(chunk)

    def _kill(self) -> None:
        if self._process.poll() is None:
            self._tree.kill_group()
        kill_all(self._killable)
        # Nothing can end a process that is stuck in the kernel.
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=_KILLED_TIMEOUT_S)

    def _killable(self) -> list[int]:
        """The processes to kill and wait for. The sandbox program takes a while to end, but runs nothing more."""
        members = self._members()
        if not self.ends_with_hermes:
            return members
        return [pid for pid in members if process_name(pid) != _SANDBOX_PROGRAM]

    def _terminable(self) -> list[int]:
        """The processes that get SIGTERM: not the sandbox program's, which would end all the others with them."""
        if not self.ends_with_hermes:
            return self._members()
        if self._process.poll() is not None:
            return []  # the kernel is ending them already
        return [
            pid
            for pid in self._members()
            if pid != self.pid
            and (state := read_state(pid)) is not None
            and state.parent != self.pid
        ]

    def _members(self) -> list[int]:
        return self._tree.members(with_child=self._process.poll() is None)


def start_script(
    order: CommandOrder, report: int, mark: int, *, own_pids: bool, confined: bool
) -> str:
    """The shell script that runs the command, its first argument.

    It sets the mark and the limits, and writes to `report` when the command begins and ends. With `own_pids` the
    command has a process namespace: every process it can see is its own, and no other task counts.
    """
    is_bash = order.shell.name == "bash"
    # A confined command can't change the hard limit; a Hermes that runs inside may set a mark of its own.
    soft = "" if confined else "-S "
    limits = f"ulimit {soft}-{'x' if is_bash else 'w'} {mark} 2>/dev/null"
    if confined and os.geteuid() != 0:  # the kernel does not count root's processes
        max_processes = order.limits.processes + (0 if own_pids else tasks())
        limits += f"; ulimit -{'u' if is_bash else 'p'} {max_processes} 2>/dev/null"
    list_processes = (
        "echo $$; n=0; for s in /proc/[0-9]*/stat; do n=$((n+1));"
        f" [ $n -gt {_MAX_REPORTED_PROCESSES} ] && break; read -r l <$s && echo $l; done; "
    )
    is_main_shell = '[ "${BASHPID-$$}" = $$ ]'  # not a part of it in the background
    at_exit = f"{is_main_shell} && {{ pwd -P; {list_processes if own_pids else ''}}}"
    trap = f"trap '{{ {at_exit}; }} 2>/dev/null >/dev/fd/{report}' EXIT"
    return f'{limits}; echo >/dev/fd/{report}; {trap}; eval "shift; $1"'


def _left_running(lines: list[bytes]) -> Iterator[str]:
    """The names of the processes in a report: the shell's own number, then one line of /proc/PID/stat for each."""
    shell = lines[0] if lines else b""
    for line in lines[1:]:
        before, _, after = line.rpartition(b")")
        number, _, name = before.partition(b" (")
        has_ended = after.split()[:1] in ([b"Z"], [b"X"])
        if number and number not in (b"1", shell) and not has_ended:
            yield os.fsdecode(name)

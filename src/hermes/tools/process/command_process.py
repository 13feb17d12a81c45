"""One command with everything it starts: begun inside the sandbox in a session of its own, watched, and ended whole."""

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

from hermes.tools.process.process_marks import (
    MARK_NAME,
    PROC,
    kill_all,
    marks_of,
    name_of,
    new_mark,
    processes,
    send,
    state_of,
)
from hermes.tools.process.resource_limits import ResourceLimits, ResourceWatch, tasks
from hermes.tools.sandbox.attending import attend
from hermes.tools.sandbox.confinement import ConfinedLaunch, Fence, Sandbox, Started

_PIPE = 1024 * 1024
_CHUNK = 256 * 1024
_TICK = 0.1
"""Seconds between looks at what a running command uses."""
_LONG = 10.0
"""Seconds after which process numbers may have started over, so that all processes are looked at."""
_MAKER = "bwrap"
_TOLD = 60
"""How many processes a command tells of at its end: what it tells must fit into a pipe nobody reads yet."""


class Order(msgspec.Struct, frozen=True):
    """A command, where and how to run it."""

    command: str
    shell: Path
    folder: Path
    environment: Mapping[str, str]
    session: str = ""
    takes_input: bool = False
    limits: ResourceLimits = ResourceLimits()


class ExitReport(NamedTuple):
    """What a command told of itself when it ended by itself."""

    folder: Path | None
    left: list[str]


class CommandProcess:
    """A running command. `stop` must be awaited, whatever happens."""

    def __init__(self, order: Order, sandbox: Sandbox, fence: Fence) -> None:
        self._began = time.monotonic()
        self.mark = new_mark(order.session)
        self.output, output = os.pipe()
        self._told_pipe, told = os.pipe()
        self.input, stdin = -1, subprocess.DEVNULL
        if order.takes_input:
            stdin, self.input = os.pipe()
        confined = fence.reach != "machine" and sandbox.kind != "none"
        alone = confined and sandbox.kind == "bubblewrap"
        start = script(order, told, self.mark, alone=alone, confined=confined)
        self._said = b""
        try:
            launch = ConfinedLaunch(
                [str(order.shell), "-c", start, str(order.shell), order.command],
                order.folder,
                {**order.environment, MARK_NAME: str(self.mark)},
                stdin,
                output,
                (told,),
            )
            self._started = self._start(sandbox, launch, fence)
        except BaseException:
            self.close()
            raise
        finally:
            for handle in (output, told, *((stdin,) if order.takes_input else ())):
                os.close(handle)
        self._process = self._started.process
        self.pid = self._process.pid
        self.problem = ""
        folders = (fence.temporary, fence.workspace)
        self._watch = ResourceWatch(
            order.limits, fence.temporary, folders, lambda: len(self._members())
        )
        for handle in (
            self.output,
            self._told_pipe,
            *((self.input,) if order.takes_input else ()),
        ):
            os.set_blocking(handle, False)
        with contextlib.suppress(
            OSError, AttributeError
        ):  # a larger pipe is only faster
            fcntl.fcntl(self.output, fcntl.F_SETPIPE_SZ, _PIPE)

    @property
    def dies_alone(self) -> bool:
        """Whether the kernel ends everything when Hermes ends."""
        return self._started.dies_alone

    def _start(self, sandbox: Sandbox, launch: ConfinedLaunch, fence: Fence) -> Started:
        started = sandbox.start(launch, fence)
        self._stop_attending = attend(
            started, fence, lambda pid: self.mark in marks_of(pid)
        )
        return started

    async def began(self) -> bool:
        """Waits until the command itself runs; False when the sandbox could not be made, and nothing was run."""
        loop = asyncio.get_running_loop()
        heard = asyncio.Event()
        loop.add_reader(self._told_pipe, heard.set)
        try:
            await heard.wait()
        finally:
            loop.remove_reader(self._told_pipe)
        self._said = os.read(self._told_pipe, 65536)
        return bool(self._said)

    async def wait(
        self, seconds: float | None, on_output: Callable[[bytes], None]
    ) -> int | None:
        """Waits for the command itself and hands on its output; returns its exit code, or None when time is up or it
        used too much, which `problem` tells."""
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
        """Hands on what is still in the pipe."""
        for _ in range(2 * _PIPE // _CHUNK + 64):
            if not self._read(on_output):
                return

    def told(self) -> ExitReport:
        """What the command said when it ended: the folder it was in, and what it left running."""
        with contextlib.suppress(BlockingIOError):
            self._said += os.read(self._told_pipe, 65536)
        lines = self._said.split(b"\n")[1:]  # the first says that it began
        folder = os.fsdecode(lines[0]) if lines else ""
        return ExitReport(
            Path(folder) if folder.startswith("/") else None, list(_left(lines[1:]))
        )

    async def stop(self, grace: float) -> list[str]:
        """Ends everything that still runs: asked, then forced after `grace` seconds. Returns the names of what ran."""
        left = self._askable()
        names = [name_of(pid) for pid in left]
        try:
            if left and not self.problem:
                send(left, signal.SIGTERM)
                send(left, signal.SIGCONT)
                deadline = time.monotonic() + grace
                while self._askable() and time.monotonic() < deadline:  # noqa: ASYNC110 - only the kernel knows
                    await asyncio.sleep(0.01)
        finally:
            self._kill()
        return names

    def close(self) -> None:
        """Lets go of the pipes."""
        stop_attending = getattr(self, "_stop_attending", None)
        if stop_attending is not None:
            stop_attending()
        for handle in (self.output, self._told_pipe, self.input):
            if handle >= 0:
                os.close(handle)
        self.input = -1

    async def _exit(self) -> None:
        """Waits until the command has exited or must not go on."""
        try:
            handle = os.pidfd_open(self.pid)
        except (AttributeError, OSError):  # not on this system
            await asyncio.to_thread(self._process.wait)
            return
        loop = asyncio.get_running_loop()
        exited = asyncio.Event()
        loop.add_reader(handle, exited.set)
        try:
            while not exited.is_set() and not self.problem:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(exited.wait(), _TICK)
                    return
                self.problem = self._watch.problem()
        finally:
            loop.remove_reader(handle)
            os.close(handle)

    def _read(self, on_output: Callable[[bytes], None]) -> int | None:
        """Takes one piece and returns its size: 0 at the end, None if there is nothing now."""
        try:
            chunk = os.read(self.output, _CHUNK)
        except BlockingIOError:
            return None
        if chunk:
            on_output(chunk)
        return len(chunk)

    def _kill(self) -> None:
        if self._started.dies_alone:
            send([self.pid] if self._process.poll() is None else [], signal.SIGKILL)
        kill_all(self._awaited)
        with contextlib.suppress(
            subprocess.TimeoutExpired
        ):  # stuck in the kernel: nothing can end it
            self._process.wait(timeout=0.2)

    def _awaited(self) -> list[int]:
        """The processes to wait for. What makes the sandbox takes its time to end, and does nothing any more."""
        members = self._members()
        return (
            [pid for pid in members if name_of(pid) != _MAKER]
            if self._started.dies_alone
            else members
        )

    def _askable(self) -> list[int]:
        """The processes that can be asked to end: not those that make the sandbox, which would take all with them."""
        if self._started.dies_alone and self._process.poll() is not None:
            return []  # the kernel is ending them already
        members = self._members()
        if not self._started.dies_alone:
            return members
        makers = {
            self.pid,
            *(pid for pid in members if state_of(pid)[1:2] == [str(self.pid).encode()]),
        }
        return [pid for pid in members if pid not in makers]

    def _members(self) -> list[int]:
        """The processes of this command that still run."""
        running = self._process.poll() is None
        own = [self.pid] if running else []
        if not PROC.joinpath("self").exists():
            return own or self._group()
        return own + [pid for pid in self._candidates() if self._is_member(pid)]

    def _group(self) -> list[int]:
        """Without /proc only the process group can be seen."""
        try:
            os.killpg(self.pid, 0)
        except OSError:
            return []
        return [-self.pid]

    def _candidates(self) -> Iterator[int]:
        """Processes that can have been started by this one; few, as their numbers are higher."""
        last = int((PROC / "loadavg").read_bytes().rsplit(None, 1)[1])
        everything = last < self.pid or time.monotonic() - self._began > _LONG
        if last == self.pid and not everything:
            return
        for pid in processes():
            if (everything or pid > self.pid) and pid != self.pid:
                yield pid

    def _is_member(self, pid: int) -> bool:
        fields = state_of(pid)
        if not fields or fields[0] in (b"Z", b"X"):
            return False
        if str(self.pid).encode() in fields[2:4]:  # process group, session
            return True
        return self.mark in marks_of(pid)


def script(order: Order, told: int, mark: int, *, alone: bool, confined: bool) -> str:
    """What runs the command, its first argument, after it was marked and bounded: it tells that it begins, and about
    its end. `alone` in a process namespace, everything it can see is its own; else other tasks count too."""
    bash = order.shell.name == "bash"
    kept = (
        "" if confined else "-S "
    )  # confined, it is kept for good; else a Hermes within can set its own
    limits = f"ulimit {kept}-{'x' if bash else 'w'} {mark} 2>/dev/null"
    if confined and os.geteuid() != 0:  # the kernel does not count root's
        most = order.limits.processes + (0 if alone else tasks())
        limits += f"; ulimit -{'u' if bash else 'p'} {most} 2>/dev/null"
    left = f"n=0; for s in /proc/[0-9]*/stat; do n=$((n+1)); [ $n -gt {_TOLD} ] && break; read -r l <$s && echo $l; done"
    own = '[ "${BASHPID-$$}" = $$ ]'  # not from a part of it in the background
    tell = f"{own} && {{ pwd -P; {f'echo $$; {left}; ' if alone else ''}}}"
    return f"{limits}; echo >/dev/fd/{told}; trap '{{ {tell}; }} 2>/dev/null >/dev/fd/{told}' EXIT; eval \"shift; $1\""


def _left(lines: list[bytes]) -> Iterator[str]:
    """The names of processes a command left running, from what it told: its own number, then one line for each."""
    shell = lines[0] if lines else b""
    for line in lines[1:]:
        before, _, after = line.rpartition(b")")
        number, _, name = before.partition(b" (")
        if (
            number
            and number not in (b"1", shell)
            and after.split()[:1] not in ([b"Z"], [b"X"])
        ):
            yield os.fsdecode(name)

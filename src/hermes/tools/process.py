"""One command with everything it starts: begun in a session of its own, watched, and ended as a whole.

Its processes carry two marks that they hand on when they fork: a variable of the environment, and an unused resource
limit, which also survives a cleared environment, closed files, a new session and a lost parent.
"""

import asyncio
import contextlib
import fcntl
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

_PROC = Path("/proc")
_PIPE = 1024 * 1024
_CHUNK = 256 * 1024
_MARK_NAME = "HERMES_CALL"
_LONG = 10.0
"""Seconds after which process numbers may have started over, so that all processes are looked at."""
_KILL_ROUNDS = 50


class Job:
    """A running command. `stop` must be awaited, whatever happens."""

    def __init__(self, command: str, shell: Path, folder: Path, environment: Mapping[str, str]) -> None:
        self._began = time.monotonic()
        self._mark = str((1 << 40) + int.from_bytes(os.urandom(4), "big"))
        self.output, output = os.pipe()
        self._folder_pipe, folder_pipe = os.pipe()
        try:
            self._process = subprocess.Popen(
                [str(shell), "-c", self._script(command, shell, folder_pipe)],
                cwd=folder,
                env={**environment, _MARK_NAME: self._mark},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                pass_fds=(folder_pipe,),
                start_new_session=True,
            )
        except BaseException:
            os.close(self.output)
            os.close(self._folder_pipe)
            raise
        finally:
            os.close(output)
            os.close(folder_pipe)
        self.pid = self._process.pid
        os.set_blocking(self.output, False)
        os.set_blocking(self._folder_pipe, False)
        with contextlib.suppress(OSError, AttributeError):  # a larger pipe is only faster
            fcntl.fcntl(self.output, fcntl.F_SETPIPE_SZ, _PIPE)

    def _script(self, command: str, shell: Path, folder_pipe: int) -> str:
        """The command, after what marks it and what tells its last folder."""
        limit = f"ulimit -S -{'x' if shell.name == 'bash' else 'w'} {self._mark} 2>/dev/null"
        tell = f'[ "${{BASHPID-$$}}" = $$ ] && pwd -P >/dev/fd/{folder_pipe}'  # not from a part of it in the background
        return f"{limit}; trap '{tell}' EXIT; {command}"

    async def wait(self, seconds: float, on_output: Callable[[bytes], None]) -> int | None:
        """Waits for the command itself and hands on its output; returns its exit code, or None when time is up."""
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
        return self._process.wait()

    def drain(self, on_output: Callable[[bytes], None]) -> None:
        """Hands on what is still in the pipe."""
        for _ in range(2 * _PIPE // _CHUNK + 64):
            if not self._read(on_output):
                return

    def last_folder(self) -> Path | None:
        """The folder the command was in at its end, if it told."""
        with contextlib.suppress(BlockingIOError):
            told = os.read(self._folder_pipe, 65536).decode(errors="surrogateescape").rstrip("\n")
            if told.startswith("/"):
                return Path(told)
        return None

    async def stop(self, grace: float) -> list[str]:
        """Ends everything that still runs: asked, then forced after `grace` seconds. Returns the names of what ran."""
        left = self._members()
        names = [_name(pid) for pid in left]
        try:
            if left:
                _signal(left, signal.SIGTERM)
                _signal(left, signal.SIGCONT)
                deadline = time.monotonic() + grace
                while self._members() and time.monotonic() < deadline:  # noqa: ASYNC110 - only the kernel knows
                    await asyncio.sleep(0.01)
        finally:
            self._kill()
        return names

    def close(self) -> None:
        """Lets go of the pipes."""
        os.close(self.output)
        os.close(self._folder_pipe)

    async def _exit(self) -> None:
        """Waits until the command has exited."""
        try:
            handle = os.pidfd_open(self.pid)
        except (AttributeError, OSError):  # not on this system
            await asyncio.to_thread(self._process.wait)
            return
        loop = asyncio.get_running_loop()
        exited = asyncio.Event()
        loop.add_reader(handle, exited.set)
        try:
            await exited.wait()
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
        for _ in range(_KILL_ROUNDS):
            left = self._members()
            if not left:
                break
            _signal(left, signal.SIGKILL)
            time.sleep(0.002)
        with contextlib.suppress(subprocess.TimeoutExpired):  # stuck in the kernel: nothing can end it
            self._process.wait(timeout=0.2)

    def _members(self) -> list[int]:
        """The processes of this command that still run."""
        running = self._process.poll() is None
        own = [self.pid] if running else []
        if not _PROC.joinpath("self").exists():
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
        last = int((_PROC / "loadavg").read_bytes().rsplit(None, 1)[1])
        everything = last < self.pid or time.monotonic() - self._began > _LONG
        if last == self.pid and not everything:
            return
        for name in os.listdir(_PROC):  # noqa: PTH208 - numbers are all that is wanted
            if name.isdigit() and (everything or int(name) > self.pid) and int(name) != self.pid:
                yield int(name)

    def _is_member(self, pid: int) -> bool:
        folder = _PROC / str(pid)
        try:
            fields = (folder / "stat").read_bytes().rpartition(b")")[2].split()
            if fields[0] in (b"Z", b"X"):
                return False
            if str(self.pid).encode() in fields[2:4]:  # process group, session
                return True
            mark = self._mark.encode()
            return mark in (folder / "limits").read_bytes() or mark in (folder / "environ").read_bytes()
        except OSError:  # gone, or another user's
            return False


def _signal(pids: Sequence[int], number: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def _name(pid: int) -> str:
    try:
        return (_PROC / str(pid) / "comm").read_text(errors="replace").strip()
    except OSError:
        return str(pid)

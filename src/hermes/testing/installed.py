"""Runs the installed `hermes` as a process: to its end, or on a terminal, as a person would use it."""

import asyncio
import fcntl
import os
import pty
import re
import signal
import struct
import sys
import termios
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import msgspec

from hermes.testing.emulator import Emulator

_WAIT_TIMEOUT_S = 90.0  # seconds for anything to happen on a busy machine
_ESCAPES = re.compile(
    rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_=>])"
)


class FinishedRun(NamedTuple):
    """The result of a finished run."""

    code: int
    out: str
    err: str

    @property
    def events(self) -> list[dict[str, Any]]:
        """The events printed by `--json`."""
        return [msgspec.json.decode(line) for line in self.out.splitlines()]


class InstalledHermes:
    """Runs `hermes` with its own home and working directory, and a model service at `url`."""

    def __init__(self, folder: Path, url: str = "") -> None:
        self.home = folder / "home"
        self.work = folder / "work"
        self.work.mkdir(parents=True, exist_ok=True)
        self._url = url

    def environ(self, extra: Mapping[str, str] | None = None) -> dict[str, str]:
        """Returns the environment of a run, without the caller's Hermes settings or keys."""
        kept = {
            name: os.environ[name]
            for name in ("PATH", "HOME", "LANG", "PYTHONPYCACHEPREFIX")
            if name in os.environ
        }
        service = (
            {"OPENAI_BASE_URL": self._url, "OPENAI_API_KEY": "sk-test-0000000000000000"}
            if self._url
            else {}
        )
        return {
            "LANG": "C.UTF-8",
            **kept,
            "HERMES_HOME": str(self.home),
            **service,
            **(extra or {}),
        }

    async def start(
        self, *arguments: str, **environ: str
    ) -> asyncio.subprocess.Process:
        """Starts a process with pipes. The caller must end it."""
        pipe = asyncio.subprocess.PIPE
        return await asyncio.create_subprocess_exec(
            executable(), *arguments, env=self.environ(environ), cwd=self.work, stdin=pipe, stdout=pipe, stderr=pipe
        )  # fmt: skip

    async def run(
        self, *arguments: str, stdin: str | bytes = "", **environ: str
    ) -> FinishedRun:
        """Runs to the end. A run that takes too long is killed and fails the test."""
        process = await self.start(*arguments, **environ)
        content = stdin.encode() if isinstance(stdin, str) else stdin
        try:
            out, err = await asyncio.wait_for(
                process.communicate(content), _WAIT_TIMEOUT_S
            )
        except TimeoutError:
            process.kill()
            await process.wait()
            raise
        return FinishedRun(process.returncode or 0, out.decode(), err.decode())

    def terminal(
        self, *arguments: str, size: tuple[int, int] = (80, 24), **environ: str
    ) -> "TerminalProcess":
        """Returns a `hermes` process on a terminal."""
        argv = [str(executable()), *arguments]
        return TerminalProcess(
            argv, self.environ({"TERM": "xterm-256color", **environ}), self.work, size
        )


class TerminalProcess:
    """A process on a pseudo-terminal. `screen` is everything it has written, without terminal codes."""

    def __init__(
        self,
        argv: list[str],
        environ: Mapping[str, str],
        cwd: Path,
        size: tuple[int, int],
    ) -> None:
        self._argv = argv
        self._environ = dict(environ)
        self._cwd = cwd
        self._size = size
        self._written = b""
        self._emulator = Emulator(*size)
        self._changed = asyncio.Event()
        self._fd = -1
        self._process: asyncio.subprocess.Process | None = None

    async def __aenter__(self) -> Self:
        self._fd, theirs = pty.openpty()
        fcntl.ioctl(
            theirs,
            termios.TIOCSWINSZ,
            struct.pack("HHHH", self._size[1], self._size[0], 0, 0),
        )
        os.set_blocking(self._fd, False)
        self._process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", _LEAD, *self._argv,
            env=self._environ, cwd=self._cwd, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
        )  # fmt: skip
        os.close(theirs)
        asyncio.get_running_loop().add_reader(self._fd, self._read)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        asyncio.get_running_loop().remove_reader(self._fd)
        if self._process is not None and self._process.returncode is None:
            self._process.send_signal(signal.SIGKILL)
            await self._process.wait()
        os.close(self._fd)

    @property
    def pid(self) -> int:
        """The id of the process on the terminal."""
        assert self._process is not None, "it was not started"  # noqa: S101
        return self._process.pid

    @property
    def raw(self) -> bytes:
        """Every byte that the process wrote."""
        return self._written

    @property
    def screen(self) -> str:
        """Everything that the process wrote, as text."""
        return _ESCAPES.sub(b"", self._written).decode("utf-8", "replace")

    @property
    def shown(self) -> str:
        """What a person sees now, including the scrollback."""
        return self._emulator.text

    @property
    def coloured(self) -> str:
        """What a person sees now, with colour codes."""
        return self._emulator.coloured

    def resize(self, columns: int, rows: int) -> None:
        """Resizes the window and notifies the process."""
        self._emulator.resize(columns, rows)
        fcntl.ioctl(
            self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0)
        )

    def vanish(self) -> None:
        """Closes the terminal, as when its window is closed or its connection is lost."""
        asyncio.get_running_loop().remove_reader(self._fd)
        os.close(self._fd)
        self._fd = os.open(os.devnull, os.O_RDWR)

    def kill(self) -> None:
        """Kills the process, as a crash would."""
        assert self._process is not None, "the terminal was not entered"  # noqa: S101
        self._process.kill()

    async def changed(self) -> None:
        """Waits until the process has written more."""
        self._changed.clear()
        await asyncio.wait_for(self._changed.wait(), _WAIT_TIMEOUT_S)

    async def until(self, holds: Callable[[str], bool]) -> str:
        """Waits until a condition holds for what a person sees, and returns that text."""

        async def look() -> None:
            while not holds(self.shown):
                self._changed.clear()
                await self._changed.wait()

        try:
            await asyncio.wait_for(look(), _WAIT_TIMEOUT_S)
        except TimeoutError as error:
            raise AssertionError(f"it never held of:\n{self.shown}") from error
        return self.shown

    def type(self, text: str) -> None:
        """Presses keys."""
        os.write(self._fd, text.encode())

    def click(self, text: str) -> None:
        """Clicks on the first row of the window that shows the text."""
        rows = self._emulator.window
        row = next(number for number, line in enumerate(rows, 1) if text in line)
        self.type(f"\x1b[<0;3;{row}M\x1b[<0;3;{row}m")

    async def sees(self, text: str, *, times: int = 1) -> str:
        """Waits until the text has been written that many times. Returns the screen.

        Whitespace is ignored, because a screen that is redrawn in place may write, skip or omit it.
        """
        wanted = "".join(text.split())

        async def look() -> None:
            while "".join(self.screen.split()).count(wanted) < times:
                self._changed.clear()
                await self._changed.wait()

        try:
            await asyncio.wait_for(look(), _WAIT_TIMEOUT_S)
        except TimeoutError as error:
            raise AssertionError(
                f"{text!r} was not seen {times} times in:\n{self.screen}"
            ) from error
        return self.screen

    async def ends(self) -> int:
        """Waits for the process to end. Returns the exit code."""
        assert self._process is not None, "the terminal was not entered"  # noqa: S101
        code = await asyncio.wait_for(self._process.wait(), _WAIT_TIMEOUT_S)
        self._read()
        return code

    def _read(self) -> None:
        try:
            while data := os.read(self._fd, 65536):
                self._written += data
                self._emulator.feed(data)
                while self._emulator.replies:
                    self.type(self._emulator.replies.pop(0))
        except BlockingIOError:
            pass
        except OSError:  # the other side is closed
            asyncio.get_running_loop().remove_reader(self._fd)
        self._changed.set()


# Makes the pseudo-terminal the controlling one, so that Ctrl-C becomes a signal if the terminal sends one.
_LEAD = "import fcntl,os,sys,termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"


def executable() -> Path:
    """Returns the path of this environment's `hermes`."""
    return Path(sys.executable).with_name("hermes")

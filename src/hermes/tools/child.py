"""A program that Hermes starts and talks to over one open file: how it is started is decided elsewhere."""

import asyncio
import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Mapping
from typing import Protocol, TypeAlias

import msgspec

from hermes.core.ports import ToolContext

_CHUNK = 64 * 1024


class Program(msgspec.Struct, frozen=True):
    """A program to start, for a call. `channel` is a file that it inherits under the same number."""

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    channel: int
    context: ToolContext
    """Whose call it is: the folder it starts in, and how far it may reach."""


class Running(Protocol):
    """A program that runs, with everything it has started. `stop` and `close` must be called, whatever happens."""

    async def wait(self, seconds: float, on_output: Callable[[bytes], None]) -> int | None:
        """Hands on its output until it ends; its exit code, or None when time is up."""
        ...

    async def stop(self, grace: float) -> list[str]:
        """Ends everything that still runs; the names of what ran."""
        ...

    def drain(self, on_output: Callable[[bytes], None]) -> None:
        """Hands on output that has not been read yet."""
        ...

    def close(self) -> None:
        """Lets go of the output."""
        ...


Start: TypeAlias = Callable[[Program], Running]
"""Starts a program; raises OSError when it can't."""


class PlainChild:
    """A program with no sandbox around it. Its process group ends with it."""

    def __init__(self, program: Program) -> None:
        self._output, output = os.pipe()
        try:
            self._process = subprocess.Popen(
                program.argv,
                cwd=program.context.cwd,
                env=dict(program.environment),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                pass_fds=(program.channel,),
                start_new_session=True,
            )
        except BaseException:
            os.close(self._output)
            raise
        finally:
            os.close(output)
        os.set_blocking(self._output, False)

    async def wait(self, seconds: float, on_output: Callable[[bytes], None]) -> int | None:
        """Hands on its output until it ends; its exit code, or None when time is up."""
        loop = asyncio.get_running_loop()

        def read() -> None:
            if self._read(on_output) == 0:
                loop.remove_reader(self._output)

        loop.add_reader(self._output, read)
        try:
            async with asyncio.timeout(seconds):
                await self._exit()
        except TimeoutError:
            return None
        finally:
            loop.remove_reader(self._output)
        return self._process.wait()

    async def stop(self, grace: float) -> list[str]:
        """Ends its process group, asked first if it still runs."""
        left = ["python"] if self._process.poll() is None else []
        try:
            if left:
                self._signal(signal.SIGTERM)
                await asyncio.wait_for(asyncio.to_thread(self._wait, grace), grace + 1)
        finally:
            self._signal(signal.SIGKILL)
            self._process.wait()
        return left

    def drain(self, on_output: Callable[[bytes], None]) -> None:
        """Hands on output that has not been read yet."""
        while self._read(on_output):
            pass

    def close(self) -> None:
        """Lets go of the output."""
        os.close(self._output)

    async def _exit(self) -> None:
        try:
            handle = os.pidfd_open(self._process.pid)
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

    def _wait(self, seconds: float) -> None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    def _read(self, on_output: Callable[[bytes], None]) -> int | None:
        try:
            chunk = os.read(self._output, _CHUNK)
        except BlockingIOError:
            return None
        if chunk:
            on_output(chunk)
        return len(chunk)

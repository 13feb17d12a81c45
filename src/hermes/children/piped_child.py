"""A program that Hermes talks to through pipes: codex, an MCP server, the engine of a local model.

It runs under `leash`, so it ends together with everything it started, even if Hermes is killed.
"""

import asyncio
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from hermes.children.own_python import python_command
from hermes.children.process_tree import read_state, running_pids, send_signal

READ_BYTES = 256 * 1024
_STDERR_TAIL_BYTES = 16 * 1024
_FORCED_END_TIMEOUT_S = (
    7.0  # the leash needs half a second, unless the machine is very busy
)
_EXIT_POLL_INTERVAL_S = 0.005
_LEASH = Path(__file__).with_name("leash.py")


class StderrTail(asyncio.Protocol):
    """The end of a program's stderr. The pipe is always read, because a full one would block the program."""

    def __init__(self, on_data: Callable[[bytes], None] | None = None) -> None:
        self.closed = asyncio.Event()
        self._on_data = on_data
        self._tail = b""

    # pyrefly: ignore[missing-override-decorator]
    def data_received(self, data: bytes) -> None:
        """Keeps the end, and passes on all of the data."""
        self._tail = (self._tail + data)[-_STDERR_TAIL_BYTES:]
        if self._on_data is not None:
            self._on_data(data)

    # pyrefly: ignore[missing-override-decorator]
    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's shape
        """Records that the output has ended."""
        self.closed.set()

    def text(self) -> str:
        """Returns the end of the output."""
        return self._tail.decode(errors="replace")

    def last_line(self) -> str:
        """Returns the last line that is not blank."""
        lines = self.text().strip().splitlines()
        return lines[-1].strip() if lines else ""


class PipedChild:
    """A running program. `stop` must be awaited, whatever happens."""

    def __init__(
        self, process: "subprocess.Popen[bytes]", life_pipe: int, stderr: StderrTail
    ) -> None:
        self.output = asyncio.StreamReader(limit=READ_BYTES)
        self.stderr = stderr
        self._process = process
        self._life_pipe = life_pipe
        self._writer: asyncio.StreamWriter | None = None
        self._transports: list[asyncio.BaseTransport] = []
        pipes = (process.stdout, process.stderr, process.stdin)
        self._unconnected_pipes = [pipe for pipe in pipes if pipe is not None]

    @classmethod
    async def start(
        cls,
        command: Sequence[str],
        *,
        cwd: Path,
        environment: Mapping[str, str],
        on_stderr: Callable[[bytes], None] | None = None,
    ) -> "PipedChild":
        """Starts a program by its absolute path. Raises OSError or ValueError if that is not possible."""
        leash_end, our_end = os.pipe()
        try:
            process = subprocess.Popen(  # noqa: ASYNC220 - a few milliseconds; asyncio's own does the same
                [*python_command("-S", str(_LEASH)), str(leash_end), *command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=(leash_end,),
                cwd=cwd,
                env=dict(environment),
                start_new_session=True,
            )
        except (OSError, ValueError):
            os.close(our_end)
            raise
        finally:
            os.close(leash_end)
        child = cls(process, our_end, StderrTail(on_stderr))
        try:
            await child._connect()
        except BaseException:
            await child.stop()
            raise
        return child

    @property
    def pid(self) -> int:
        """The process id of the leash, whose only child is the program."""
        return self._process.pid

    @property
    def return_code(self) -> int | None:
        """The program's return code, negative for a signal; None while it runs."""
        return self._process.poll()

    async def write(self, data: bytes) -> None:
        """Writes to the program's input. Raises OSError if the program no longer reads."""
        if self._writer is None or self._life_pipe < 0:
            raise BrokenPipeError
        self._writer.write(data)
        await self._writer.drain()

    def send_signal(self, number: signal.Signals) -> bool:
        """Sends a signal to the program itself, for example so that it finishes its work. Returns whether it was found.

        Use `stop` to end it with everything it started.
        """
        below = [pid for pid in running_pids() if _parent(pid) == self._process.pid]
        send_signal(below, number)
        return bool(below)

    async def wait(self, seconds: float) -> int | None:
        """Waits for the program to end and returns its return code; None if it still runs after the timeout."""
        deadline = time.monotonic() + seconds
        while (code := self.return_code) is None and time.monotonic() < deadline:  # noqa: ASYNC110 - the kernel knows
            await asyncio.sleep(_EXIT_POLL_INTERVAL_S)
        return code

    async def stop(self, *, grace: float = 0.5) -> None:
        """Ends the program and everything it started: closes its input, waits `grace` seconds, then ends it."""
        try:
            if self._life_pipe >= 0:
                if self._writer is not None:
                    self._writer.close()
                await self.wait(grace)
        finally:
            self.end()
        await self.wait(_FORCED_END_TIMEOUT_S)

    def end(self) -> None:
        """Makes the leash end everything, by SIGTERM and then SIGKILL. Does not wait."""
        if self._life_pipe < 0:
            return
        os.close(self._life_pipe)
        self._life_pipe = -1
        for transport in self._transports:
            transport.close()
        for pipe in self._unconnected_pipes:
            pipe.close()

    async def _connect(self) -> None:
        loop = asyncio.get_running_loop()
        stdout, stderr, stdin = self._unconnected_pipes
        reading, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(self.output), stdout
        )
        self._connected(reading)
        reading, _ = await loop.connect_read_pipe(lambda: self.stderr, stderr)
        self._connected(reading)
        writing, flow = await loop.connect_write_pipe(
            asyncio.streams.FlowControlMixin, stdin
        )
        self._connected(writing)
        self._writer = asyncio.StreamWriter(writing, flow, None, loop)

    def _connected(self, transport: asyncio.BaseTransport) -> None:
        self._transports.append(transport)
        del self._unconnected_pipes[0]


def _parent(pid: int) -> int:
    state = read_state(pid)
    return state.parent if state is not None else 0

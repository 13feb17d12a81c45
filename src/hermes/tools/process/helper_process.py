"""One of Hermes' own programs, run like any command in the same sandbox, that exchanges lines with Hermes.

It reads from its input and answers into a named pipe in the run's temporary folder: the only place that every kind of
sandbox lets it write to and that nobody else can see.
"""

import asyncio
import os
from collections.abc import Callable

from hermes.core.ports import ToolContext
from hermes.tools.process.session_commands import SessionCommands, Surroundings

MAX_LINE_BYTES = 32 * 1024 * 1024


class Dialogue:
    """One run of the program. `stop` and `close` must be called, whatever happens."""

    def __init__(
        self, surroundings: Surroundings, command: str, context: ToolContext
    ) -> None:
        self._commands = SessionCommands(surroundings)
        try:
            self._running = self._commands.start(
                command, context.cwd, context, takes_input=True
            )
        except BaseException:
            self._commands.close()
            raise
        self.pipe = self._running.fence.temporary / f"{os.urandom(8).hex()}.pipe"
        """The pipe that the program writes to; the first line it receives names the pipe."""
        self._transports: list[asyncio.BaseTransport] = []

    @property
    def problem(self) -> str:
        """Why the program had to be stopped: it used too much."""
        return self._running.job.problem

    async def open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Returns the streams from and to the program."""
        loop = asyncio.get_running_loop()
        os.mkfifo(self.pipe, 0o600)
        said = os.fdopen(
            os.open(
                self.pipe, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW
            ),
            "rb",
            0,
        )
        reader = asyncio.StreamReader(limit=MAX_LINE_BYTES)
        reading, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), said
        )
        self._transports.append(reading)
        job = self._running.job
        told, job.input = (
            os.fdopen(job.input, "wb", 0),
            -1,
        )  # closing what is said must end it for the program too
        writing, protocol = await loop.connect_write_pipe(
            asyncio.streams.FlowControlMixin, told
        )
        self._transports.append(writing)
        return reader, asyncio.StreamWriter(writing, protocol, None, loop)

    async def wait(self, on_output: Callable[[bytes], None]) -> int | None:
        """Passes on output until the program ends; returns its exit code, or None if there is a problem."""
        return await self._running.job.wait(None, on_output)

    async def stop(self, grace: float, on_output: Callable[[bytes], None]) -> None:
        """Ends everything that still runs, and passes on the rest of the output."""
        await self._running.job.stop(grace)
        self._running.job.drain(on_output)

    def close(self) -> list[str]:
        """Closes everything. Returns notes about what the program left behind."""
        for transport in self._transports:
            transport.close()
        try:
            return self._commands.finish(self._running)
        finally:
            self._commands.close()

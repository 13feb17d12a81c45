"""A program on this machine that is spoken to through pipes: started under the leash, ended with all it started."""

import asyncio
import os
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from hermes.children.own_python import python_command

CHUNK = 256 * 1024
"""Bytes that are read at once."""
_FORCED = 7.0  # seconds for the leash to end everything; it takes half a one, unless the machine is very busy
_LEASH = Path(__file__).with_name("leash.py")


class PipedChild:
    """A running program. `stop` must be awaited, whatever happens."""

    def __init__(self, process: "subprocess.Popen[bytes]", life: int) -> None:
        self.output = asyncio.StreamReader(limit=CHUNK)
        self._process = process
        self._life = life
        self._writer: asyncio.StreamWriter | None = None
        self._transports: list[asyncio.BaseTransport] = []

    @classmethod
    async def start(
        cls,
        command: Sequence[str],
        *,
        cwd: Path,
        environment: Mapping[str, str],
        complaints: Callable[[], asyncio.Protocol],
    ) -> "PipedChild":
        """Starts it; what it writes to stderr goes to `complaints`. OSError or ValueError when that is not possible."""
        ours, theirs = os.pipe()
        try:
            process = subprocess.Popen(  # noqa: ASYNC220 - a few milliseconds; asyncio's own does the same
                [*python_command("-S", str(_LEASH)), str(ours), *command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=(ours,),
                cwd=cwd,
                env=dict(environment),
                start_new_session=True,
            )
        except (OSError, ValueError):
            os.close(theirs)
            raise
        finally:
            os.close(ours)
        child = cls(process, theirs)
        try:
            await child._connect(complaints)
        except BaseException:
            await child.stop()
            raise
        return child

    @property
    def pid(self) -> int:
        """Of the leash, whose only child the program is."""
        return self._process.pid

    @property
    def ended(self) -> int | None:
        """Its exit code if it has ended by now."""
        return self._process.poll()

    async def write(self, data: bytes) -> None:
        """Sends. OSError when nobody reads any more."""
        if self._writer is None or self._life < 0:
            raise BrokenPipeError
        self._writer.write(data)
        await self._writer.drain()

    async def exit_code(self, seconds: float) -> int | None:
        """Its exit code, once it has ended; None if it still runs after so many seconds."""
        deadline = time.monotonic() + seconds
        while (code := self.ended) is None and time.monotonic() < deadline:  # noqa: ASYNC110 - the kernel knows
            await asyncio.sleep(0.005)
        return code

    async def stop(self, *, grace: float = 0.5) -> None:
        """Ends it with everything it started: its input ends, then it is told, then it is forced."""
        if self._life < 0:
            return
        life, self._life = self._life, -1
        try:
            if self._writer is not None:
                self._writer.close()
            await self.exit_code(grace)
        finally:
            os.close(life)  # from here on the leash does the rest, also without us
            self._close_pipes()
        await self.exit_code(_FORCED)

    def _close_pipes(self) -> None:
        for transport in self._transports:
            transport.close()
        if not self._transports:
            for pipe in (
                self._process.stdin,
                self._process.stdout,
                self._process.stderr,
            ):
                if pipe is not None:
                    pipe.close()

    async def _connect(self, complaints: Callable[[], asyncio.Protocol]) -> None:
        loop = asyncio.get_running_loop()
        out, err, into = self._process.stdout, self._process.stderr, self._process.stdin
        if out is None or err is None or into is None:
            raise BrokenPipeError
        for protocol, pipe in (
            (lambda: asyncio.StreamReaderProtocol(self.output), out),
            (complaints, err),
        ):
            reading, _ = await loop.connect_read_pipe(protocol, pipe)
            self._transports.append(reading)
        writing, flow = await loop.connect_write_pipe(
            asyncio.streams.FlowControlMixin, into
        )
        self._transports.append(writing)
        self._writer = asyncio.StreamWriter(writing, flow, None, loop)

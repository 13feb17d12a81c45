"""A server that runs on this machine: started under the supervisor, read line by line with limits, ended as a whole."""

import asyncio
import contextlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import msgspec

from hermes.mcp.failures import ServerFailed
from hermes.mcp.text import plain

MAX_MESSAGE = 8 * 1024 * 1024
"""Bytes of one message."""
_MAX_LOG = 256 * 1024
_TAIL = 2_000
_CHUNK = 256 * 1024
_GRACE = 0.5
"""Seconds for a server to leave when its input ends."""
_FORCED = 7.0
"""Seconds for the supervisor to end everything; it takes one, unless the machine is very busy."""
_SUPERVISOR = Path(__file__).with_name("supervisor.py")


class Launch(msgspec.Struct, frozen=True):
    """What is started, with what, and where what it complains about goes."""

    command: str
    args: tuple[str, ...]
    environment: Mapping[str, str]
    cwd: Path
    log: Path


class BoundedLog(asyncio.Protocol):
    """What a server writes to stderr: the newest part is kept in a file and the one before it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._size = 0
        self._file = -1
        self._tail = b""

    # pyrefly: ignore[missing-override-decorator]
    def data_received(self, data: bytes) -> None:
        """Takes the next piece. A disk that is full loses log, not the server."""
        self._tail = (self._tail + data)[-_TAIL:]
        with contextlib.suppress(OSError):
            self._write(data[-_MAX_LOG:])

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def tail(self) -> str:
        """The last line."""
        lines = plain(self._tail.decode(errors="replace")).strip().splitlines()
        return lines[-1].strip() if lines else ""

    def _write(self, data: bytes) -> None:
        if self._file < 0 or self._size + len(data) > _MAX_LOG:
            self._next_file()
        self._size += os.write(self._file, data)

    def _next_file(self) -> None:
        self.close()
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            self.path.replace(self.path.with_name(f"{self.path.name}.1"))
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
        self._file = os.open(self.path, flags, 0o600)
        self._size = 0


class Child:
    """A running server. `stop` must be awaited, whatever happens."""

    def __init__(self, process: "subprocess.Popen[bytes]", life: int, log: BoundedLog) -> None:
        self.process = process
        self.log = log
        self._life = life
        self._reader = asyncio.StreamReader(limit=_CHUNK)
        self._writer: asyncio.StreamWriter | None = None
        self._transports: list[asyncio.BaseTransport] = []

    @classmethod
    async def start(cls, launch: Launch) -> "Child":
        """Starts it. ServerFailed says why that is not possible."""
        program = shutil.which(launch.command, path=launch.environment.get("PATH") or os.defpath)
        if program is None:
            raise ServerFailed(f"there is no program {launch.command!r}", hint="Install it, or give its whole path.")
        if not launch.cwd.is_dir():
            raise ServerFailed(f"there is no folder {launch.cwd}", hint="Correct its `cwd`.")
        ours, theirs = os.pipe()
        try:
            process = subprocess.Popen(  # noqa: ASYNC220 - a few milliseconds; asyncio's own does the same
                [sys.executable, "-I", "-S", str(_SUPERVISOR), str(ours), program, *launch.args],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=(ours,),
                cwd=launch.cwd,
                env=dict(launch.environment),
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            os.close(theirs)
            raise ServerFailed(f"it can't be started ({error})") from error
        finally:
            os.close(ours)
        child = cls(process, theirs, BoundedLog(launch.log))
        try:
            await child._connect()
        except BaseException:
            await child.stop()
            raise
        return child

    async def _connect(self) -> None:
        loop = asyncio.get_running_loop()
        out, err, into = self.process.stdout, self.process.stderr, self.process.stdin
        if out is None or err is None or into is None:
            raise ServerFailed("it has no pipes")
        reading, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(self._reader), out)
        self._transports.append(reading)
        complaints, _ = await loop.connect_read_pipe(lambda: self.log, err)
        self._transports.append(complaints)
        writing, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, into)
        self._transports.append(writing)
        self._writer = asyncio.StreamWriter(writing, protocol, None, loop)

    async def lines(self) -> AsyncIterator[bytes]:
        """Message by message until it ends. ServerFailed for one that is too large; no more is read then."""
        waiting = bytearray()
        while chunk := await self._reader.read(_CHUNK):
            first, *rest = chunk.split(b"\n")
            waiting += first
            for line in rest:
                yield bytes(waiting)
                waiting[:] = line
            if len(waiting) > MAX_MESSAGE:
                raise ServerFailed(f"it sent a message of more than {MAX_MESSAGE // 2**20} MiB")
            await asyncio.sleep(0)  # a server that never pauses must not hold up everything else

    async def write(self, data: bytes) -> None:
        """Sends one message. Raises OSError when nobody reads any more."""
        if self._writer is None:
            raise ServerFailed("it has ended")
        self._writer.write(data)
        await self._writer.drain()

    async def exit_code(self, seconds: float) -> int | None:
        """Its exit code, once it has ended; None if it goes on."""
        deadline = time.monotonic() + seconds
        while (code := self.process.poll()) is None and time.monotonic() < deadline:  # noqa: ASYNC110 - the kernel knows
            await asyncio.sleep(0.005)
        return code

    async def stop(self) -> None:
        """Ends it with everything it started: its input ends, then it is told, then it is forced."""
        try:
            if self._writer is not None:
                self._writer.close()
            await self.exit_code(_GRACE)
        finally:
            os.close(self._life)  # from here on the supervisor does the rest, also without us
            self._life = -1
            for transport in self._transports:
                transport.close()
            self.log.close()
            for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
                if pipe is not None and not self._transports:
                    pipe.close()
        await self.exit_code(_FORCED)

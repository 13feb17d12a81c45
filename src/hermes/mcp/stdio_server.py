"""A server that runs on this machine: read line by line with limits, ended as a whole."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import msgspec

from hermes.children.helper_programs import find_program, skipped_program
from hermes.children.piped_child import CHUNK, PipedChild
from hermes.mcp.failures import ServerFailed
from hermes.mcp.safe_text import plain
from hermes.primitives.files import make_private_folder, open_private

MAX_MESSAGE = 8 * 1024 * 1024
"""Bytes of one message."""
_MAX_LOG = 256 * 1024
_TAIL = 2_000
_NO_PROGRAM = "Install it, or give its full path. Hermes does not look for a bare name in a project's own folders."


class ServerLaunch(msgspec.Struct, frozen=True):
    """What is started, with what, and where what it complains about goes."""

    command: str
    args: tuple[str, ...]
    environment: Mapping[str, str]
    cwd: Path
    log: Path
    search_path: str = ""
    """The user's whole PATH: to tell which program is not used, because a model may have written it."""


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
        make_private_folder(self.path.parent)
        with contextlib.suppress(FileNotFoundError):
            self.path.replace(self.path.with_name(f"{self.path.name}.1"))
        self._file = open_private(self.path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        self._size = 0


class ServerChild:
    """A running server. `stop` must be awaited, whatever happens."""

    def __init__(self, child: PipedChild, log: BoundedLog) -> None:
        self.log = log
        self.pid = child.pid
        self.write = child.write
        self._child = child

    @property
    def ended(self) -> int | None:
        """Its exit code if it has ended by now."""
        return self._child.ended

    @classmethod
    async def start(cls, launch: ServerLaunch) -> "ServerChild":
        """Starts it. ServerFailed says why that is not possible."""
        program = find_program(launch.command, launch.environment)
        if program is None:
            raise ServerFailed(
                f"there is no program {launch.command!r}", hint=_how_to_get(launch)
            )
        if not launch.cwd.is_dir():
            raise ServerFailed(
                f"there is no folder {launch.cwd}", hint="Correct its `cwd`."
            )
        log = BoundedLog(launch.log)
        command = (program, *launch.args)
        try:
            child = await PipedChild.start(
                command,
                cwd=launch.cwd,
                environment=launch.environment,
                complaints=lambda: log,
            )
        except (OSError, ValueError) as error:
            raise ServerFailed(f"it can't be started ({error})") from error
        return cls(child, log)

    async def lines(self) -> AsyncIterator[bytes]:
        """Message by message until it ends. ServerFailed for one that is too large; no more is read then."""
        waiting = bytearray()
        while chunk := await self._child.output.read(CHUNK):
            first, *rest = chunk.split(b"\n")
            waiting += first
            for line in rest:
                yield bytes(waiting)
                waiting[:] = line
            if len(waiting) > MAX_MESSAGE:
                raise ServerFailed(
                    f"it sent a message of more than {MAX_MESSAGE // 2**20} MiB"
                )
            await asyncio.sleep(
                0
            )  # a server that never pauses must not hold up everything else

    async def stop(self) -> None:
        """Ends it with everything it started."""
        try:
            await self._child.stop()
        finally:
            self.log.close()


def _how_to_get(launch: ServerLaunch) -> str:
    """What to do when there is no program that can be used."""
    found = (
        skipped_program(launch.command, {"PATH": launch.search_path})
        if launch.search_path
        else ""
    )
    if not found:
        return _NO_PROGRAM
    return (
        f"The one at {found} is not used: it lies in a folder where commands of a model can write."
        " If you trust it, give its whole path as the server's `command`."
    )

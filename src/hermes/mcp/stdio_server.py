"""An MCP server that runs on this machine, read line by line with limits."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import msgspec

from hermes.children.helper_programs import find_program, skipped_program
from hermes.children.piped_child import READ_BYTES, PipedChild
from hermes.mcp.safe_text import ServerFailed, plain
from hermes.primitives.files import make_private_folder, open_private
from hermes.text.translation import Later, translator

t = translator(__name__)

MAX_MESSAGE_BYTES = 8 * 1024 * 1024
_MAX_LOG_BYTES = 256 * 1024
_NO_PROGRAM = t.later(
    "Install it, or give its full path. Hermes does not look for a bare name in a project's "
    "own folders."
)


class ServerLaunch(msgspec.Struct, frozen=True):
    """What to start, with which environment, and where its stderr goes."""

    command: str
    args: tuple[str, ...]
    environment: Mapping[str, str]
    cwd: Path
    log: Path
    search_path: str = ""
    """The user's whole PATH, to report a program that is not used because a model may have written it."""


class BoundedLog:
    """A server's stderr on disk: the newest part in one file, the previous part in another."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._size = 0
        self._file = -1

    def write(self, data: bytes) -> None:
        """Appends a piece. If the disk is full, log lines are lost but the server goes on."""
        data = data[-_MAX_LOG_BYTES:]
        with contextlib.suppress(OSError):
            if self._file < 0 or self._size + len(data) > _MAX_LOG_BYTES:
                self._next_file()
            self._size += os.write(self._file, data)

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

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

    @classmethod
    async def start(cls, launch: ServerLaunch) -> "ServerChild":
        """Starts a server. ServerFailed says why that is not possible."""
        program = find_program(launch.command, launch.environment)
        if program is None:
            raise ServerFailed(
                t.later("there is no program {command!r}", command=launch.command),
                hint=_how_to_get(launch),
            )
        if not launch.cwd.is_dir():
            raise ServerFailed(
                t.later("there is no folder {cwd}", cwd=launch.cwd),
                hint=t.later("Correct its `cwd`."),
            )
        log = BoundedLog(launch.log)
        try:
            child = await PipedChild.start(
                (program, *launch.args),
                cwd=launch.cwd,
                environment=launch.environment,
                on_stderr=log.write,
            )
        except (OSError, ValueError) as error:
            raise ServerFailed(
                t.later("it can't be started ({error})", error=error)
            ) from error
        return cls(child, log)

    @property
    def return_code(self) -> int | None:
        """How the server ended; None while it runs."""
        return self._child.return_code

    def last_words(self) -> str:
        """The last line it wrote to stderr."""
        return plain(self._child.stderr.last_line())

    async def lines(self) -> AsyncIterator[bytes]:
        """Yields one message after another until the server ends. Raises ServerFailed for one that is too large."""
        waiting = bytearray()
        while chunk := await self._child.output.read(READ_BYTES):
            first, *rest = chunk.split(b"\n")
            waiting += first
            for line in rest:
                yield bytes(waiting)
                waiting[:] = line
            if len(waiting) > MAX_MESSAGE_BYTES:
                raise ServerFailed(
                    t.later(
                        "it sent a message of more than {megabytes} MiB",
                        megabytes=MAX_MESSAGE_BYTES // 2**20,
                    )
                )
            await asyncio.sleep(0)  # a server that never pauses must not block the loop

    async def stop(self) -> None:
        """Ends the server and everything it started."""
        try:
            await self._child.stop()
        finally:
            self.log.close()


def _how_to_get(launch: ServerLaunch) -> Later:
    """Says what to do if the program can't be used."""
    found = (
        skipped_program(launch.command, {"PATH": launch.search_path})
        if launch.search_path
        else ""
    )
    if not found:
        return _NO_PROGRAM
    return t.later(
        "Hermes does not use {found}, because a model's commands can write in that folder. If you "
        "trust it, give its full path as the server's `command`.",
        found=found,
    )

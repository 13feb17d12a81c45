"""`!command`: runs a command that the person typed. Its output is logged, and sent to the model with the next
message."""

import asyncio
import contextlib
import os
import signal
from pathlib import Path

import msgspec

from hermes.app import App
from hermes.children.helper_programs import find_program
from hermes.children.process_tree import describe_exit
from hermes.schema.events import OwnCommandRan
from hermes.schema.messages import UserMessage
from hermes.settings.load import environment

_MAX_OUTPUT_BYTES = 100_000  # the end of a longer output is kept
_MAX_SENT_CHARS = 20_000  # ... and goes to the model
_READ_BYTES = 65_536
_MAX_ROWS_BACK = 200  # in which unsent results are looked for
_KILL_WAIT_S = 2.0  # between SIGTERM and SIGKILL


class OwnCommandResult(msgspec.Struct, frozen=True):
    """What a command printed, and how it ended."""

    command: str
    output: str
    code: int

    @property
    def ending(self) -> str:
        """How it ended, in words."""
        return f"exit code {self.code}" if self.code >= 0 else describe_exit(self.code)

    @property
    def block(self) -> str:  # not translated: for the model
        """The part of a message that tells the model about it."""
        output = self.output.replace("</ran", "<\\/ran")
        if len(output) > _MAX_SENT_CHARS:
            output = f"[the beginning is left out]\n{output[-_MAX_SENT_CHARS:]}"
        command = self.command.replace("\n", " ").replace('"', "'")
        body = f"The user ran this command.\n{output.rstrip()}\n[{self.ending}]"
        return f'\n\n<ran command="{command}">\n{body}\n</ran>'


class OwnCommands:
    """Runs one command at a time, in the person's shell and with the person's rights."""

    def __init__(self) -> None:
        self._process: asyncio.subprocess.Process | None = None
        self.was_stopped = False
        """Whether the person stopped the last command."""
        self._results: list[OwnCommandResult] = []

    @property
    def is_running(self) -> bool:
        """Whether a command runs."""
        return self._process is not None

    @property
    def has_unsent(self) -> bool:
        """Whether a result waits for the next message."""
        return bool(self._results)

    def restore(self, app: App, session: str) -> None:
        """Takes up the results in a session that no message has told the model about. Reads the log."""
        head = app.store.sessions.find(session).head
        rows = app.store.log.events(
            session, after=max(0, head - _MAX_ROWS_BACK), limit=_MAX_ROWS_BACK
        )
        self._results = []
        for row in rows:
            match row.event:
                case UserMessage(origin="user"):
                    self._results = []
                case OwnCommandRan(command=command, output=output, code=code):
                    self._results.append(OwnCommandResult(command, output, code))
                case _:
                    pass

    def take_blocks(self) -> str:
        """Returns what the next message tells the model about the commands since the last one."""
        results, self._results = self._results, list[OwnCommandResult]()
        return "".join(result.block for result in results)

    async def run(self, command: str, folder: Path) -> OwnCommandResult:
        """Runs a command to its end, or until `stop`."""
        environ = environment()
        shell = find_program(environ.get("SHELL") or "sh", environ) or "/bin/sh"
        process = await asyncio.create_subprocess_exec(
            shell, "-c", command, cwd=folder, start_new_session=True,
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip
        self._process, self.was_stopped = process, False
        try:
            output = await _read(process)
            code = await process.wait()
        finally:
            self._signal(signal.SIGKILL)
            await process.wait()
            self._process = None
        result = OwnCommandResult(command, output, code)
        self._results.append(result)
        return result

    def stop(self) -> None:
        """Ends the running command, by force if it does not end by itself."""
        self.was_stopped = True
        self._signal(signal.SIGTERM)
        asyncio.get_running_loop().call_later(_KILL_WAIT_S, self._kill, self._process)

    def _kill(self, process: asyncio.subprocess.Process | None) -> None:
        if process is self._process:
            self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)


async def _read(process: asyncio.subprocess.Process) -> str:
    kept = bytearray()
    assert process.stdout is not None  # noqa: S101 - it was asked for
    while data := await process.stdout.read(_READ_BYTES):
        kept += data
        del kept[: max(0, len(kept) - _MAX_OUTPUT_BYTES)]
    return kept.decode("utf-8", "replace")

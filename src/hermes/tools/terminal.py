"""`terminal`: runs a command of the model's. The folder is kept between the calls of a session.

Output is shown while it comes, a few times a second; the whole process tree ends with the call.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from hermes.core.ports import ToolContext
from hermes.errors import ToolFailed
from hermes.schema.tools import ToolResult
from hermes.tools.environment import command_environment
from hermes.tools.escapes import clean
from hermes.tools.output import OutputFolder
from hermes.tools.process import Job
from hermes.tools.tool import tool

_GRACE = 0.5
_HURRY = 0.1
"""Grace when the user interrupts: an interrupt is done within 200 ms."""
_MAX_COMMAND = 100_000
_SHELLS = (Path("/bin/bash"), Path("/usr/bin/bash"), Path("/usr/local/bin/bash"), Path("/bin/sh"))


class Terminal:
    """The terminal of one session."""

    def __init__(self, output: OutputFolder, environment: Mapping[str, str]) -> None:
        self._output = output
        self._environment = command_environment(environment)
        self._shell = next((shell for shell in _SHELLS if shell.exists()), Path("/bin/sh"))
        self._folder: Path | None = None
        self._session = ""

    def folder(self, cwd: Path) -> Path:
        """Where the next command runs: where the last one ended, else `cwd`."""
        return self._folder if self._folder is not None and self._folder.is_dir() else cwd

    @tool("terminal", effect="other")
    async def terminal(
        self,
        context: ToolContext,
        command: Annotated[str, Meta(min_length=1)],
        timeout: Annotated[int, Meta(ge=1, le=600, description="Seconds.")] = 120,  # noqa: ASYNC109 - the model's
    ) -> ToolResult:
        """Runs a bash command; returns its output and exit code. The directory is kept between calls. There is no
        input to answer prompts with, and processes left in the background are stopped at the end. For reading,
        searching and editing files use the other tools."""
        self._own(context.session)
        folder = self.folder(context.cwd)
        capture = self._output.capture("terminal")
        live = Live(context.show)
        job = self._start(command, folder)

        def take(chunk: bytes) -> None:
            capture.feed(chunk)
            live.feed(chunk)

        grace, left = _HURRY, list[str]()
        try:
            code = await job.wait(timeout, take)
            grace = _GRACE
        finally:
            try:
                left = await job.stop(grace)
                job.drain(take)
            finally:
                moved = self._move(job.last_folder(), folder)
                live.close()
                job.close()
                capture.close()
        notes = _notes(code, timeout, left)
        if moved or self.folder(context.cwd) != folder:
            notes.append(f"now in {self.folder(context.cwd)}")
        return ToolResult(text=f"{_body(capture.text())}[{'; '.join(notes)}]", ok=code == 0)

    def _own(self, session: str) -> None:
        """A terminal has one folder, so it serves one session."""
        if self._session not in ("", session):
            raise ToolFailed("This terminal belongs to another session.", hint="Each session needs tools of its own.")
        self._session = session

    def _start(self, command: str, folder: Path) -> Job:
        if "\0" in command or len(command.encode(errors="replace")) > _MAX_COMMAND:
            raise ToolFailed(
                f"A command can't be longer than {_MAX_COMMAND:,} bytes or hold a NUL.",
                hint="Nothing was run. Write long text to a file with write_file.",
            )
        try:
            return Job(command, self._shell, folder, self._environment)
        except (OSError, ValueError) as error:
            raise ToolFailed(f"The command could not be started in {folder}: {error}.") from error

    def _move(self, last: Path | None, folder: Path) -> bool:
        """Keeps the folder the command ended in, if it is another one."""
        if last is None or last == folder or last == folder.resolve():
            return False
        self._folder = last
        return True


def _notes(code: int | None, seconds: int, left: list[str]) -> list[str]:
    if code is None:
        return [f"stopped: it ran longer than {seconds} s (timeout can be up to 600)"]
    notes = [f"killed by signal {-code}" if code < 0 else f"exit code {code}"]
    if left:
        names = ", ".join(sorted(left)[:10]) + (f" and {len(left) - 10} more" if left[10:] else "")
        notes.append(f"stopped what it left running: {names}")
    return notes


class Live:
    """Shows output while it comes: at most 20 times a second, of a flood the latest."""

    _SECONDS = 0.05
    _BYTES = 4000

    def __init__(self, show: Callable[[str], None]) -> None:
        self._show = show
        self._waiting = bytearray()
        self._skipped = 0
        self._shown = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def feed(self, chunk: bytes) -> None:
        """Takes the next piece of output."""
        self._waiting += chunk[-self._BYTES :]
        surplus = len(self._waiting) - self._BYTES
        self._skipped += max(0, len(chunk) - self._BYTES) + max(0, surplus)
        if surplus > 0:
            del self._waiting[:surplus]
        if self._timer is None:
            wait = max(0.0, self._shown + self._SECONDS - time.monotonic())
            self._timer = asyncio.get_running_loop().call_later(wait, self._flush)

    def close(self) -> None:
        """Shows what is left."""
        if self._timer is not None:
            self._timer.cancel()
            self._flush()

    def _flush(self) -> None:
        self._timer = None
        self._shown = time.monotonic()
        whole = _whole_characters(self._waiting)
        text = clean(bytes(self._waiting[:whole]).decode(errors="replace"))
        del self._waiting[:whole]
        if self._skipped:
            text = f"[{self._skipped:,} bytes not shown]\n{text}"
            self._skipped = 0
        if text:
            self._show(text)


def _whole_characters(data: bytearray) -> int:
    """How many bytes end with a whole character."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte >= 0xC0:
            needed = 2 + (byte >= 0xE0) + (byte >= 0xF0)
            return len(data) - back if needed > back else len(data)
        if byte < 0x80:
            break
    return len(data)


def _body(text: str) -> str:
    if not text:
        return "(no output) "
    return text if text.endswith("\n") else f"{text}\n"

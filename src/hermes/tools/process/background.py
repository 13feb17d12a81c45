"""`process` and `process_write`: commands that run in the background until they end, are killed, or the session ends.

Watching them changes nothing; typing into one may do anything, so that is an effect of its own.
"""

import asyncio
import contextlib
import itertools
import os
import re
import time
from collections.abc import Awaitable
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta

from hermes.core.ports import ToolContext
from hermes.errors import ToolFailed
from hermes.schema.events import Reach
from hermes.schema.tool_spec import ToolResult
from hermes.tools.escapes import clean
from hermes.tools.process.long_output import Capture, OutputFolder
from hermes.tools.process.progress import whole_characters
from hermes.tools.process.session_commands import RunningCommand, SessionCommands
from hermes.tools.tool import tool

STOP_GRACE_S = 0.5
_MAX_PROCESSES = 16
_MAX_UNSEEN_BYTES = 20_000
"""If there is more output between two polls, only the latest part is shown. All of it goes to a file."""
_MAX_TYPED_LINE_CHARACTERS = 4_000
"""A typed line can't be longer, because it is judged as a whole."""
_FIRST_OUTPUT_S = 0.2
"""How long to wait for a command that fails at once."""


class BackgroundCommand:
    """One command in the background, and its output since the last poll."""

    def __init__(self, id: str, running: RunningCommand, capture: Capture) -> None:  # noqa: A002 - what the model calls it
        self.id = id
        self.running = running
        self.began = time.monotonic()
        self.code: int | None = None
        self.notes: list[str] = []
        self.typed = ""
        """The typed line that is not complete yet."""
        self.ended = asyncio.Event()
        self.news = asyncio.Event()
        self._capture = capture
        self._unseen = bytearray()
        self._skipped = 0

    async def follow(self, commands: SessionCommands) -> None:
        """Collects the output until the command ends, then cleans up."""
        job = self.running.job
        try:
            self.code = await job.wait(None, self._collect)
        finally:
            try:
                await job.stop(STOP_GRACE_S)
                job.drain(self._collect)
            finally:
                self.notes = commands.finish(self.running)
                self._capture.close()
                self.ended.set()
                self.news.set()

    def unseen(self) -> str:
        """Returns the output since the last poll."""
        whole = (
            len(self._unseen) if self.ended.is_set() else whole_characters(self._unseen)
        )
        text = clean(bytes(self._unseen[:whole]).decode(errors="replace"))
        del self._unseen[:whole]
        skipped, self._skipped = self._skipped, 0
        self.news.clear()
        return (
            f"[{skipped:,} bytes not shown{self._capture.where('; ')}]\n{text}"
            if skipped
            else text
        )

    def state(self) -> str:
        """Describes the state of the command."""
        seconds = f"{time.monotonic() - self.began:,.0f} s"
        if not self.ended.is_set():
            return f"runs, for {seconds}"
        job = self.running.job
        how = f"stopped: {job.problem}" if job.problem else _how(self.code)
        return "; ".join([how, *self.notes])

    def _collect(self, chunk: bytes) -> None:
        self._capture.feed(chunk)
        self._unseen += chunk[-_MAX_UNSEEN_BYTES:]
        surplus = max(0, len(self._unseen) - _MAX_UNSEEN_BYTES)
        self._skipped += max(0, len(chunk) - _MAX_UNSEEN_BYTES) + surplus
        del self._unseen[:surplus]
        self.news.set()


class Processes:
    """The background commands of one session."""

    def __init__(self, commands: SessionCommands, output: OutputFolder) -> None:
        self._commands = commands
        self._output = output
        self._numbers = itertools.count(1)
        self._all: dict[str, BackgroundCommand] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def begin(
        self, command: str, folder: Path, context: ToolContext
    ) -> ToolResult:
        """Starts a command and returns its handle."""
        alive = [entry.id for entry in self._all.values() if not entry.ended.is_set()]
        if len(alive) >= _MAX_PROCESSES:
            raise ToolFailed(
                f"{_MAX_PROCESSES} processes are already running.",
                hint=f"Kill one first: {', '.join(alive)}.",
            )
        running = await self._commands.begin(command, folder, context, takes_input=True)
        entry = BackgroundCommand(
            f"p{next(self._numbers)}",
            running,
            self._output.capture("process", running.source),
        )
        self._all[entry.id] = entry
        self._tasks[entry.id] = asyncio.create_task(entry.follow(self._commands))
        await _until(entry.ended.wait(), _FIRST_OUTPUT_S)
        return _report(entry)

    @tool("process", effect="read")
    async def process(
        self,
        action: Literal["poll", "wait", "kill", "list"],
        id: Annotated[  # noqa: A002
            str, Meta(description="Such as p1.")
        ] = "",
        timeout: Annotated[  # noqa: ASYNC109
            int, Meta(ge=1, le=600, description="For wait: seconds.")
        ] = 60,
    ) -> ToolResult:
        """Looks after background commands. poll: new output; wait: the same, at its end or
        when time is up; kill: ends it and all it started; list: all."""
        if action == "list":
            return ToolResult(
                text="\n".join(map(_line, self._all.values()))
                or "Nothing was started in the background."
            )
        entry = self._find(id)
        if action == "wait":
            await _until(entry.ended.wait(), timeout)
        elif action == "kill":
            await self._end(entry)
        return _report(entry)

    @tool("process_write", effect="other")
    async def process_write(
        self,
        context: ToolContext,
        id: str,  # noqa: A002 - the model's
        text: Annotated[
            str, Meta(min_length=1, description="End a line with a newline.")
        ],
    ) -> ToolResult:
        """Sends input to a background command; returns what it says to that."""
        entry = self._find(id)
        await self._write(entry, text, context)
        return _report(entry)

    def typed(self, handle: str) -> str:
        """Returns the part of an incomplete line that was already typed. A backslash at the end of a line continues it."""
        entry = self._all.get(handle)
        return entry.typed if entry else ""

    def about(self, handle: str) -> tuple[Reach, str]:
        """Returns the reach of a process and its command; for an unknown process, neither."""
        entry = self._all.get(handle)
        return (
            (entry.running.fence.reach, entry.running.command)
            if entry
            else ("workspace", "")
        )

    def running(self) -> dict[str, str]:
        """The commands that have not ended, by their id."""
        return {
            entry.id: entry.running.command
            for entry in self._all.values()
            if not entry.ended.is_set()
        }

    async def end_of(self, handle: str) -> None:
        """Waits until a command has ended; returns at once for an unknown one."""
        if (entry := self._all.get(handle)) is not None:
            await entry.ended.wait()

    async def close(self) -> None:
        """Ends all background commands."""
        for entry in list(self._all.values()):
            await self._end(entry)

    def _find(self, id: str) -> BackgroundCommand:  # noqa: A002 - the model's
        entry = self._all.get(id)
        if entry is None:
            raise ToolFailed(
                f"There is no process {id!r}.",
                hint=f"There are: {', '.join(self._all) or 'none'}.",
            )
        return entry

    async def _end(self, entry: BackgroundCommand) -> None:
        task = self._tasks.pop(entry.id, None)
        if task is not None:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def _write(
        self, entry: BackgroundCommand, text: str, context: ToolContext
    ) -> None:
        """Sends input. A command outside the sandbox would do anything, so the call needs the same reach."""
        if not entry.running.confined and context.reach != "machine":
            raise ToolFailed(
                f"{entry.id} runs outside the sandbox, so it can't be sent input.",
                hint="Start it again with its input in the command, so that the user can see what it will do.",
            )
        if entry.ended.is_set():
            raise ToolFailed(f"{entry.id} has ended: {entry.state()}.")
        typed = _unfinished(entry.typed + text)
        if len(typed) > _MAX_TYPED_LINE_CHARACTERS:
            raise ToolFailed(
                f"A line can't be longer than {_MAX_TYPED_LINE_CHARACTERS:,} characters.",
                hint="Nothing was sent.",
            )
        entry.typed = typed
        entry.news.clear()
        data = text.encode(errors="replace")
        while data:
            try:
                data = data[os.write(entry.running.job.input, data) :]
            except BlockingIOError:
                if not await _until(entry.ended.wait(), 5):
                    raise ToolFailed(
                        f"{entry.id} does not read its input.",
                        hint="Some of it was not sent.",
                    ) from None
            except OSError as error:
                raise ToolFailed(
                    f"{entry.id} no longer accepts input: {error.strerror}."
                ) from error
        await _until(entry.news.wait(), _FIRST_OUTPUT_S)


def _unfinished(text: str) -> str:
    """Returns what follows the last complete line."""
    ends = [found.end() for found in re.finditer(r"(?<!\\)(?:\\\\)*\n", text)]
    return text[ends[-1] :] if ends else text


async def _until(event: Awaitable[object], seconds: float) -> bool:
    """Waits for an event, at most so many seconds. Returns whether it happened."""
    try:
        await asyncio.wait_for(event, seconds)
    except TimeoutError:
        return False
    return True


def _how(code: int | None) -> str:
    if code is None:
        return "killed"
    return f"killed by signal {-code}" if code < 0 else f"ended with exit code {code}"


def _line(entry: BackgroundCommand) -> str:
    return f"{entry.id}  {entry.state()}  {entry.running.command.strip().splitlines()[0][:100]}"


def _report(entry: BackgroundCommand) -> ToolResult:
    text = entry.unseen()
    ok = not (entry.ended.is_set() and entry.code not in (0, None))
    body = text if not text or text.endswith("\n") else f"{text}\n"
    return ToolResult(
        text=f"{body}[{entry.id} {entry.state()}]", ok=ok, source=entry.running.source
    )

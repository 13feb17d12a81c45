"""`terminal`: runs a command for the model.

The current folder persists between the calls of a session. Output is shown while it arrives. All processes of a command
end with the call, or with the session if it was started in the background.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from hermes.core.ports import ToolContext
from hermes.errors import ToolFailed
from hermes.primitives.lazy_pattern import lazy_pattern
from hermes.schema.events import Reach
from hermes.schema.tool_spec import ToolResult
from hermes.settings.load import find_home
from hermes.tools.process.background import STOP_GRACE_S, Processes
from hermes.tools.process.long_output import OutputFolder
from hermes.tools.process.progress import Live
from hermes.tools.process.session_commands import (
    RunningCommand,
    SessionCommands,
    Surroundings,
)
from hermes.tools.sandbox import Sandbox
from hermes.tools.tool import tool

_INTERRUPT_GRACE_S = 0.05
"""Shorter, because an interrupt must be done within 200 ms."""
_WITHOUT_RIGHTS = lazy_pattern(
    r"(?i)read-only file system|permission denied|operation not permitted|\b(EROFS|EACCES|EPERM)\b"
)
_CHANGE_REFUSED = lazy_pattern(
    r"(?i)read-only file system|resource busy|\b(EROFS|EBUSY)\b"
)
"""Messages of programs that may not change or replace a file because it is mounted read-only."""
_WITHOUT_NETWORK = lazy_pattern(
    r"(?i)network is unreachable|address family not|name resolution|(could not|couldn't|cannot) resolve"
    r"|name or service not known|\b(ENETUNREACH|EAI_AGAIN|ENOTFOUND)\b|failed to establish a new connection"
    r"|no route to host"
)
_ABOUT_SECRETS = lazy_pattern(
    r"(?i)environment variable|\bdotenv\b|\bKeyError\b|(api|secret|access|private)[ _-]?key|credential|password|\btoken"
)
"""Messages of programs that lack a setting or a key."""
_SEARCHED_CHARACTERS = 6000
_MAX_SECRET_FILES_NAMED = 3


class TerminalTool:
    """The terminal of one session."""

    def __init__(
        self,
        output: OutputFolder,
        environment: Mapping[str, str],
        surroundings: Surroundings | None = None,
    ) -> None:
        self._output = output
        home = find_home(environment).root
        self._commands = SessionCommands(
            surroundings or Surroundings(environment, home, (output.path,))
        )
        self.processes = Processes(self._commands, output)
        self._folder: Path | None = None
        self._session = ""

    @property
    def sandbox(self) -> Sandbox:
        """The sandbox of this machine, found on first use."""
        return self._commands.sandbox

    def folder(self, cwd: Path) -> Path:
        """Returns where the next command runs: where the last one ended, else `cwd`."""
        return (
            self._folder if self._folder is not None and self._folder.is_dir() else cwd
        )

    def accept(self, path: Path) -> None:
        """Accepts a file as it is now, because it was changed with approval while commands run."""
        self._commands.accept(path)

    async def close(self) -> None:
        """Ends what runs in the background, and deletes the session's temporary files."""
        await self.processes.close()
        self._commands.close()

    @tool("terminal", effect="other")
    async def terminal(
        self,
        context: ToolContext,
        command: Annotated[str, Meta(min_length=1)],
        timeout: Annotated[int, Meta(ge=1, le=600, description="Seconds.")] = 120,  # noqa: ASYNC109 - the model's
        background: Annotated[
            bool,
            Meta(
                description="Return at once; go on with `process` and `process_write`."
            ),
        ] = False,
        reach: Annotated[
            Reach,
            Meta(description="More than workspace only if the sandbox was in the way."),
        ] = "workspace",
    ) -> ToolResult:
        """Runs a bash command; returns its output and exit code. The directory is kept between calls. It can write in
        the working directory and a private /tmp only, and has no network, unless `reach` says so. There is no input,
        and what it leaves running is stopped. For files use the other tools."""
        self._require_session(context.session)
        folder = self.folder(context.cwd)
        if background:
            return await self.processes.begin(command, folder, context)
        live = Live(context.show)
        running = await self._commands.begin(command, folder, context)
        source = running.source or self._output.mentions(command)
        capture = self._output.capture("terminal", source)
        job = running.job

        def take(chunk: bytes) -> None:
            capture.feed(chunk)
            live.feed(chunk)

        grace, left, notes = _INTERRUPT_GRACE_S, list[str](), list[str]()
        try:
            code = await job.wait(timeout, take)
            grace = STOP_GRACE_S
        finally:
            try:
                left = await job.stop(grace)
                job.drain(take)
            finally:
                report = job.exit_report()
                live.close()
                notes = self._commands.finish(running)
                capture.close()
        moved = self._move(report.folder, folder)
        notes = [
            *_outcome(code, timeout, job.problem, report.left_running or left),
            *notes,
        ]
        if reach != context.reach:
            notes.append(f"reach was {context.reach}, not {reach}")
        if moved or self.folder(context.cwd) != folder:
            notes.append(f"now in {self.folder(context.cwd)}")
        text = capture.text()
        hint = _refusal(running, text) or (
            self._hint(running, text) if code != 0 else ""
        )
        return ToolResult(
            text=f"{_body(text)}[{'; '.join(notes)}]{hint}", ok=code == 0, source=source
        )

    def _require_session(self, session: str) -> None:
        """Checks that the terminal is used by one session only, because it has one current folder."""
        if self._session not in ("", session):
            raise ToolFailed(
                "This terminal belongs to another session.",
                hint="Each session needs tools of its own.",
            )
        self._session = session

    def _move(self, last: Path | None, folder: Path) -> bool:
        """Records the folder in which the command ended, if it is another one."""
        if last is None or last == folder or last == folder.resolve():
            return False
        self._folder = last
        return True

    def _hint(self, running: RunningCommand, text: str) -> str:
        """Says what to do if the sandbox probably stopped the command."""
        end = text[-_SEARCHED_CHARACTERS:]
        if running.confined and (secrets := _missed_secrets(running, end)):
            return (
                f"\n[Hidden from commands, as they may hold secrets: {secrets}. If the task needs them, ask with reach:"
                " machine. The user can show them to all commands with the setting sandbox.hide_secrets: false.]"
            )
        if not running.confined or not _may_be_stopped(running, end):
            return ""
        has_network = running.fence.reach != "workspace"
        network = "the network" if has_network else "no network"
        reach = "machine" if has_network else "network or machine"
        return (
            f"\n[The sandbox may have stopped this: a command has {network}, can write in {running.fence.workspace} and"
            f" $TMPDIR only, and can't read secrets. If the task needs more, ask with reach: {reach}.]"
        )


def _may_be_stopped(running: RunningCommand, text: str) -> bool:
    """Whether the output looks as if the sandbox stopped something. A command with network access has network errors of
    its own."""
    if running.fence.reach == "workspace" and _WITHOUT_NETWORK.search(text):
        return True
    return _WITHOUT_RIGHTS.search(text) is not None or _names_hidden(running, text)


def _refusal(running: RunningCommand, text: str) -> str:
    """Says what to do if the sandbox kept protected files unchanged. `git switch` succeeds nevertheless."""
    names = _refused_changes(text[-_SEARCHED_CHARACTERS:]) if running.confined else ""
    return names and (
        f"\n[The sandbox did not let this command change {names}, which can instruct agents or run programs later. The"
        " rest of the command may have been done: after a git command, check with git status. To make this change too, use"
        " reach: machine, such as git restore with that path; the user is then asked to allow it.]"
    )


def _refused_changes(text: str) -> str:
    """Names the protected paths of the workspace that, according to the output, could not be changed."""
    from hermes.tools.sandbox.protected_paths import PROTECTED

    refused = [line for line in text.splitlines() if _CHANGE_REFUSED.search(line)]
    return ", ".join(
        name
        for name in (PROTECTED if refused else ())
        if any(_mentions(line, name) for line in refused)
    )


def _mentions(line: str, name: str) -> bool:
    """Whether a line names a path of the workspace, relative to it."""
    return name in line and bool(
        re.search(rf"(?<![\w./-])(\./)?{re.escape(name)}(?![\w.-])", line)
    )


def _missed_secrets(running: RunningCommand, text: str) -> str:
    """Names secret files of the workspace that are hidden but that the command may have needed."""
    from hermes.tools.sandbox.protected_paths import secrets_of

    files = secrets_of(running.fence).files
    names = [path.removeprefix(f"{running.fence.workspace}/") for path in files]
    told = f"{running.command}\n{text}"
    if not _ABOUT_SECRETS.search(text) and not any(
        name.rpartition("/")[2] in told for name in names
    ):
        return ""
    return ", ".join(names[:_MAX_SECRET_FILES_NAMED]) + (
        f" and {len(names) - _MAX_SECRET_FILES_NAMED:,} more"
        if names[_MAX_SECRET_FILES_NAMED:]
        else ""
    )


def _names_hidden(running: RunningCommand, text: str) -> bool:
    """Whether a path is reported as missing that is only hidden."""
    if "No such file" not in text:
        return False
    from hermes.tools.sandbox.protected_paths import hidden

    return any(f"{path.name}/" in text for path in hidden(running.fence))


def _outcome(
    code: int | None, seconds: int, problem: str, left: list[str]
) -> list[str]:
    if problem:
        return [f"stopped: {problem}"]
    if code is None:
        return [f"stopped: it ran longer than {seconds} s (timeout can be up to 600)"]
    notes = [f"killed by signal {-code}" if code < 0 else f"exit code {code}"]
    if left:
        names = ", ".join(sorted(left)[:10]) + (
            f" and {len(left) - 10} more" if left[10:] else ""
        )
        notes.append(f"stopped what it left running: {names}")
    return notes


def _body(text: str) -> str:
    if not text:
        return "(no output) "
    return text if text.endswith("\n") else f"{text}\n"

"""Starts the commands of one session, and clears up behind them: which sandbox, what fence, which environment."""

import asyncio
import contextlib
import os
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from hermes.children.orphan_reaper import OrphanReaper
from hermes.core.ports import ToolContext
from hermes.errors import ToolFailed
from hermes.schema.events import Reach
from hermes.tools.process.command_process import CommandOrder, CommandProcess
from hermes.tools.process.environment import command_environment, confined_environment
from hermes.tools.process.resource_limits import ResourceLimits, emptied
from hermes.tools.sandbox import Fence, Sandbox, find_sandbox
from hermes.tools.sandbox.protected_paths import is_workspace
from hermes.tools.sandbox.repositories import MAX_FOLDERS
from hermes.tools.sandbox.restore import Protection
from hermes.tools.sandbox.session_tmp import TemporaryFolder

NETWORK = "network"
_MAX_COMMAND_BYTES = 100_000
_MAX_STARTS = 5
_SHELLS = (
    Path("/bin/bash"),
    Path("/usr/bin/bash"),
    Path("/usr/local/bin/bash"),
    Path("/bin/sh"),
)


class Surroundings(msgspec.Struct, frozen=True):
    """What commands find around them, and how it is found."""

    environment: Mapping[str, str]
    hermes_home: Path
    readable: tuple[Path, ...] = ()
    limits: ResourceLimits = ResourceLimits()
    sandbox: Callable[[str, Path], Sandbox] = find_sandbox
    temporary: Path | None = None
    """Where the session's temporary folder is made; the system's place when not said."""
    hide_secrets: bool = True
    """Whether a project's own secret files are hidden from confined commands."""


class RunningCommand(msgspec.Struct, frozen=True):
    """A command that runs, with what must be looked at when it has ended."""

    command: str
    job: CommandProcess
    fence: Fence
    protection: Protection | None
    """None when nothing confines it."""

    @property
    def confined(self) -> bool:
        return self.protection is not None

    @property
    def source(self) -> str:
        """Whose words its output may hold: with the network, anybody's."""
        return "" if self.fence.reach == "workspace" else NETWORK


class SessionCommands:
    """The commands of one session."""

    def __init__(self, surroundings: Surroundings) -> None:
        self._around = surroundings
        self._temporary = TemporaryFolder(surroundings.temporary)
        self._undone = TemporaryFolder(surroundings.temporary, keeps=True)
        """Beside the temporary folder: commands may read what was moved here, and can't write or put a link."""
        self._guarding: list[Protection] = []
        """Of the commands that run."""
        self._told_cut = False
        self._reaper = OrphanReaper()
        self._shell = next(
            (shell for shell in _SHELLS if shell.exists()), Path("/bin/sh")
        )

    @property
    def sandbox(self) -> Sandbox:
        """What confines commands here; looked for at the first question."""
        return self._around.sandbox(
            self._around.environment.get("PATH", ""), self._user_home
        )

    @property
    def _user_home(self) -> Path:
        home = self._around.environment.get("HOME", "")
        return (
            Path(os.path.realpath(home))
            if home.startswith("/")
            else Path("/nonexistent")
        )

    async def begin(
        self,
        command: str,
        folder: Path,
        context: ToolContext,
        *,
        takes_input: bool = False,
    ) -> RunningCommand:
        """Starts a command and waits until it really runs.

        A sandbox can fail to be made when what it was to cover is just being deleted: then it is made once more.
        """
        words = ""
        await asyncio.to_thread(self._prepare, context)
        for _ in range(_MAX_STARTS):
            running = self.start(command, folder, context, takes_input=takes_input)
            began = False
            try:
                began = await running.job.began()
            finally:
                if not began:
                    words = await self._give_up(running)
            if began:
                return running
        raise ToolFailed(
            f"The sandbox could not be made: {words}.", hint="Nothing was run."
        )

    def _prepare(self, context: ToolContext) -> None:
        """What fails here fails again at the start, which tells."""
        with contextlib.suppress(OSError, ValueError):
            self.sandbox.prepare(self._fence(context.cwd, context.reach))

    async def _give_up(self, running: RunningCommand) -> str:
        """Clears up what did not begin; returns its last words."""
        said: list[bytes] = []
        await running.job.stop(0)
        running.job.drain(said.append)
        self.finish(running)
        return b"".join(said).decode(errors="replace").strip()[:500]

    def start(
        self,
        command: str,
        folder: Path,
        context: ToolContext,
        *,
        takes_input: bool = False,
    ) -> RunningCommand:
        """Starts a command as far as the call may reach."""
        if (
            "\0" in command
            or len(command.encode(errors="replace")) > _MAX_COMMAND_BYTES
        ):
            raise ToolFailed(
                f"A command can't be longer than {_MAX_COMMAND_BYTES:,} bytes or hold a NUL.",
                hint="Nothing was run. Write long text to a file with write_file.",
            )
        sandbox = self.sandbox
        try:
            fence = self._fence(context.cwd, context.reach)
            confined = sandbox.kind != "none" and context.reach != "machine"
            held = sandbox.kind == "bubblewrap"
            protection = Protection(fence.workspace, held=held) if confined else None
            around = self._around.environment
            environment = (
                confined_environment(around, fence.temporary)
                if confined
                else command_environment(around)
            )
            order = CommandOrder(
                command,
                self._shell,
                folder,
                environment,
                context.session,
                takes_input,
                self._around.limits,
            )
            job = CommandProcess(order, sandbox, fence)
        except (OSError, ValueError) as error:
            raise ToolFailed(
                f"The command could not be started in {folder}: {error}."
            ) from error
        if not job.ends_with_hermes:
            self._reaper.watch(job.mark)
        if protection is not None:
            self._guarding.append(protection)
        return RunningCommand(command, job, fence, protection)

    def accept(self, path: Path) -> None:
        """A file was changed with approval while commands run: when they end, it stays as it is now."""
        for protection in list(self._guarding):
            protection.accept(Path(os.path.realpath(path)))

    def finish(self, running: RunningCommand) -> list[str]:
        """Lets go of a command that has ended. Returns what the model must know of what it left behind."""
        running.job.close()
        if not running.job.ends_with_hermes:
            self._reaper.forget(running.job.mark)
        if running.job.problem:
            emptied(running.fence.temporary)
        protection = running.protection
        if protection is None:
            return []
        self._guarding.remove(protection)
        return self._undo(protection) if is_workspace(running.fence.workspace) else []

    def _undo(self, protection: Protection) -> list[str]:
        """Brings back what runs later. What is moved aside goes where no command can write or put a link."""
        changed = protection.changed()
        notes: list[str] = []
        if protection.is_cut and not self._told_cut:
            self._told_cut = True
            notes.append(
                f"only the first {MAX_FOLDERS:,} folders are searched for new repositories that run something"
            )
        if not changed:
            return notes
        aside = self._undone.path()
        done, left = protection.undo(aside)
        if done:
            kept = f" (what was written is in {aside})"
            notes.append(
                f"undone, as it can run something later: {_listed(done)}{kept}"
            )
        if left:
            notes.append(
                f"changed, can run something later, and could not be undone: {_listed(left)}"
            )
        return notes

    def close(self) -> None:
        """Stops watching, and deletes the temporary folders. What was undone stays: it may be a person's."""
        self._reaper.close()
        self._temporary.close()
        self._undone.close()

    def _fence(self, workspace: Path, reach: Reach) -> Fence:
        return Fence(
            workspace=Path(os.path.realpath(workspace)),
            temporary=self._temporary.path(),
            reach=reach,
            user_home=self._user_home,
            hermes_home=Path(os.path.realpath(self._around.hermes_home)),
            readable=tuple(
                path
                for path in (*self._around.readable, *self._undone.made())
                if path.is_dir()
            ),
            hide_secrets=self._around.hide_secrets
            and self.sandbox.kind == "bubblewrap",
        )


def _listed(paths: list[Path]) -> str:
    return ", ".join(map(str, paths[:5])) + (
        f" and {len(paths) - 5} more" if paths[5:] else ""
    )

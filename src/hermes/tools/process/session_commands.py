"""Starts the commands of one session in the right sandbox, fence and environment, and cleans up after them."""

import asyncio
import contextlib
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from hermes.children.helper_programs import personal_program_folders
from hermes.children.orphan_reaper import OrphanReaper
from hermes.core.ports import ToolContext
from hermes.errors import ToolFailed
from hermes.tools.process.resource_limits import ResourceLimits, emptied
from hermes.tools.sandbox import Fence, Sandbox, find_sandbox
from hermes.tools.sandbox.session_tmp import TemporaryFolder

if (
    TYPE_CHECKING
):  # the code that starts and confines commands is loaded for the first one
    from hermes.tools.process.command_process import CommandProcess
    from hermes.tools.sandbox.restore import Protection

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
    """The environment of commands, and how their sandbox is found."""

    environment: Mapping[str, str]
    hermes_home: Path
    readable: tuple[Path, ...] = ()
    limits: ResourceLimits = ResourceLimits()
    sandbox: Callable[[str, Path], Sandbox] = find_sandbox
    temporary: Path | None = None
    """Where the session's temporary folder is made; by default the system's."""
    hide_secrets: bool = True
    """Whether a project's own secret files are hidden from confined commands."""


class RunningCommand(msgspec.Struct, frozen=True):
    """A running command, with what must be checked when it has ended."""

    command: str
    job: "CommandProcess"
    fence: Fence
    protection: "Protection | None"
    """None if nothing confines the command."""

    @property
    def confined(self) -> bool:
        return self.protection is not None

    @property
    def source(self) -> str:
        """The source of the text that its output may contain: with the network, anybody."""
        return "" if self.fence.reach == "workspace" else NETWORK


class SessionCommands:
    """The commands of one session."""

    def __init__(self, surroundings: Surroundings) -> None:
        self._around = surroundings
        self._temporary = TemporaryFolder(surroundings.temporary)
        self._undone = TemporaryFolder(surroundings.temporary, keeps=True)
        """For files that were moved aside. Commands may read them, but can't write or create links here."""
        self._guarding: list[Protection] = []
        """The protections of the running commands."""
        self._told_cut = False
        self._reaper = OrphanReaper()
        self._shell = next(
            (shell for shell in _SHELLS if shell.exists()), Path("/bin/sh")
        )

    @property
    def sandbox(self) -> Sandbox:
        """The sandbox of this machine, found on first use."""
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

        Creating a sandbox can fail while a path that it covers is being deleted; then it is created again.
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
                if takes_input and running.protection is not None:
                    await asyncio.to_thread(running.protection.sync_mark)
                return running
        raise ToolFailed(
            f"The sandbox could not be set up: {words}.", hint="Nothing was run."
        )

    def _prepare(self, context: ToolContext) -> None:
        """Loads the code that starts commands and prepares the sandbox, both in a thread: the event loop must not wait
        for them.

        A failure here happens again at the start, which reports it.
        """
        from hermes.tools.process import command_process  # noqa: F401
        from hermes.tools.sandbox import restore  # noqa: F401

        with contextlib.suppress(OSError, ValueError):
            self.sandbox.prepare(self._fence(context))

    async def _give_up(self, running: RunningCommand) -> str:
        """Cleans up after a command that did not begin; returns its output."""
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
        """Starts a command with the reach of its call."""
        if (
            "\0" in command
            or len(command.encode(errors="replace")) > _MAX_COMMAND_BYTES
        ):
            raise ToolFailed(
                f"A command can't be longer than {_MAX_COMMAND_BYTES:,} bytes or hold a NUL.",
                hint="Nothing was run. Write long text to a file with write_file.",
            )
        from hermes.tools.process.command_process import CommandOrder, CommandProcess
        from hermes.tools.process.environment import (
            command_environment,
            confined_environment,
        )
        from hermes.tools.sandbox.restore import Protection

        sandbox = self.sandbox
        protection: Protection | None = None
        try:
            fence = self._fence(context)
            confined = sandbox.kind != "none" and context.reach != "machine"
            held = sandbox.kind == "bubblewrap"
            if confined:
                protection = Protection(fence.workspace, held=held)
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
            if protection is not None and _may_write(fence):
                protection.mark(fence.hermes_home)
            job = CommandProcess(order, sandbox, fence)
        except (OSError, ValueError) as error:
            if protection is not None:
                protection.unmark()
            raise ToolFailed(
                f"The command could not be started in {folder}: {error}."
            ) from error
        if not job.ends_with_hermes:
            self._reaper.watch(job.mark)
        if protection is not None:
            self._guarding.append(protection)
        return RunningCommand(command, job, fence, protection)

    def accept(self, path: Path) -> None:
        """Accepts a file as it is now, because it was changed with approval while commands run."""
        for protection in list(self._guarding):
            protection.accept(Path(os.path.realpath(path)))

    def finish(self, running: RunningCommand) -> list[str]:
        """Closes a command that has ended. Returns notes for the model about what it left behind."""
        running.job.close()
        if not running.job.ends_with_hermes:
            self._reaper.forget(running.job.mark)
        if running.job.problem:
            emptied(running.fence.temporary)
        protection = running.protection
        if protection is None:
            return []
        from hermes.tools.sandbox.written_notes import listed

        self._guarding.remove(protection)
        if not _may_write(running.fence):
            return []  # these changes were not made by the command
        undone = self._undo(protection)
        written = protection.record_notes(running.fence.hermes_home)
        protection.unmark()
        return [*undone, listed(written)] if written else undone

    def _undo(self, protection: "Protection") -> list[str]:
        """Restores files that run later. Whatever is moved aside goes where no command can write or create links."""
        changed = protection.changed()
        notes: list[str] = []
        if (protection.is_cut or protection.is_product_cut) and not self._told_cut:
            from hermes.tools.sandbox.repositories import (
                MAX_FOLDERS,
                MAX_FOLDERS_WITH_PRODUCTS,
            )

            self._told_cut = True
            most = MAX_FOLDERS if protection.is_cut else MAX_FOLDERS_WITH_PRODUCTS
            notes.append(
                f"only the first {most:,} folders are searched for new repositories that run something"
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
        """Deletes the temporary folders. Files that were moved aside stay, because they may be a person's."""
        self._reaper.close()
        self._temporary.close()
        self._undone.close()

    def _fence(self, context: ToolContext) -> Fence:
        return Fence(
            workspace=Path(os.path.realpath(context.cwd)),
            temporary=self._temporary.path(),
            reach=context.reach,
            read_only=context.read_only,
            user_home=self._user_home,
            hermes_home=Path(os.path.realpath(self._around.hermes_home)),
            readable=tuple(
                path
                for path in (*self._around.readable, *self._undone.made())
                if path.is_dir()
            ),
            programs=personal_program_folders(context.cwd, self._around.environment),
            hide_secrets=self._around.hide_secrets
            and self.sandbox.kind == "bubblewrap",
        )


def _may_write(fence: Fence) -> bool:
    """Whether a confined command may write in its workspace."""
    from hermes.tools.sandbox.protected_paths import is_workspace

    return not fence.read_only and is_workspace(fence.workspace)


def _listed(paths: list[Path]) -> str:
    return ", ".join(map(str, paths[:5])) + (
        f" and {len(paths) - 5} more" if paths[5:] else ""
    )

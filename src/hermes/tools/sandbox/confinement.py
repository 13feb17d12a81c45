"""The confinement of a command: where it may write, what it may not see, and how far it reaches."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from subprocess import Popen
from typing import Literal, Protocol, TypeAlias

import msgspec

from hermes.schema.events import Reach
from hermes.tools.sandbox.mount_check import ExpectedMounts

Kind: TypeAlias = Literal["bubblewrap", "landlock", "none"]


class Fence(msgspec.Struct, frozen=True):
    """The bounds of one command. All paths are absolute and without links."""

    workspace: Path
    temporary: Path
    """The session's own temporary folder."""
    reach: Reach = "workspace"
    user_home: Path = Path("/nonexistent")
    hermes_home: Path = Path("/nonexistent")
    readable: tuple[Path, ...] = ()
    """Paths that may be read although they are in a hidden folder."""
    programs: tuple[str, ...] = ()
    """The user's own program folders in the workspace (`personal_program_folders`). Bubblewrap makes them read-only."""
    read_only: bool = False
    """Whether only the temporary folder can be written."""
    hide_secrets: bool = False
    """Whether to hide the workspace's own secret files too, if the sandbox can."""


class ConfinedLaunch(msgspec.Struct, frozen=True):
    """A program to start: how, where, and with which open files."""

    argv: Sequence[str]
    folder: Path
    environment: Mapping[str, str]
    stdin: int
    output: int
    pass_fds: tuple[int, ...] = ()
    supervised: bool = False
    """Whether Hermes answers the kernel's questions about the program. Without answers, bubblewrap gives it no Unix
    sockets."""

    is_probe: bool = False
    """Whether it ends by itself at once.

    If so, nothing makes it end together with Hermes: bubblewrap's first process could be killed before it releases the
    second one, which would then wait forever.
    """

    def start(
        self, prefix: Sequence[str] = (), more_fds: tuple[int, ...] = ()
    ) -> "Popen[bytes]":
        """Starts the program in a separate session, so that it has no terminal to type into."""
        return Popen(
            [*prefix, *self.argv],
            cwd=self.folder,
            env=dict(self.environment),
            stdin=self.stdin,
            stdout=self.output,
            stderr=self.output,
            pass_fds=self.pass_fds + more_fds,
            start_new_session=True,
        )


class Started(msgspec.Struct, frozen=True):
    """A running program."""

    process: "Popen[bytes]"
    notices: int = -1
    """The file on which the kernel asks what the program may do, or -1; see `seccomp_notify`."""
    mounts: ExpectedMounts | None = None
    """The mounts required before the program may begin, if it runs in namespaces and the kernel asks."""
    ends_with_hermes: bool = False
    """Whether the kernel ends the program when Hermes ends, and everything it started when the program ends."""


class Sandbox(Protocol):
    """A way to confine programs."""

    @property
    def kind(self) -> Kind: ...

    @property
    def why(self) -> str:
        """Why this is not the best kind of sandbox, or what it can't do; empty if there is nothing to report."""
        ...

    def prepare(self, fence: Fence) -> None:
        """Does the slow part of a start, possibly in another thread."""
        ...

    def start(self, launch: ConfinedLaunch, fence: Fence) -> Started:
        """Starts a program inside the fence. A reach of "machine" confines nothing."""
        ...


class NoSandbox(msgspec.Struct, frozen=True):
    """No sandbox: confines nothing, and says why."""

    why: str
    kind: Kind = "none"

    def prepare(self, fence: Fence) -> None:
        """Does nothing."""

    def start(self, launch: ConfinedLaunch, fence: Fence) -> Started:  # noqa: ARG002 - the port's shape
        """Starts the program without confining it."""
        return Started(launch.start())

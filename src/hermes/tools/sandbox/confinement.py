"""What a command is confined to, as data: where it may write, what it may not see, and how far it reaches."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from subprocess import Popen
from typing import Literal, Protocol, TypeAlias

import msgspec

from hermes.schema.events import Reach

Kind: TypeAlias = Literal["bubblewrap", "landlock", "none"]


class Fence(msgspec.Struct, frozen=True):
    """The bounds of one command. All paths are real ones: absolute, without links."""

    workspace: Path
    temporary: Path
    """The session's own temporary folder."""
    reach: Reach = "workspace"
    user_home: Path = Path("/nonexistent")
    hermes_home: Path = Path("/nonexistent")
    readable: tuple[Path, ...] = ()
    """What may be read although it lies in a hidden place."""
    hide_secrets: bool = False
    """Whether the workspace's own secret files are hidden too, where the sandbox can do that."""


class ConfinedLaunch(msgspec.Struct, frozen=True):
    """A program to start: how, where, and with which files."""

    argv: Sequence[str]
    folder: Path
    environment: Mapping[str, str]
    stdin: int
    output: int
    pass_fds: tuple[int, ...] = ()

    def start(
        self, prefix: Sequence[str] = (), more_fds: tuple[int, ...] = ()
    ) -> "Popen[bytes]":
        """Starts it as the first of a session of its own, so that it has no terminal to type into."""
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
    """A program that runs."""

    process: "Popen[bytes]"
    notices: int = -1
    """A file on which the kernel asks what the program may do, or -1; see `seccomp_notify`."""
    ends_with_hermes: bool = False
    """Whether the kernel ends the program when Hermes ends, and everything it started when it ends."""


class Sandbox(Protocol):
    """A way to confine programs."""

    @property
    def kind(self) -> Kind: ...

    @property
    def why(self) -> str:
        """One sentence: why it is not the best kind, or what it can't do. Empty when there is nothing to say."""
        ...

    def prepare(self, fence: Fence) -> None:
        """Does what takes time before a start and can be done in another thread."""
        ...

    def start(self, launch: ConfinedLaunch, fence: Fence) -> Started:
        """Starts a program inside the fence. A fence of reach "machine" confines nothing."""
        ...


class NoSandbox(msgspec.Struct, frozen=True):
    """Confines nothing, and says why."""

    why: str
    kind: Kind = "none"

    def prepare(self, fence: Fence) -> None:
        """There is nothing to do."""

    def start(self, launch: ConfinedLaunch, fence: Fence) -> Started:  # noqa: ARG002 - the port's shape
        """Starts it as it is."""
        return Started(launch.start())

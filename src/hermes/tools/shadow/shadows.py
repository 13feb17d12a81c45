"""The shadows of all working directories. Loads the code that saves and restores files on first use."""

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from hermes.children.git_folder import find_git
from hermes.children.helper_programs import add_workspace
from hermes.core.ports import Clock
from hermes.text.translation import translator
from hermes.tools.shadow.repository import ShadowRepository, blob_id

t = translator(__name__)


if TYPE_CHECKING:
    from hermes.tools.shadow.folder_snapshot import SnapshotLimits
    from hermes.tools.shadow.shadow import Shadow


def turn_file(repository: Path, turn: str) -> Path:
    """The file of a turn's record. The turn's id may come from another machine's log, so it is hashed."""
    name = blob_id(turn.encode(errors="surrogatepass"))
    return repository / "turns" / f"{name}.jsonl"


class RestoreOutcome(msgspec.Struct, frozen=True):
    """The result of restoring files. Paths are in the form shown to a person."""

    restored: tuple[str, ...] = ()
    conflicts: tuple[tuple[str, str], ...] = ()
    """Files that were not changed, and why."""
    unkept: tuple[tuple[str, str], ...] = ()
    """What the turns changed, or may have changed, that was not saved, and why."""


class Shadows:
    """Creates the shadows of all working directories, below one folder."""

    def __init__(
        self,
        home: Path,
        *,
        environment: Mapping[str, str],
        user_home: Path,
        clock: Clock,
        limits: "SnapshotLimits | None" = None,
    ) -> None:
        self.folder = Path(os.path.realpath(home)) / "undo"
        self._environment = environment
        self.clock = clock
        self._limits = limits
        self._home = Path(os.path.realpath(home))
        self._user_home = Path(os.path.realpath(user_home))

    @property
    def git(self) -> str:
        """The path of git; empty if there is none that can be used."""
        return find_git(self._environment)

    @property
    def limits(self) -> "SnapshotLimits":
        """The limits of a snapshot."""
        if self._limits is None:
            from hermes.tools.shadow.folder_snapshot import SnapshotLimits

            self._limits = SnapshotLimits()
        return self._limits

    def at(self, workspace: Path) -> "Shadow":
        """Returns the shadow of a working directory. Creates nothing, and never runs a git from that directory."""
        from hermes.tools.shadow.shadow import Shadow

        real = Path(os.path.realpath(workspace))
        add_workspace(real)
        return Shadow(self, real, ShadowRepository(self._repository(real), self.git))

    def has(self, workspace: Path, turn: str) -> bool:
        """Whether something was saved for a turn. Loads no modules, because most turns change nothing."""
        folder = self._repository(Path(os.path.realpath(workspace)))
        return turn_file(folder, turn).exists()

    def _repository(self, workspace: Path) -> Path:
        return self.folder / hashlib.sha256(os.fsencode(workspace)).hexdigest()[:24]

    def too_wide(self, workspace: Path) -> str:
        """Says why a folder is not saved as a whole; empty if it is."""
        if workspace == self._user_home or workspace in self._user_home.parents:
            return t.logged("it is the home folder, or holds it")
        if workspace.is_relative_to(self._home):
            return t.logged("it belongs to Hermes itself")
        return ""

    @property
    def own_folders(self) -> tuple[Path, ...]:
        """Returns the folders that are never saved."""
        return (self._home,)

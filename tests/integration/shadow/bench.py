"""A working directory with a shadow: run something as a turn would, then look, compare and undo."""

import hashlib
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

from hermes.core.ports import ToolContext
from hermes.testing import FakeClock
from hermes.tools.shadow import RestoreOutcome, ShadowKeeper, Shadows
from hermes.tools.shadow.folder_snapshot import SnapshotLimits
from hermes.tools.shadow.shadow import Shadow

PATH = os.environ.get("PATH", os.defpath)


class Bench:
    """One home, one user home and any number of working directories, with a clock that each turn moves on."""

    def __init__(
        self,
        base: Path,
        *,
        workspace: str = "work",
        home: str = "hermes",
        path: str = PATH,
        limits: SnapshotLimits | None = None,
    ) -> None:
        self.home = base / home
        self.cwd = base / workspace
        self.cwd.mkdir(parents=True, exist_ok=True)
        self.clock = FakeClock(1_000_000.0)
        self.shadows = Shadows(
            self.home,
            environment={"PATH": path},
            user_home=base / "user",
            clock=self.clock,
            limits=limits,
        )
        self.keeper = ShadowKeeper(self.shadows)
        self.shown: list[str] = []
        self._undos = 0

    @property
    def shadow(self) -> Shadow:
        return self.shadows.at(self.cwd)

    def context(self, turn: str, session: str = "s") -> ToolContext:
        return ToolContext("c", session, self.cwd, self.shown.append, turn)

    async def turn(
        self, name: str, work: Callable[[], object], *paths: Path, session: str = "s"
    ) -> None:
        """A whole turn: keeps, works, and ends."""
        await self.keeper.keep(self.context(name, session), paths)
        work()
        await self.end(name)

    async def end(self, name: str) -> None:
        self.clock.advance(1.0)
        await self.keeper.finish(name, self.cwd)
        self.clock.advance(1.0)

    def undo(self, *turns: str, force: bool = False) -> RestoreOutcome:
        self._undos += 1
        return self.shadow.undo(
            turns, session="s", undo=f"undo-{self._undos}", force=force
        )

    def shell(self, command: str) -> None:
        subprocess.run(
            ["sh", "-euc", command], cwd=self.cwd, check=True, capture_output=True
        )


def everything(folder: Path) -> dict[str, tuple[str, str]]:
    """Every path below a folder with its kind, permissions and content; all that undo has to bring back."""
    return {
        str(Path(place, name).relative_to(folder)): _entry(Path(place, name))
        for place, folders, files in os.walk(folder)
        for name in folders + files
    }


def _entry(path: Path) -> tuple[str, str]:
    if path.is_symlink():
        return "link", str(path.readlink())
    if path.is_dir():
        return "folder", ""
    return oct(path.stat().st_mode), hashlib.sha256(path.read_bytes()).hexdigest()

"""Looks after the parts of a workspace that run later (hooks, start-up files, editors' tasks) while a command runs.

Bubblewrap makes those that exist read-only, but can't guard a name that does not exist yet without making it; Landlock
can guard neither. So what changed is brought back when the command has ended, and what appeared is moved aside.
"""

import contextlib
import os
import shutil
import stat
from pathlib import Path
from typing import TypeAlias

from hermes.tools.sandbox.places import protected

_LARGEST, _MOST = 256 * 1024, 400

State: TypeAlias = tuple[int, bytes | str]
"""The mode of a file or link, with its content or target; content that is too large is told by its size and time."""


class Protection:
    """What was there before a command ran. `held`: the kernel keeps what exists, so a change of it is another's."""

    def __init__(self, workspace: Path, *, held: bool) -> None:
        self._workspace = workspace
        self._held = held
        self._before = _read(workspace)
        folders = {os.path.dirname(path) for path in protected(workspace)}  # noqa: PTH120 - many, and fast
        self._folders = {Path(folder): _identity(Path(folder)) for folder in folders}

    def changed(self) -> list[Path]:
        """What is not as it was. A repository that was made meanwhile is no change."""
        after = _read(self._workspace)
        return sorted(path for path in {*self._before, *after} if self._is_changed(path, after.get(path)))

    def undo(self, aside: Path) -> list[Path]:
        """Brings back what changed; what is there now is kept in `aside`. Returns what was changed."""
        changed = self.changed()
        for path in changed:
            before = self._before.get(path)
            if before is not None and isinstance(before[1], str) and not stat.S_ISLNK(before[0]):
                continue  # too large to have been kept: it is only told
            self._move_links(path, aside)
            _move(path, aside)
            if before is not None:
                _write(path, before)
        for path in changed:
            self._remove_empty(path)
        return changed

    def _is_changed(self, path: Path, after: State | None) -> bool:
        before = self._before.get(path)
        if before == after:
            return False
        if before is None:
            made = path.parent if path.parent.name == ".git" else path.parent.parent
            return not (made.name == ".git" and self._folders.get(made, ()) is None and not made.is_symlink())
        return not self._held or any(
            identity != _identity(folder) for folder, identity in self._folders.items() if path.is_relative_to(folder)
        )

    def _move_links(self, path: Path, aside: Path) -> None:
        """Nothing is brought back through a link: it could lead anywhere."""
        for folder in reversed(path.parents):
            if folder.is_relative_to(self._workspace) and folder != self._workspace and folder.is_symlink():
                _move(folder, aside)

    def _remove_empty(self, path: Path) -> None:
        """A folder that appeared with what was moved aside goes too."""
        folder = path.parent
        while path not in self._before and folder != self._workspace and self._folders.get(folder) is None:
            try:
                folder.rmdir()
            except OSError:
                return
            folder = folder.parent


def _identity(folder: Path) -> tuple[int, int] | None:
    try:
        info = folder.lstat()
    except OSError:
        return None
    return (info.st_dev, info.st_ino)


def _read(workspace: Path) -> dict[Path, State]:
    found: dict[Path, State] = {}
    for path in protected(workspace):
        for file in _files(path):
            state = _state(file)
            if state is not None and len(found) < _MOST:
                found[file] = state
    return found


def _files(path: str) -> list[Path]:
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return []
    if not stat.S_ISDIR(mode):
        return [Path(path)]
    return [Path(place, name) for place, _, names in os.walk(path) for name in names][:_MOST]


def _state(path: Path) -> State | None:
    try:
        info = path.lstat()
        if stat.S_ISLNK(info.st_mode):
            return (info.st_mode, str(path.readlink()))
        if stat.S_ISREG(info.st_mode) and info.st_size <= _LARGEST:
            return (info.st_mode, path.read_bytes())
    except OSError:
        return None
    return (info.st_mode, f"{info.st_size} {info.st_mtime_ns}")


def _move(path: Path, aside: Path) -> None:
    if path.is_symlink() or path.exists():
        aside.mkdir(mode=0o700, parents=True, exist_ok=True)
        with contextlib.suppress(OSError):  # it can't be changed, so it was not
            shutil.move(path, aside / f"{os.urandom(3).hex()}-{path.name}")


def _write(path: Path, state: State) -> None:
    mode, content = state
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        if stat.S_ISLNK(mode):
            path.symlink_to(str(content))
        elif isinstance(content, bytes):
            path.write_bytes(content)
            path.chmod(stat.S_IMODE(mode))

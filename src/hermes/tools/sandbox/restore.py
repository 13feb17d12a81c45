"""Looks after the parts of a workspace that run later (hooks, start-up files, editors' tasks) while a command runs.

Bubblewrap makes those that exist read-only, but can't guard a name that does not exist yet without making it; Landlock
can guard neither. So what changed is brought back when the command has ended, and what appeared is moved aside.
"""

import errno
import os
import stat
from pathlib import Path
from typing import NamedTuple, TypeAlias

from hermes.tools.sandbox.aside import Aside, put
from hermes.tools.sandbox.places import git_folders, protected
from hermes.tools.sandbox.repository import points_into, runs_something

_LARGEST, _MOST = 256 * 1024, 400

State: TypeAlias = tuple[int, bytes | str]
"""The mode of a file or link, with its content or target; content that is too large is told by its size and time."""


class Undone(NamedTuple):
    """What was brought back, and what could not be."""

    done: list[Path]
    left: list[Path]


class Protection:
    """What was there before a command ran. `held`: the kernel keeps what exists, so a change of it is another's."""

    def __init__(self, workspace: Path, *, held: bool) -> None:
        self._workspace = workspace
        self._held = held
        self._before = _read(workspace)
        self._gits = frozenset(Path(git) for git in git_folders(workspace) if os.path.lexists(git))
        self._gits_now: frozenset[str] = frozenset()
        folders = {os.path.dirname(path) for path in protected(workspace)}  # noqa: PTH120 - many, and fast
        self._folders = {Path(folder): _identity(Path(folder)) for folder in folders}

    def changed(self) -> list[Path]:
        """What is not as it was. A repository that was made meanwhile is no change, as far as it runs nothing."""
        after = _read(self._workspace)
        self._gits_now = frozenset(git_folders(self._workspace))
        return sorted(path for path in {*self._before, *after} if self._is_changed(path, after.get(path)))

    def undo(self, aside: Path) -> "Undone":
        """Brings back what changed; what is there now is kept in `aside`, a folder no command can write to."""
        done, left = list[Path](), list[Path]()
        for path in self.changed():
            try:
                self._bring_back(path, Aside(aside))
            except OSError:
                left.append(path)
            else:
                done.append(path)
        for path in done:
            self._remove_empty(path)
        return Undone(done, left)

    def _bring_back(self, path: Path, aside: Aside) -> None:
        before = self._before.get(path)
        if before is not None and isinstance(before[1], str) and not stat.S_ISLNK(before[0]):
            raise OSError(errno.EFBIG, "too large to have been kept")
        above = next((self._before[folder] for folder in path.parents if folder in self._before), None)
        if above is not None and stat.S_ISLNK(above[0]):
            raise OSError(errno.ELOOP, "it lies behind a link of the user's")
        if above is not None:
            return  # it lay in what was moved away when the file above it was brought back
        with aside.within(self._workspace, path.parent, make=before is not None) as folder:
            if folder >= 0:
                aside.take(folder, path.name)
            if before is not None:
                put(folder, path.name, *before)

    def _is_changed(self, path: Path, after: State | None) -> bool:
        before = self._before.get(path)
        if before == after:
            return False
        if before is None:
            return self._is_offence(path, after)
        return not self._held or any(
            identity != _identity(folder) for folder, identity in self._folders.items() if path.is_relative_to(folder)
        )

    def _is_offence(self, path: Path, after: State | None) -> bool:
        """Whether something new must go. A new repository is the command's own, but may run nothing."""
        if path.name == ".git" and path.parent != self._workspace:
            return not points_into(path, self._workspace / ".git")
        made = next((folder for folder in path.parents if str(folder) in self._gits_now), None)
        if made is None or made in self._gits or made.is_symlink() or after is None:
            return True
        return stat.S_ISLNK(after[0]) or runs_something(path, made, after[1])

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
    closed: list[Path] = []  # what can't be listed can still be run
    walk = os.walk(path, onerror=lambda error: closed.append(Path(error.filename)))
    found = [Path(place, name) for place, _, names in walk for name in names][:_MOST]
    return closed + found


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

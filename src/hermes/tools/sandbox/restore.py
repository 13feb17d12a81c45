"""Restores the files of a workspace that run later (hooks, start-up files, editors' tasks) after a command.

Bubblewrap makes existing ones read-only, but can't protect a name that does not exist yet without creating it; Landlock
can protect neither. So when the command has ended, changed files are restored and new ones are moved aside.

New project notes (AGENTS.md and the like) stay, because a person may have made them while the command ran: nothing
shows who did. They run nothing, and Hermes reads them only once a person has accepted them (`written_notes`). A note
with a second name is moved aside too: later commands could write it by that name.
"""

import errno
import itertools
import logging
import os
import stat
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, TypeAlias

from hermes.core.prompt import NOTE_FILES, PROJECT_FILES
from hermes.text.translation import translator
from hermes.tools.sandbox.command_markers import (
    CommandMarker,
    CommandStart,
    left_over,
)
from hermes.tools.sandbox.git_settings import points_into, runs_something
from hermes.tools.sandbox.protected_paths import Watched, watched
from hermes.tools.sandbox.quarantine import QuarantineFolder, put
from hermes.tools.sandbox.written_notes import (
    digest_of,
    listed,
    record,
    record_cut,
    stamps,
)

t = translator(__name__)


log = logging.getLogger("hermes.tools")

_MAX_CONTENT_BYTES = 256 * 1024
"""Larger files are compared by size and time."""
_MAX_CONTENTS = 400
"""How many files have their content remembered; the others are compared by size and time."""
_MAX_FILES_PER_NAME = 2_000
_MAX_UNDO_ROUNDS = 50

State: TypeAlias = tuple[int, bytes | str]
"""The mode of a file or link, with its content or target. Of a large file, its size and time instead of its content."""


class Undone(NamedTuple):
    """What was restored, and what could not be."""

    done: list[Path]
    left: list[Path]


class Protection:
    """The state before a command ran. `held`: the kernel protects existing files, so another process changed them."""

    def __init__(self, workspace: Path, *, held: bool) -> None:
        self._workspace = workspace
        self._held = held
        self.is_cut = False
        """Whether the last search stopped because there were too many folders."""
        self.is_product_cut = False
        """Whether it stopped because there were too many folders made by builds."""
        began_ns = time.time_ns()
        found = watched(workspace)
        read_only, self._writable = _notes_by_protection(workspace, held=held)
        self._start = CommandStart(
            workspace=str(workspace),
            began_ns=began_ns,
            notes=stamps((*found.notes, *self._writable)),
            read_only=read_only,
            is_cut=found.is_cut,
            is_product_cut=found.is_product_cut,
        )
        self._marker: CommandMarker | None = None
        self._found_notes = found.notes
        self._new_notes: set[str] = set()
        """Notes in the workspace's own folder that did not exist."""
        self._existed = {name for name in found.names if os.path.lexists(name)}
        self._read_only = _read_only_folders(found) if held else {}
        self._before: dict[Path, State] = {}
        self._accepted: set[Path] = set()
        """Files that were replaced since, so that the kernel no longer protects them."""
        self._deep: dict[Path, str] = {}
        """Files of git folders that the kernel does not protect, with the folder."""
        self._crowded = {
            name for name in found.names if not self._remember(name, found)
        }
        self._gits = frozenset(
            git for git in found.gits.values() if os.path.lexists(git)
        )
        folders = {os.path.dirname(path) for path in found.names}  # noqa: PTH120 - many, and fast
        self._folders = {Path(folder): _identity(Path(folder)) for folder in folders}

    def accept(self, path: Path) -> None:
        """Accepts a file as it is now, because another call changed it with approval."""
        names = set(watched(self._workspace).names)
        if above := [name for name in map(str, (path, *path.parents)) if name in names]:
            self._existed.update(above)
            self._accepted.add(path)
            state = _state(path)
            if state is not None:
                self._before[path] = state
            else:
                self._before.pop(path, None)
            self._accept_note(str(path))

    def _accept_note(self, path: str) -> None:
        if path not in _own_notes(self._workspace):
            return
        if path in self._writable:
            self._writable[path] = digest_of(path)
        self._start.notes.update(stamps([path]))
        if self._marker is not None:
            self._marker.write(self._start)

    def mark(self, hermes_home: Path) -> None:
        """Records in Hermes' home that the command is running, until `record_notes` or `unmark`."""
        if not hermes_home.is_dir():
            return  # no session reads notes from it
        settle_left_over(hermes_home)
        self._marker = CommandMarker(hermes_home, self._start)

    def sync_mark(self) -> None:
        """Makes the mark survive a power cut, for commands that run for a long time."""
        if self._marker is not None:
            self._marker.sync()

    def unmark(self) -> None:
        """Removes the mark, because the command has ended or did not start."""
        if self._marker is not None:
            self._marker.remove()
            self._marker = None

    def changed(self) -> list[Path]:
        """Returns what changed. A new repository does not count as a change while it runs nothing."""
        changed = {path for path in list(self._before) if self._is_changed(path)}
        found = watched(self._workspace)
        self.is_cut = found.is_cut
        self.is_product_cut = found.is_product_cut
        self._found_notes = found.notes
        for name in found.names:
            changed.update(self._appeared(name, found))
        return sorted(changed)

    def record_notes(self, hermes_home: Path) -> list[Path]:
        """Records the project notes that existed at the last `changed` and were written since the command began."""
        # A file that `undo` has restored is another file with the same content.
        own = [path for path, was in self._writable.items() if digest_of(path) != was]
        found = (*self._found_notes, *sorted(self._new_notes), *own)
        return _record(
            hermes_home,
            self._start,
            found,
            is_cut=self.is_cut,
            is_product_cut=self.is_product_cut,
        )

    def undo(self, aside: Path) -> "Undone":
        """Restores what changed, and moves the current files to `aside`, a folder to which no command can write."""
        done, left = dict[Path, None](), dict[Path, None]()
        for _ in range(_MAX_UNDO_ROUNDS):  # moving something away may uncover more
            changed = [
                path for path in self.changed() if path not in done and path not in left
            ]
            for path in changed:
                try:
                    self._restore(path, QuarantineFolder(aside))
                except OSError:
                    left[path] = None
                else:
                    done[path] = None
            for path in changed:
                self._remove_empty(path)
            if not changed:
                break
        else:
            left.update(dict.fromkeys(self.changed()))
        return Undone(list(done), list(left))

    def _remember(self, name: str, found: Watched) -> bool:
        """Remembers the files of a protected name; False if there are too many."""
        files = list(_files(name))
        git = found.gits.get(name, "")
        for file in files[:_MAX_FILES_PER_NAME]:
            if (
                state := _state(file, keep=len(self._before) < _MAX_CONTENTS)
            ) is not None:
                self._before[file] = state
                if git in found.deep:
                    self._deep[file] = git
        return len(files) <= _MAX_FILES_PER_NAME

    def _restore(self, path: Path, aside: QuarantineFolder) -> None:
        before = self._before.get(path)
        if (
            before is not None
            and isinstance(before[1], str)
            and not stat.S_ISLNK(before[0])
        ):
            raise OSError(errno.EFBIG, t.logged("too large to have been remembered"))
        above = next(
            (self._before[folder] for folder in path.parents if folder in self._before),
            None,
        )
        if above is not None and stat.S_ISLNK(above[0]):
            raise OSError(
                errno.ELOOP, t.logged("it is behind a symbolic link of the user")
            )
        if above is not None:
            return  # it was moved away when the file above it was restored
        with aside.within(
            self._workspace, path.parent, make=before is not None
        ) as folder:
            if folder >= 0:
                aside.take(folder, path.name)
            if before is not None:
                put(folder, path.name, *before)

    def _is_changed(self, path: Path) -> bool:
        before = self._before.get(path)
        if before is None or before == _state(path, keep=isinstance(before[1], bytes)):
            return False
        if git := self._deep.get(path):
            return os.path.lexists(git)  # a repository may be deleted as a whole
        return not self._is_held(path) or path in self._accepted

    def _is_held(self, path: Path) -> bool:
        """Whether the kernel kept the command from changing this path, so that somebody else must have done it."""
        return self._held and not any(
            identity != _identity(folder)
            for folder, identity in self._folders.items()
            if path.is_relative_to(folder)
        )

    def _appeared(self, name: str, found: Watched) -> Iterator[Path]:
        """Yields new entries under a protected name that must be removed."""
        if not os.path.lexists(name):
            return
        if name not in self._existed:
            yield from self._new(name, found)
        elif name not in self._crowded:
            is_same = self._read_only.get(name, ()) == _identity(Path(name))
            if is_same and self._is_held(Path(name)):
                return  # the new files may be a person's
            for file in itertools.islice(_files(name), _MAX_FILES_PER_NAME):
                if file not in self._before:
                    yield file

    def _new(self, name: str, found: Watched) -> Iterator[Path]:
        """Yields what must be removed under a protected name that did not exist: everything, but from a new repository
        only what runs something."""
        path, git = Path(name), found.gits.get(name, "")
        if self._is_note(path):
            self._new_notes.add(name)
            return
        if path.name == ".git" and path.parent != self._workspace:
            if not points_into(path, frozenset(found.gits.values())):
                yield path
            return
        is_new_repository = git and git not in self._gits and not os.path.islink(git)  # noqa: PTH114
        files = list(_files(name)) if is_new_repository else []
        if not is_new_repository or len(files) > _MAX_FILES_PER_NAME:
            yield path
            return
        yield from (file for file in files if _runs_something(file, Path(git)))

    def _is_note(self, path: Path) -> bool:
        """Whether a path is a project note: a file with a single name, not a link or a folder that could lead
        elsewhere."""
        if path.parent != self._workspace or path.name not in PROJECT_FILES:
            return False
        try:
            info = path.lstat()
        except OSError:  # somebody removed it in the meantime
            return False
        return stat.S_ISREG(info.st_mode) and info.st_nlink == 1

    def _remove_empty(self, path: Path) -> None:
        """Removes a new folder that is empty after its files were moved aside."""
        folder = path.parent
        while (
            path not in self._before
            and folder != self._workspace
            and self._folders.get(folder) is None
        ):
            try:
                folder.rmdir()
            except OSError:
                return
            folder = folder.parent


def settle_left_over(hermes_home: Path) -> None:
    """Records the notes that commands wrote whose Hermes was killed: everything that changed since they began, because
    nobody saw them end."""
    for path, start in left_over(hermes_home):
        found = watched(Path(start.workspace))
        own = (note for note in _own_notes(start.workspace) if os.path.lexists(note))
        written = _record(
            hermes_home,
            start,
            (*found.notes, *(note for note in own if note not in start.read_only)),
            is_cut=start.is_cut or found.is_cut,
            is_product_cut=start.is_product_cut or found.is_product_cut,
        )
        path.unlink(missing_ok=True)
        if written:
            log.warning("Hermes stopped while a command ran. %s", listed(written))


def _record(
    hermes_home: Path,
    start: CommandStart,
    notes: Iterable[str],
    *,
    is_cut: bool,
    is_product_cut: bool,
) -> list[Path]:
    if is_cut or is_product_cut:
        place = Path(start.workspace)
        record_cut(hermes_home, place, start.began_ns, only_products=not is_cut)
    return record(hermes_home, start.notes, stamps(notes))


def _own_notes(workspace: Path | str) -> list[str]:
    """The paths of the notes in a workspace's own folder, existing or not."""
    return [f"{workspace}/{name}" for name in NOTE_FILES]


def _notes_by_protection(
    workspace: Path, *, held: bool
) -> tuple[tuple[str, ...], dict[str, str]]:
    """The notes in a workspace's own folder: those the kernel protects from the command, and those it may be able to
    write, with a digest of their content."""
    own = [path for path in _own_notes(workspace) if os.path.lexists(path)]
    read_only = tuple(path for path in own if held and _is_single(path, own))
    return read_only, {path: digest_of(path) for path in own if path not in read_only}


def _read_only_folders(found: Watched) -> dict[str, tuple[int, int] | None]:
    """The folders that the kernel makes read-only for the command."""
    return {
        name: _identity(Path(name))
        for name in found.names
        if found.gits.get(name) not in found.deep and _is_folder(name)
    }


def _is_single(note: str, notes: list[str]) -> bool:
    """Whether a note can be written only by a name that the kernel protects; a link may lead to another note."""
    real = os.path.realpath(note)
    try:
        info = os.lstat(real)
    except OSError:
        return False
    return real in notes and stat.S_ISREG(info.st_mode) and info.st_nlink == 1


def _is_folder(name: str) -> bool:
    try:
        return stat.S_ISDIR(os.lstat(name).st_mode)
    except OSError:
        return False


def _identity(folder: Path) -> tuple[int, int] | None:
    try:
        info = folder.lstat()
    except OSError:
        return None
    return (info.st_dev, info.st_ino)


def _runs_something(file: Path, git: Path) -> bool:
    state = _state(file)
    return (
        state is None or stat.S_ISLNK(state[0]) or runs_something(file, git, state[1])
    )


def _files(name: str) -> Iterator[Path]:
    """Yields the files of a protected name, and folders that can't be listed, because their files can still be run.
    Stops one after the maximum."""
    try:
        mode = os.lstat(name).st_mode
    except OSError:
        return iter(())
    return (
        itertools.islice(_walk(name), _MAX_FILES_PER_NAME + 1)
        if stat.S_ISDIR(mode)
        else iter((Path(name),))
    )


def _walk(folder: str) -> Iterator[Path]:
    closed: list[Path] = []
    for place, folders, names in os.walk(
        folder, onerror=lambda error: closed.append(Path(error.filename))
    ):
        yield from (Path(place, name) for name in names)
        yield from (
            path for name in folders if (path := Path(place, name)).is_symlink()
        )
    yield from closed


def _state(path: Path, *, keep: bool = True) -> State | None:
    try:
        info = path.lstat()
        if stat.S_ISLNK(info.st_mode):
            return (info.st_mode, str(path.readlink()))
        if keep and stat.S_ISREG(info.st_mode) and info.st_size <= _MAX_CONTENT_BYTES:
            return (info.st_mode, path.read_bytes())
    except OSError:
        return None
    return (info.st_mode, f"{info.st_size} {info.st_mtime_ns}")

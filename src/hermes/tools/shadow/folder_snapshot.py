"""Snapshots a whole folder: everything git does not ignore, with exact permissions and empty folders.

Git's index lets it read only changed files again. Repositories inside the folder get their own snapshots, because git
would only record their commit.
"""

# Names are bytes here, because a file name need not be valid text.
# ruff: noqa: PTH112, PTH113, PTH114, PTH118, PTH120

import contextlib
import os
import stat
from collections import Counter
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path

import msgspec

from hermes.text.translation import translator
from hermes.tools.shadow.not_kept import closed_folders, note_ignored
from hermes.tools.shadow.path_state import MAX_FILE_BYTES, unkept
from hermes.tools.shadow.repository import EMPTY_TREE, ShadowFailed, ShadowGit, View
from hermes.tools.shadow.turn_record import Tree, Unkept

t = translator(__name__)


MAX_SNAPSHOT_FILES = 50_000
MAX_SNAPSHOT_BYTES = 1024 * 1024 * 1024
"""The maximum bytes of new content in one snapshot."""
MAX_INNER_REPOSITORIES = 64  # that get their own snapshots
_MIN_PACKED_FILES = 500  # from this number on, one pack is faster
_MAX_PACK_FILES = 4_000  # in one pack; git searches all of it for each new file


class SnapshotLimits(msgspec.Struct, frozen=True):
    """The limits of a snapshot."""

    files: int = MAX_SNAPSHOT_FILES
    size: int = MAX_SNAPSHOT_BYTES


class _Listing:
    """The files that git lists in a folder, by their state compared with the index."""

    def __init__(self, out: bytes) -> None:
        self.known: set[bytes] = set()
        self.new: set[bytes] = set()
        self.changed: set[bytes] = set()
        self.gone: set[bytes] = set()
        self.folders: list[bytes] = []
        """Folders without known files: empty, new, or another repository."""
        kinds = {b"?": self.new, b"C": self.changed, b"R": self.gone}
        for entry in out.split(b"\0"):
            kind, path = entry[:1], entry[2:]
            if path.endswith(b"/"):
                self.folders.append(path[:-1])
            elif path:
                kinds.get(kind, self.known).add(path)

    def files(self) -> set[bytes]:
        return (self.known | self.new) - self.gone


def keep_trees(
    git: ShadowGit, root: bytes, leave_out: Iterable[Path], limits: SnapshotLimits
) -> tuple[Tree, ...]:
    """Snapshots a folder, and each repository in it separately."""
    waiting, done = [root], list[Tree]()
    while waiting and len(done) <= MAX_INNER_REPOSITORIES:
        tree, inner = _keep_tree(git, waiting.pop(0), leave_out, limits)
        done.append(tree)
        waiting += [os.path.join(tree.root, path) for path in inner]
    return (
        *done,
        *(
            _refused(
                path,
                t.logged(
                    "more than {count} repositories are in the folder",
                    count=MAX_INNER_REPOSITORIES,
                ),
            )
            for path in waiting
        ),
    )


def _keep_tree(
    git: ShadowGit, root: bytes, leave_out: Iterable[Path], limits: SnapshotLimits
) -> tuple[Tree, list[bytes]]:
    """Snapshots one folder. Returns it with the repositories inside it."""
    view = _view(git, root)
    rules = _rules(view, leave_out)
    listing = ("ls-files", "-z", "-t", "-c", "-o", "-m", "-d", *rules)
    out, complaints = git.run_with_stderr(*listing, "--directory", view=view)
    found = _Listing(out)
    empty, full = _empty_folders(root, found.folders)
    full = full or any(_is_folder(os.path.join(root, path)) for path in found.changed)
    # Git did not list the content of new folders, or of folders that replaced a file.
    if full:
        out, complaints = git.run_with_stderr(*listing, view=view)
        found = _Listing(out)
    inner = found.folders if full else []
    if len(found.files()) > limits.files:
        return _refused(
            root, t.logged("it has more than {files:,} files", files=limits.files)
        ), inner
    infos, closed = _look(root, found)
    left = _left_out(root, infos, found)
    if _new_bytes(found, infos, left.keys()) > limits.size:
        mb = limits.size // 1024**2
        return _refused(
            root, t.logged("it has more than {mb:,} MB of new files", mb=mb)
        ), inner
    _update_or_reset(git, view, found, infos, left.keys())
    if full:
        empty, _ = _empty_folders(
            root, _Listing(git.run(*listing, "--directory", view=view)).folders
        )
    kept = {path: info for path, info in infos.items() if path not in left}
    name = _write_tree(git, view) if kept else EMPTY_TREE
    notes = {
        note.path: note
        for note in (*closed_folders(complaints, view), *closed, *left.values())
    }
    empty = tuple(path for path in empty if os.path.join(root, path) not in notes)
    ignored = note_ignored(git, view, rules, set(map(os.fsencode, leave_out)))
    return Tree(root, name, *_modes(kept), empty, tuple(notes.values()), ignored), inner


def _new_bytes(
    found: _Listing, infos: Mapping[bytes, os.stat_result], left: AbstractSet[bytes]
) -> int:
    new = ((found.new | found.changed) & infos.keys()) - left
    return sum(infos[path].st_size for path in new)


def _update_or_reset(
    git: ShadowGit,
    view: View,
    found: _Listing,
    infos: Mapping[bytes, os.stat_result],
    left: AbstractSet[bytes],
) -> None:
    """Updates the index. If that fails, deletes it, so that the next snapshot starts afresh."""
    try:
        _update(git, view, found, infos, left)
    except ShadowFailed:
        view.index.unlink(missing_ok=True)
        raise


def _view(git: ShadowGit, root: bytes) -> View:
    """Returns the folder as part of the project around it, or on its own if the project ignores it."""
    top = root
    while not os.path.lexists(os.path.join(top, b".git")) and top != b"/":
        top = os.path.dirname(top)
    if top in (root, b"/"):
        return git.view(root, root)
    view = git.view(root, top)
    ignored = git.run(
        "check-ignore",
        "-z",
        "--no-index",
        "--stdin",
        given=b"./\0",
        view=view,
        may_fail=True,
    )
    return git.view(root, root) if ignored else view


def _write_tree(git: ShadowGit, view: View) -> str:
    """Returns the name of the index's tree; remembered until the index changes."""
    info = view.index.stat()
    state = f"{info.st_ino} {info.st_size} {info.st_mtime_ns}"
    memory = view.index.with_name(view.index.name + ".tree")
    with contextlib.suppress(FileNotFoundError):
        known, _, name = memory.read_text().partition("\n")
        if known == state:
            return name
    below = os.path.relpath(view.root, view.top)
    prefix = [b"--prefix=" + below + b"/"] if view.root != view.top else []
    name = git.run("write-tree", *prefix, view=view).decode().strip()
    memory.write_text(f"{state}\n{name}")
    return name


def _refused(root: bytes, why: str) -> Tree:
    return Tree(root, unkept=(Unkept(root, why),))


def _rules(view: View, leave_out: Iterable[Path]) -> list[bytes]:
    """Returns the ignore rules: the project's, its private ones, and our own folders."""
    rules = [b"--exclude-standard"]
    private = os.path.join(view.top, b".git/info/exclude")
    if os.path.isfile(private):
        rules.append(b"--exclude-from=" + private)
    own = (
        folder
        for folder in map(os.fsencode, leave_out)
        if folder.startswith(os.path.join(view.root, b""))
    )
    return rules + [
        b"--exclude=/" + _literal(os.path.relpath(folder, view.top)) + b"/"
        for folder in own
    ]


def _literal(path: bytes) -> bytes:
    """Escapes a path so that as a pattern it matches only itself."""
    for sign in (b"\\", b"*", b"?", b"[", b" "):
        path = path.replace(sign, b"\\" + sign)
    return path


def _look(
    root: bytes, found: _Listing
) -> tuple[dict[bytes, os.stat_result], list[Unkept]]:
    """Stats every file. Also returns the files that can't be reached, which git reports as deleted."""
    infos: dict[bytes, os.stat_result] = {}
    closed: list[Unkept] = []
    start = os.path.join(root, b"")
    for path in found.files() | found.gone:
        try:
            infos[path] = os.lstat(start + path)
        except PermissionError:
            closed.append(Unkept(start + path, "not readable"))
        except OSError:  # deleted since git listed it
            continue
    return {
        path: info for path, info in infos.items() if path not in found.gone
    }, closed


def _left_out(
    root: bytes, infos: Mapping[bytes, os.stat_result], found: _Listing
) -> dict[bytes, Unkept]:
    """Files that are too large or can't be read."""
    start = os.path.join(root, b"")
    large = {
        path: info
        for path, info in infos.items()
        if info.st_size > MAX_FILE_BYTES and stat.S_ISREG(info.st_mode)
    }
    left = {
        path: Unkept(
            start + path,
            f"larger than {MAX_FILE_BYTES // 1024**2} MB",
            unkept(info).blob,
        )
        for path, info in large.items()
    }
    for path in (found.new | found.changed) & infos.keys() - large.keys():
        if stat.S_ISREG(infos[path].st_mode) and not os.access(start + path, os.R_OK):
            left[path] = Unkept(start + path, "not readable", unkept(infos[path]).blob)
    return left


def _update(
    git: ShadowGit,
    view: View,
    found: _Listing,
    infos: Mapping[bytes, os.stat_result],
    left: AbstractSet[bytes],
) -> None:
    """Adds new and changed files to the index, and removes deleted ones."""
    links = {
        path
        for path in found.new
        if path in infos and stat.S_ISLNK(infos[path].st_mode)
    }
    changed = {path for path in found.changed if not _is_below(path, links)}
    lost = {
        path
        for path in changed
        if path not in infos or stat.S_ISDIR(infos[path].st_mode)
    }
    drop = found.gone | lost | (left & found.known)
    fresh = ((found.new & infos.keys()) | changed) - drop - left
    if drop:
        git.run(
            "update-index",
            "-z",
            "--force-remove",
            "--stdin",
            given=_listed(drop),
            view=view,
        )
    pack = (
        ("-c", "core.bigFileThreshold=1", "-c", "core.compression=1")
        if len(fresh) > _MIN_PACKED_FILES
        else ()
    )
    adding = ("update-index", "-z", "--add", "--replace", "--remove", "--stdin")
    ordered = sorted(fresh)
    for start in range(0, len(ordered), _MAX_PACK_FILES):
        git.run(
            *pack,
            *adding,
            given=_listed(ordered[start : start + _MAX_PACK_FILES]),
            view=view,
        )


def _is_below(path: bytes, links: set[bytes]) -> bool:
    """Whether a folder above `path` has become a link."""
    while links and (path := os.path.dirname(path)):
        if path in links:
            return True
    return False


def _listed(paths: Iterable[bytes]) -> bytes:
    return b"".join(path + b"\0" for path in sorted(paths))


def _modes(
    infos: Mapping[bytes, os.stat_result],
) -> tuple[int, int, tuple[tuple[bytes, int], ...]]:
    """The most common permissions of plain and of executable files, and the files with other permissions."""
    modes = {
        path: stat.S_IMODE(info.st_mode)
        for path, info in infos.items()
        if stat.S_ISREG(info.st_mode)
    }
    plain = _usual((mode for mode in modes.values() if not mode & stat.S_IXUSR), 0o644)
    executable = _usual((mode for mode in modes.values() if mode & stat.S_IXUSR), 0o755)
    return (
        plain,
        executable,
        tuple(
            (path, mode)
            for path, mode in modes.items()
            if mode not in (plain, executable)
        ),
    )


def _usual(modes: Iterable[int], default: int) -> int:
    most = Counter(modes).most_common(1)
    return most[0][0] if most else default


def _empty_folders(
    root: bytes, folders: Iterable[bytes]
) -> tuple[tuple[bytes, ...], bool]:
    """The innermost folders of those that hold no files, and whether any of the folders holds files."""
    empty: list[bytes] = []
    full = False
    for folder in folders:
        found, has_files = _leaves(os.path.join(root, folder))
        full = full or has_files
        empty += [] if has_files else [os.path.relpath(leaf, root) for leaf in found]
    return tuple(sorted(empty)), full


def _is_folder(path: bytes) -> bool:
    return os.path.isdir(path) and not os.path.islink(path)


def _leaves(folder: bytes) -> tuple[list[bytes], bool]:
    """The innermost folders, and whether there are files. An unreadable folder counts as having files."""
    leaves: list[bytes] = []
    closed: list[OSError] = []
    for place, folders, files in os.walk(folder, onerror=closed.append):
        if files or any(os.path.islink(os.path.join(place, name)) for name in folders):
            return [], True
        if not folders:
            leaves.append(place)
    return ([], True) if closed else (leaves, False)

"""What a turn changed: the state of each path before it and at its end."""

# Names are bytes here, because a file name need not be valid text.
# ruff: noqa: PTH118, PTH120

import os
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from hermes.text.translation import translator
from hermes.tools.shadow.not_kept import Unseen
from hermes.tools.shadow.path_state import ABSENT, FOLDER, PathState
from hermes.tools.shadow.repository import EMPTY_TREE, ShadowGit
from hermes.tools.shadow.turn_record import Ended, Tree, TurnRecord, Unkept

t = translator(__name__)


_HELD_BACK = PathState("unkept", "not seen")


class PathChange(msgspec.Struct, frozen=True):
    """One path before and after a turn."""

    path: bytes
    before: PathState
    after: PathState


class Changes(msgspec.Struct, frozen=True):
    """Everything a turn changed, as far as it was saved."""

    changes: tuple[PathChange, ...]
    unkept: tuple[Unkept, ...]
    """What was not saved and has changed, or may have."""
    shared: tuple[bytes, ...] = ()
    """Files that another session changed while the turn ran."""
    removable: tuple[bytes, ...] = ()
    """Folders that the turn created, to be removed if undo leaves them empty."""


def changes_of(
    git: ShadowGit, record: TurnRecord, ended: Ended, others: Iterable[TurnRecord] = ()
) -> Changes:
    """Compares the saved state with the state at the end. `others` are turns that ran at the same time."""
    before = record.trees
    found = _between(git, before, ended.trees) if record.whole else {}
    unseen = Unseen(git, before, ended.trees, record.begun.at)
    notes = _hold_back(found, unseen)
    shared = _take_shared(found, record, others)
    after = dict(ended.states)
    for path, touched in record.touched.items():
        if not touched.late or (path not in found and not _kept_in(git, before, path)):
            found[path] = PathChange(path, touched.state, after.get(path, ABSENT))
    real = (change for change in found.values() if change.before != change.after)
    changes = tuple(sorted(real, key=lambda change: change.path))
    notes |= {
        note.path: note
        for note in _unkept(record, ended, changes)
        if note.path not in notes
    }
    return Changes(changes, tuple(notes.values()), shared, _removable(record, changes))


def _take_shared(
    found: dict[bytes, PathChange], record: TurnRecord, others: Iterable[TurnRecord]
) -> tuple[bytes, ...]:
    """Removes the files that only other turns touched, and returns them."""
    theirs = {path for other in others for path in other.touched}
    shared = tuple(path for path in found if path in theirs - record.touched.keys())
    for path in shared:
        del found[path]
    return shared


def _hold_back(found: dict[bytes, PathChange], unseen: Unseen) -> dict[bytes, Unkept]:
    """Makes undo keep files that existed before the turn but were not saved. Returns what undo leaves alone."""
    notes: dict[bytes, Unkept] = {}
    for path, change in found.items():
        if change.before == ABSENT and (note := unseen.hides(path)):
            found[path] = PathChange(path, _HELD_BACK, change.after)
            notes[note.path] = note
    return notes | {
        note.path: note for note in unseen.notes() if note.path not in notes
    }


def _between(
    git: ShadowGit, before: Sequence[Tree], after: Sequence[Tree]
) -> dict[bytes, PathChange]:
    """The differences between two states of a folder. A nested repository missing from one of them counts as empty there."""
    old, new = {tree.root: tree for tree in before}, {tree.root: tree for tree in after}
    found: dict[bytes, PathChange] = {}
    for root in old.keys() | new.keys():
        one, two = (
            old.get(root) or Tree(root, EMPTY_TREE),
            new.get(root) or Tree(root, EMPTY_TREE),
        )
        if not one.tree or not two.tree:
            continue
        for change in (
            *_files(git, one, two),
            *_permissions(git, one, two),
            *_folders(git, one, two),
        ):
            same = found.get(
                change.path, change
            )  # the file may also be in the tree of another repository
            found[change.path] = PathChange(
                change.path,
                same.before if change.before == ABSENT else change.before,
                same.after if change.after == ABSENT else change.after,
            )
    return found


def _files(git: ShadowGit, one: Tree, two: Tree) -> Iterator[PathChange]:
    if one.tree == two.tree:
        return
    out = git.run(
        "diff-tree",
        "-r",
        "-z",
        "--raw",
        "--no-renames",
        "--no-abbrev",
        one.tree,
        two.tree,
    ).split(b"\0")
    old_modes, new_modes = dict(one.modes), dict(two.modes)
    old_marks, new_marks = _marks(one), _marks(two)
    for head, name in zip(out[::2], out[1::2], strict=False):
        mode, new_mode, blob, new_blob, _ = head.decode().lstrip(":").split()
        path = os.path.join(one.root, name)
        before = old_marks.get(path) or _state(mode, blob, old_modes.get(name), one)
        after = new_marks.get(path) or _state(
            new_mode, new_blob, new_modes.get(name), two
        )
        yield PathChange(path, before, after)


def _marks(tree: Tree) -> dict[bytes, PathState]:
    """Files that existed but are not in the tree."""
    return {note.path: PathState("unkept", note.mark) for note in tree.unkept}


def _state(git_mode: str, blob: str, mode: int | None, tree: Tree) -> PathState:
    if git_mode == "000000":
        return ABSENT
    if git_mode == "120000":
        return PathState("link", blob)
    usual = tree.executable if git_mode == "100755" else tree.plain
    return PathState("file", blob, usual if mode is None else mode)


def _permissions(git: ShadowGit, one: Tree, two: Tree) -> Iterator[PathChange]:
    """Files with the same content but other permissions. Git itself distinguishes only executable files from others."""
    if (one.plain, one.executable, dict(one.modes)) == (
        two.plain,
        two.executable,
        dict(two.modes),
    ):
        return
    old, new = _contents(git, one), _contents(git, two)
    for path, state in old.items():
        other = new.get(path)
        if other and other.blob == state.blob and other.mode != state.mode:
            yield PathChange(os.path.join(one.root, path), state, other)


def _contents(git: ShadowGit, tree: Tree) -> dict[bytes, PathState]:
    modes = dict(tree.modes)
    found: dict[bytes, PathState] = {}
    for entry in git.run("ls-tree", "-r", "-z", tree.tree).split(b"\0"):
        if entry:
            head, _, path = entry.partition(b"\t")
            mode, _, blob = head.decode().split()
            found[path] = _state(mode, blob, modes.get(path), tree)
    return found


def _folders(git: ShadowGit, one: Tree, two: Tree) -> Iterator[PathChange]:
    """Empty folders that were created or removed."""
    old, new = set(one.empty), set(two.empty)
    for path in old - new:
        if not git.has(two.tree, path) and not any(
            other.startswith(path + b"/") for other in new
        ):
            yield PathChange(os.path.join(one.root, path), FOLDER, ABSENT)
    for path in new - old:
        if not git.has(one.tree, path) and not any(
            other.startswith(path + b"/") for other in old
        ):
            yield PathChange(os.path.join(one.root, path), ABSENT, FOLDER)


def _kept_in(git: ShadowGit, trees: Sequence[Tree], path: bytes) -> bool:
    """Whether the state saved before the turn has this file."""
    inside = [
        tree
        for tree in trees
        if tree.tree and path.startswith(os.path.join(tree.root, b""))
    ]
    if not inside:
        return False
    tree = max(inside, key=lambda tree: len(tree.root))
    return git.has(tree.tree, os.path.relpath(path, tree.root))


def _unkept(
    record: TurnRecord, ended: Ended, changes: Sequence[PathChange]
) -> Iterator[Unkept]:
    yield from record.unkept
    old = {note.path: note for tree in record.trees for note in tree.unkept}
    new = {note.path: note for tree in ended.trees for note in tree.unkept}
    for path in sorted(old.keys() | new.keys()):
        note = old.get(path) or new[path]
        if not note.mark or note.mark != (new[path].mark if path in new else ""):
            yield note
    for change in changes:
        if (
            change.before.kind == "unkept"
            and change.before != _HELD_BACK
            and change.path not in old
        ):
            yield Unkept(
                change.path, t.logged("too large, not readable, or not a file")
            )


def _removable(record: TurnRecord, changes: Sequence[PathChange]) -> tuple[bytes, ...]:
    """Folders that did not exist before the turn, innermost first."""
    made = {folder for touched in record.touched.values() for folder in touched.made}
    trees = record.trees
    empty = {os.path.join(tree.root, path) for tree in trees for path in tree.empty}
    top = min((tree.root for tree in trees if tree.tree), key=len, default=None)
    for change in changes:
        folder = os.path.dirname(change.path)
        while (
            top
            and change.before == ABSENT
            and folder.startswith(os.path.join(top, b""))
            and folder not in empty
        ):
            made.add(folder)
            folder = os.path.dirname(folder)
    return tuple(sorted(made, key=len, reverse=True))

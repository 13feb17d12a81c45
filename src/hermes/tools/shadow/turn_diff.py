"""A turn's changes as a unified diff."""

# Names are bytes here, because a file name need not be valid text.
# ruff: noqa: PTH118

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from hermes.tools.shadow.path_state import PathState
from hermes.tools.shadow.repository import ShadowGit, View
from hermes.tools.shadow.turn_changes import PathChange

MOST_LINES = 4_000
MOST_CHARACTERS = 400_000

_GIT_MODES = {"file": "100644", "link": "120000"}


def unified(git: ShadowGit, changes: Sequence[PathChange], workspace: bytes) -> str:
    """The diff. Paths in the workspace are relative, others absolute. A long diff is cut, with a note."""
    start = os.path.join(workspace, b"")
    unseen = [
        change
        for change in changes
        if "unkept" in (change.before.kind, change.after.kind)
    ]
    changes = [change for change in changes if change not in unseen]
    inside = [change for change in changes if change.path.startswith(start)]
    outside = [change for change in changes if not change.path.startswith(start)]
    text = _diff(git, inside, len(start)) + _diff(
        git, outside, 1, "--src-prefix=/", "--dst-prefix=/"
    )
    text += "".join(_permissions(changes, start))
    text += "".join(
        f"not shown: {_name(change.path, start)} is or was not saved\n"  # not translated
        for change in unseen
    )
    return _capped(text)


def _diff(
    git: ShadowGit, changes: Sequence[PathChange], cut: int, *options: str
) -> str:
    if not changes:
        return ""
    old = _tree(git, ((change.path[cut:], change.before) for change in changes))
    new = _tree(git, ((change.path[cut:], change.after) for change in changes))
    shown = ("--no-ext-diff", "--no-textconv", "--no-color", "-M", *options)
    return git.run("diff", *shown, old, new).decode("utf-8", "backslashreplace")


def _tree(git: ShadowGit, states: Iterable[tuple[bytes, PathState]]) -> str:
    """Writes a tree of only these files."""
    index = git.folder / "indexes" / "diff"
    index.unlink(missing_ok=True)
    own = os.fsencode(git.folder)
    view = View(own, own, index)
    lines = b"".join(
        f"{_git_mode(state)} {state.blob}\t".encode() + path + b"\0"
        for path, state in states
        if state.kind in ("file", "link")
    )
    try:
        git.run("update-index", "-z", "--index-info", given=lines, view=view)
        return git.run("write-tree", view=view).decode().strip()
    finally:
        index.unlink(missing_ok=True)


def _git_mode(state: PathState) -> str:
    return (
        "100755"
        if state.kind == "file" and state.mode & 0o100
        else _GIT_MODES[state.kind]
    )


def _permissions(changes: Iterable[PathChange], start: bytes) -> Iterable[str]:
    """Permission changes that git's diff does not show."""
    for change in changes:
        old, new = change.before, change.after
        if (
            old.kind == new.kind == "file"
            and old.mode != new.mode
            and _git_mode(old) == _git_mode(new)
        ):
            yield f"permissions of {_name(change.path, start)}: {old.mode:04o} -> {new.mode:04o}\n"


def _capped(text: str) -> str:
    lines = text.splitlines(keepends=True)
    shown: list[str] = []
    size = 0
    for line in lines[:MOST_LINES]:
        size += len(line)
        if size > MOST_CHARACTERS:
            break
        shown.append(line)
    if len(shown) == len(lines):
        return text
    return (
        "".join(shown)
        + f"... {len(lines) - len(shown):,} more lines are not shown\n"  # not translated
    )


def display(path: bytes, workspace: Path) -> str:
    """A path for a person: relative inside the workspace, and always valid text."""
    return _name(path, os.path.join(os.fsencode(workspace), b""))


def _name(path: bytes, start: bytes) -> str:
    return path.removeprefix(start).decode("utf-8", "backslashreplace")

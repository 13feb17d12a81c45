"""Restores files to their state before a turn, unless they have been changed since."""

# Names are bytes here, because a file name need not be valid text.
# ruff: noqa: PTH106, PTH118, PTH120

import contextlib
import os
from collections.abc import Iterable, Sequence

import msgspec

from hermes.errors import os_reason
from hermes.text.translation import translator
from hermes.tools.shadow.path_state import (
    ABSENT,
    FOLDER,
    PathState,
    drop_draft,
    is_below_link,
    read_state,
    write_state,
)
from hermes.tools.shadow.repository import ShadowGit, blob_id
from hermes.tools.shadow.turn_changes import Changes, PathChange

t = translator(__name__)


class Conflict(msgspec.Struct, frozen=True):
    """A file that was not restored, and why."""

    path: bytes
    why: str


class RestorePlan(msgspec.Struct, frozen=True):
    """What will be restored, and what won't."""

    wanted: tuple[PathChange, ...]
    conflicts: tuple[Conflict, ...]


def plan(found: Changes, *, force: bool) -> RestorePlan:
    """Compares every changed path with its current state. With `force`, also restores files changed since the turn."""
    going = {
        c.path
        for c in found.changes
        if _makes_room(c) and read_state(c.path, blob_id) == c.after
    }
    wanted: list[PathChange] = []
    conflicts = [
        Conflict(path, t.logged("another session changed it at the same time"))
        for path in found.shared
    ]
    for change in found.changes:
        drop_draft(change.path)
        if change.before.kind == "unkept":
            continue
        freed = _is_below(change.path, going)
        now = ABSENT if freed else read_state(change.path, blob_id)
        if now == change.before:
            continue
        why = "" if freed else _obstacle(change, now, found)
        if why:
            conflicts.append(Conflict(change.path, why))
        elif force or now in (change.after, FOLDER):
            wanted.append(change)
        elif FOLDER not in (
            change.before,
            change.after,
        ):  # a folder that is still used loses no content
            conflicts.append(
                Conflict(change.path, t.logged("it was changed after the turn"))
            )
    return RestorePlan(tuple(wanted), tuple(conflicts))


def _obstacle(change: PathChange, now: PathState, found: Changes) -> str:
    """Why a path can't be restored even with `force`; empty if it can."""
    if is_below_link(change.path):
        return t.logged("a folder on the way to it is a link now")
    in_the_way = now == FOLDER and change.after != FOLDER
    if in_the_way and not (
        change.before.kind in ("file", "link") and _is_left_empty(change.path, found)
    ):
        return t.logged("a folder is there now")
    return ""


def carry_out(
    git: ShadowGit, changes: Sequence[PathChange], removable: Iterable[bytes]
) -> tuple[list[bytes], list[Conflict]]:
    """Restores the changes. Returns the restored paths, and those that failed.

    Removes first, innermost paths first, so that a file can return where a folder was created.
    """
    contents = git.read_blobs(
        change.before.blob for change in changes if change.before.blob
    )
    going = sorted(
        (c for c in changes if _makes_room(c)),
        key=lambda change: change.path,
        reverse=True,
    )
    coming = [change for change in changes if not _makes_room(change)]
    restored: list[bytes] = []
    failed: list[Conflict] = []
    _put_back(going, contents, restored, failed)
    for folder in removable:
        with contextlib.suppress(OSError):  # not empty, or already gone
            os.rmdir(folder)
    _put_back(coming, contents, restored, failed)
    return sorted(restored), failed


def _makes_room(change: PathChange) -> bool:
    """Whether undoing this removes something whose path another change may need."""
    return change.before == ABSENT or (
        change.before == FOLDER and change.after.kind in ("file", "link")
    )


def _put_back(
    changes: Iterable[PathChange],
    contents: dict[str, bytes],
    restored: list[bytes],
    failed: list[Conflict],
) -> None:
    for change in changes:
        state: PathState = change.before
        try:
            write_state(change.path, state, contents.get(state.blob, b""))
        except OSError as error:
            if FOLDER in (
                change.before,
                change.after,
            ):  # something else was put into it
                continue
            failed.append(Conflict(change.path, os_reason(error)))
        else:
            restored.append(change.path)


def _is_below(path: bytes, going: set[bytes]) -> bool:
    """Whether something above the path is removed first, such as a link that replaced a folder."""
    while len(path) > 1:
        path = os.path.dirname(path)
        if path in going:
            return True
    return False


def _is_left_empty(folder: bytes, found: Changes) -> bool:
    """Whether the turn created every file in a folder, so that undo leaves it empty."""
    going = {change.path for change in found.changes if change.before == ABSENT}
    return all(
        os.path.join(place, name) in going
        for place, _, names in os.walk(folder)
        for name in names
    )

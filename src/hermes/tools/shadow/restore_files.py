"""Brings files back to how they were before a turn, unless somebody has changed them since."""

# Names are bytes here, as a file's name need not be text.
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
    is_led_astray,
    read_state,
    write_state,
)
from hermes.tools.shadow.repository import ShadowGit, blob_id
from hermes.tools.shadow.turn_changes import Changes, PathChange

t = translator(__name__)


class Conflict(msgspec.Struct, frozen=True):
    """A file that was left as it is, and why."""

    path: bytes
    why: str


class RestorePlan(msgspec.Struct, frozen=True):
    """What will be brought back, and what won't."""

    wanted: tuple[PathChange, ...]
    conflicts: tuple[Conflict, ...]


def plan(found: Changes, *, force: bool) -> RestorePlan:
    """Looks at every changed path as it is now. `force` also takes what was changed since."""
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
        ):  # a folder that is in use is no file that is lost
            conflicts.append(
                Conflict(change.path, t.logged("it was changed after the turn"))
            )
    return RestorePlan(tuple(wanted), tuple(conflicts))


def _obstacle(change: PathChange, now: PathState, found: Changes) -> str:
    """What even `force` can't replace."""
    if is_led_astray(change.path):
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
    """Restores what can be; returns that, and what the system did not allow.

    What has to go goes first, the innermost first, so that a file can come back where a folder was made.
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
        with contextlib.suppress(OSError):  # not empty, or gone: nothing to do
            os.rmdir(folder)
    _put_back(coming, contents, restored, failed)
    return sorted(restored), failed


def _makes_room(change: PathChange) -> bool:
    """Whether others may need the place this leaves."""
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
            ):  # others have put something into it
                continue
            failed.append(Conflict(change.path, os_reason(error)))
        else:
            restored.append(change.path)


def _is_below(path: bytes, going: set[bytes]) -> bool:
    """Whether something above the path will be removed first, such as a link in place of a folder."""
    while len(path) > 1:
        path = os.path.dirname(path)
        if path in going:
            return True
    return False


def _is_left_empty(folder: bytes, found: Changes) -> bool:
    """Whether all files in a folder are ones that the turn made, and that will go."""
    going = {change.path for change in found.changes if change.before == ABSENT}
    return all(
        os.path.join(place, name) in going
        for place, _, names in os.walk(folder)
        for name in names
    )

"""Reads and restores what is at a path: nothing, a file, a link, a folder, or something that can't be saved."""

# Names are bytes here, because a file name need not be valid text.
# ruff: noqa: PTH103, PTH104, PTH106, PTH108, PTH112, PTH114, PTH115, PTH118, PTH120, PTH123, PTH211

import contextlib
import os
import stat
from collections.abc import Callable
from typing import Literal, TypeAlias

import msgspec

from hermes.primitives.files import create_private
from hermes.tools.shadow.repository import blob_id

MAX_FILE_BYTES = 10 * 1024 * 1024
"""Larger files are not saved."""

Kind: TypeAlias = Literal["absent", "file", "link", "folder", "unkept"]


class PathState(msgspec.Struct, frozen=True, omit_defaults=True, array_like=True):
    """The state of a path at one moment. `blob` names the content, or distinguishes what can't be saved."""

    kind: Kind
    blob: str = ""
    mode: int = 0


ABSENT = PathState("absent")
FOLDER = PathState("folder")


def read_state(path: bytes, keep: Callable[[bytes], str]) -> PathState:
    """Returns the current state. `keep` saves content and returns its name. A path below a link counts as absent."""
    if is_below_link(path):
        return ABSENT
    try:
        return _read(path, os.lstat(path), keep)
    except (FileNotFoundError, NotADirectoryError):
        return ABSENT
    except PermissionError:
        return _closed(path)


def _read(path: bytes, info: os.stat_result, keep: Callable[[bytes], str]) -> PathState:
    if stat.S_ISLNK(info.st_mode):
        return PathState("link", keep(os.readlink(path)))
    if stat.S_ISDIR(info.st_mode):
        return FOLDER
    if not stat.S_ISREG(info.st_mode) or info.st_size > MAX_FILE_BYTES:
        return unkept(info)
    with open(path, "rb") as file:
        return PathState("file", keep(file.read()), stat.S_IMODE(info.st_mode))


def unkept(info: os.stat_result) -> PathState:
    """Returns the state of something that can't be saved, so that a later change is noticed."""
    return PathState("unkept", f"{info.st_ino}-{info.st_size}-{info.st_mtime_ns}")


def write_state(path: bytes, state: PathState, content: bytes) -> None:
    """Restores a path in one step, so that readers see the old or the new state, never half of one."""
    if state.kind == "absent":
        _remove(path)
        return
    if state.kind == "folder":
        if not os.path.isdir(path) or os.path.islink(path):
            _remove(path)
        os.makedirs(path, exist_ok=True)
        return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    _clear(path)
    draft = _draft(path)
    drop_draft(path)
    try:
        if state.kind == "link":
            os.symlink(content, draft)
        else:
            _write(draft, content, state.mode)
        os.rename(draft, path)
    finally:
        drop_draft(path)


def drop_draft(path: bytes) -> None:
    """Removes what a killed process left while it restored this path."""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        os.unlink(_draft(path))


def _draft(path: bytes) -> bytes:
    return os.path.join(
        os.path.dirname(path), b".hermes-undo-" + blob_id(path)[:12].encode()
    )


def is_below_link(path: bytes) -> bool:
    """Whether a folder above the path is a link, so that writing would go elsewhere."""
    folder = os.path.dirname(path)
    return os.path.realpath(folder) != folder


def _clear(path: bytes) -> None:
    """Removes a folder that contains only empty folders; any other stays, and makes the rename fail."""
    if os.path.isdir(path) and not os.path.islink(path):
        for place, _, _ in os.walk(path, topdown=False):
            with contextlib.suppress(OSError):
                os.rmdir(place)


def _write(path: bytes, content: bytes, mode: int) -> None:
    with create_private(path) as file:
        file.write(content)
        os.fchmod(file.fileno(), mode)


def _remove(path: bytes) -> None:
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        if stat.S_ISDIR(os.lstat(path).st_mode):
            os.rmdir(path)
        else:
            os.unlink(path)


def _closed(path: bytes) -> PathState:
    try:
        return unkept(os.lstat(path))
    except OSError:
        return PathState("unkept")

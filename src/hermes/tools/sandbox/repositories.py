"""Finds the repositories of a workspace, however deep, as git itself would: by `.git`, or by what lies in a git folder.

The search is bounded, the outermost folders come first, and a folder that has not changed is not read again.
"""

import functools
import os
import time
from collections import deque
from pathlib import Path

import msgspec

FOLDERS = 5_000
_SETTLED_NS = 100_000_000
"""How long ago a folder must have changed: the kernel's clock of changes is coarse."""


class Repositories(msgspec.Struct, frozen=True):
    """What was found, absolute."""

    gits: tuple[str, ...]
    """Git folders: `.git`, and folders that git takes for one by what is in them."""
    pointers: tuple[str, ...]
    """Files and links called `.git`, which say where the git folder is."""
    is_cut: bool
    """Whether there are more folders than were looked into."""


class _Folder(msgspec.Struct, frozen=True):
    stamp: tuple[int, int, int]
    inner: tuple[str, ...]
    gits: tuple[str, ...]
    pointers: tuple[str, ...]


def find_repositories(workspace: Path) -> Repositories:
    """All repositories of a workspace, as they are now."""
    kept = _kept(str(workspace))
    known, unchanged = kept[0], dict[str, _Folder]()
    settled = time.time_ns() - _SETTLED_NS
    waiting, looked_at = deque([str(workspace)]), 0
    gits, pointers = list[str](), list[str]()
    while waiting and looked_at < FOLDERS:
        path = waiting.popleft()
        looked_at += 1
        try:
            folder = _look(path, known.get(path))
        except OSError:  # gone, or not ours to read
            continue
        if folder.stamp[2] < settled:
            unchanged[path] = folder
        waiting.extend(folder.inner)
        gits += folder.gits
        pointers += folder.pointers
    kept[0] = unchanged
    return Repositories(tuple(gits), tuple(pointers), is_cut=bool(waiting))


@functools.lru_cache(maxsize=4)
def _kept(workspace: str) -> list[dict[str, _Folder]]:  # noqa: ARG001 - one for each
    return [{}]


def _look(path: str, known: _Folder | None) -> _Folder:
    info = os.lstat(path)
    stamp = (info.st_dev, info.st_ino, info.st_ctime_ns)  # a command can set the other time, but not this one
    if known is not None and known.stamp == stamp:
        return known
    with os.scandir(path) as entries:
        names = {entry.name: entry.is_dir(follow_symlinks=False) for entry in entries}
    is_git = "HEAD" in names and ("commondir" in names or names.keys() >= {"objects", "refs"})
    gits = [path] if is_git else []
    own, is_folder = f"{path}/.git", names.pop(".git", None)
    inner = tuple(f"{path}/{name}" for name, is_inner in names.items() if is_inner)
    return _Folder(stamp, inner, (*gits, own) if is_folder else tuple(gits), (own,) if is_folder is False else ())

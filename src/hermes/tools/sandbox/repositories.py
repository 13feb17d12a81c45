"""Finds the repositories of a workspace, however deep, as git itself would: by `.git`, or by what lies in a git folder.

The search is bounded, the outermost folders come first, and a folder that has not changed is not read again.
"""

import functools
import os
import time
from collections import deque
from pathlib import Path

import msgspec

from hermes.tools.sensitive import is_build_product

FOLDERS = 2_000
_WITH_PRODUCTS = 500
"""As long as fewer folders were looked into, so are those that builds and package managers make."""
_SETTLED_NS = 100_000_000
"""How long ago a folder must have changed: the kernel's clock of changes is coarse."""


class Repositories(msgspec.Struct, frozen=True):
    """What was found, absolute."""

    gits: tuple[str, ...]
    """Git folders: `.git`, and folders that git takes for one by what is in them."""
    pointers: tuple[str, ...]
    """Files and links called `.git`, which say where the git folder is."""
    is_cut: bool
    """Whether there are more folders than were looked into, leaving out what builds make."""


class _Folder(msgspec.Struct, frozen=True):
    stamp: tuple[int, int, int]
    inner: tuple[str, ...]
    products: tuple[str, ...]
    """Folders that builds and package managers make, which are many."""
    gits: tuple[str, ...]
    pointers: tuple[str, ...]


def find_repositories(workspace: Path) -> Repositories:
    """All repositories of a workspace, as they are now."""
    kept = _kept(str(workspace))
    known, unchanged = kept[0], dict[str, _Folder]()
    settled = time.time_ns() - _SETTLED_NS
    waiting, later, looked_at = deque([str(workspace)]), deque[str](), 0
    gits, pointers = list[str](), list[str]()
    while (queue := waiting or later) and looked_at < (
        FOLDERS if waiting else _WITH_PRODUCTS
    ):
        path = queue.popleft()
        looked_at += 1
        try:
            folder = _look(path, known.get(path))
        except OSError:  # gone, or not ours to read
            continue
        if folder.stamp[2] < settled:
            unchanged[path] = folder
        queue.extend(folder.inner)
        later.extend(folder.products)
        gits += folder.gits
        pointers += folder.pointers
    kept[0] = unchanged
    return Repositories(tuple(gits), tuple(pointers), is_cut=bool(waiting))


@functools.lru_cache(maxsize=4)
def _kept(workspace: str) -> list[dict[str, _Folder]]:  # noqa: ARG001 - one for each
    return [{}]


def _look(path: str, known: _Folder | None) -> _Folder:
    info = os.lstat(path)
    stamp = (
        info.st_dev,
        info.st_ino,
        info.st_ctime_ns,
    )  # a command can set the other time, but not this one
    if known is not None and known.stamp == stamp:
        return known
    with os.scandir(path) as entries:
        names = {entry.name: entry.is_dir(follow_symlinks=False) for entry in entries}
    is_git = "HEAD" in names and (
        "commondir" in names or names.keys() >= {"objects", "refs"}
    )
    gits = [path] if is_git else []
    own, is_folder = f"{path}/.git", names.pop(".git", None)
    folders = [name for name, is_inner in names.items() if is_inner]
    products = {name for name in folders if is_build_product(Path(name))}
    inner = tuple(f"{path}/{name}" for name in folders if name not in products)
    more = tuple(f"{path}/{name}" for name in products)
    return _Folder(
        stamp,
        inner,
        more,
        (*gits, own) if is_folder else tuple(gits),
        (own,) if is_folder is False else (),
    )

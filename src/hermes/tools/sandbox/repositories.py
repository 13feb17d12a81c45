"""Finds the repositories of a workspace at any depth, as git would: by `.git`, or by the contents of a git folder.

The search is bounded, goes from the outermost folders inwards, and does not read unchanged folders again.
"""

import functools
import os
import time
from collections import deque
from collections.abc import Mapping
from pathlib import Path

import msgspec

from hermes.core.prompt import NOTE_FILES
from hermes.tools.sensitive import is_build_product

MAX_FOLDERS = 2_000
MAX_FOLDERS_WITH_PRODUCTS = 10_000
"""How many folders made by builds and package managers are searched, in addition to the others."""
_SETTLED_NS = 100_000_000
"""How old the last change of a folder must be to be trusted: the kernel's clock is coarse."""


class Repositories(msgspec.Struct, frozen=True):
    """The repositories of a workspace, as absolute paths."""

    gits: tuple[str, ...]
    """Git folders: `.git`, and folders whose contents make git treat them as one."""
    pointers: tuple[str, ...]
    """Files and links called `.git`, which say where the git folder is."""
    is_cut: bool
    """Whether there are more folders than the search covers, not counting those made by builds."""
    is_product_cut: bool
    """Whether there are more folders made by builds than the search covers."""
    notes: tuple[str, ...] = ()
    """Files with the names of project notes."""


class _Folder(msgspec.Struct, frozen=True):
    stamp: tuple[int, int, int]
    inner: tuple[str, ...]
    products: tuple[str, ...]
    """Folders that builds and package managers make, which are many."""
    gits: tuple[str, ...]
    pointers: tuple[str, ...]
    notes: tuple[str, ...]


def find_repositories(workspace: Path) -> Repositories:
    """Returns all repositories of a workspace, as they are now."""
    kept = _kept(str(workspace))
    known, unchanged = kept[0], dict[str, _Folder]()
    settled = time.time_ns() - _SETTLED_NS
    waiting, later, looked_at = deque([str(workspace)]), deque[str](), 0
    gits, pointers, notes = list[str](), list[str](), list[str]()
    while (queue := waiting or later) and looked_at < (
        MAX_FOLDERS if waiting else MAX_FOLDERS_WITH_PRODUCTS
    ):
        path = queue.popleft()
        looked_at += 1
        try:
            folder = _look(path, known.get(path))
        except OSError:  # gone, or not readable for us
            continue
        if folder.stamp[2] < settled:
            unchanged[path] = folder
        queue.extend(folder.inner)
        later.extend(folder.products)
        gits += folder.gits
        pointers += folder.pointers
        notes += folder.notes
    kept[0] = unchanged
    return Repositories(
        tuple(gits),
        tuple(pointers),
        is_cut=bool(waiting),
        is_product_cut=bool(later),
        notes=tuple(notes),
    )


@functools.lru_cache(maxsize=4)
def _kept(workspace: str) -> list[dict[str, _Folder]]:  # noqa: ARG001 - one for each
    return [{}]


def _look(path: str, known: _Folder | None) -> _Folder:
    """Reads a folder, unless it has not changed since it was read."""
    info = os.lstat(path)
    # A command can set the modification time, but not this one.
    stamp = (info.st_dev, info.st_ino, info.st_ctime_ns)
    if known is not None and known.stamp == stamp:
        return known
    with os.scandir(path) as entries:
        names = {entry.name: entry.is_dir(follow_symlinks=False) for entry in entries}
    gits = [path] if _is_git_folder(names) else []
    pointers: list[str] = []
    if ".git" in names:
        (gits if names.pop(".git") else pointers).append(f"{path}/.git")
    inner: list[str] = []
    products: list[str] = []
    for name, is_folder in names.items():
        if is_folder:
            group = products if is_build_product(Path(name)) else inner
            group.append(f"{path}/{name}")
    notes = tuple(f"{path}/{name}" for name in NOTE_FILES if name in names)
    return _Folder(
        stamp, tuple(inner), tuple(products), tuple(gits), tuple(pointers), notes
    )


def _is_git_folder(names: Mapping[str, bool]) -> bool:
    """Whether git would treat a folder with these entries as a git folder."""
    return "HEAD" in names and (
        "commondir" in names or names.keys() >= {"objects", "refs"}
    )

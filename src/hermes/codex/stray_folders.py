"""Removes empty folders that codex's sandbox creates in the workspace and leaves behind when a command is killed.

An empty `.git` changes which folder git considers the project. Only empty folders that did not exist before are
removed, never a file.
"""

import contextlib
from collections.abc import Iterable
from pathlib import Path

_NAMES = (".git", ".codex", ".agents", ".aws")


def possible_folders(folders: Iterable[Path]) -> frozenset[Path]:
    """Returns the paths where such folders could appear, because nothing exists there now."""
    return frozenset(
        place
        for folder in folders
        for name in _NAMES
        if not _is_there(place := folder / name)
    )


def sweep(absent: Iterable[Path]) -> None:
    """Removes empty folders at paths where nothing existed before."""
    for place in absent:
        with contextlib.suppress(
            OSError
        ):  # missing, not a folder, or not empty: not a leftover of codex
            place.rmdir()


def _is_there(place: Path) -> bool:
    try:
        place.lstat()
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return True

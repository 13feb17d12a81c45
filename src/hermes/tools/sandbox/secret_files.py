"""The secret files of a workspace: keys and .env files that a command may not read unless the user allows it.

Files that git tracks are in everybody's copy of the project, so they are left alone; so are files that builds and
package managers create. The search is bounded: the outermost folders come first.
"""

import os
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import TypeAlias

import msgspec

from hermes.tools.sandbox.git_index import index_of, tracked
from hermes.tools.sensitive import is_build_product, is_secret

Identity: TypeAlias = tuple[int, int]

_MAX_FOLDERS = 1_000
_MAX_SECRETS = 100
_CODE = (
    *(
        ".py",
        ".pyi",
        ".js",
        ".jsx",
        ".mjs",
        ".ts",
        ".tsx",
        ".go",
        ".rs",
        ".c",
        ".h",
        ".cc",
        ".cpp",
        ".hpp",
        ".java",
    ),
    *(
        ".kt",
        ".rb",
        ".php",
        ".cs",
        ".swift",
        ".sh",
        ".sql",
        ".html",
        ".css",
        ".scss",
        ".vue",
        ".svelte",
        ".md",
        ".rst",
    ),
    *(".png", ".jpg", ".svg", ".lock"),
)
"""Names that need no closer look: most files of most projects."""


class SecretFiles(msgspec.Struct, frozen=True):
    """The files that were found, and the searched folders: the result is valid until one of them changes."""

    files: tuple[str, ...] = ()
    looked_at: tuple[str, ...] = ()
    identities: frozenset[Identity] = frozenset()


def workspace_secrets(
    workspace: Path, known: AbstractSet[Identity] = frozenset()
) -> SecretFiles:
    """The secret files and folders of a workspace, as absolute paths. Paths `known` as secret stay so, whatever git
    says now."""
    top = str(workspace)
    waiting, looked_at, indexes = [(top, top)], list[str](), list[str]()
    found: dict[str, list[str]] = {}
    while waiting and len(looked_at) < _MAX_FOLDERS:
        folder, repository = waiting.pop(0)
        looked_at.append(folder)
        entries = _entries(folder)
        if any(entry.name == ".git" for entry in entries):
            repository = folder
            indexes.append(index_of(folder))
        for entry in entries:
            is_folder = entry.is_dir(follow_symlinks=False)
            if _is_secret(entry.path[len(top) + 1 :], entry.name, is_folder=is_folder):
                found.setdefault(repository, []).append(os.path.realpath(entry.path))
            elif (
                is_folder
                and entry.name != ".git"
                and not is_build_product(Path(entry.name))
            ):
                waiting.append((entry.path, repository))
    files = [
        path
        for repository, paths in found.items()
        for path in _untracked(repository, paths[:_MAX_SECRETS], known)
    ]
    identities = frozenset(
        identity for identity in map(_identity, files) if identity is not None
    )
    return SecretFiles(tuple(files), (*looked_at, *indexes), identities)


def _is_secret(relative: str, name: str, *, is_folder: bool) -> bool:
    """Whether to hide it. The content of a secret folder never gets here, so for a file only the name matters."""
    if is_folder:
        return is_secret(Path(relative, "file"))
    return not (name.endswith(_CODE) and not name.startswith(".")) and is_secret(
        Path(name)
    )


def _entries(folder: str) -> "list[os.DirEntry[str]]":
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError:  # gone, or not readable for us, and so not for the command either
        return []


def _untracked(
    repository: str, paths: list[str], known: AbstractSet[Identity]
) -> Iterable[str]:
    """The paths that git does not track, and those `known` as secret, because a command can write the index."""
    if not os.path.lexists(f"{repository}/.git"):
        return paths
    names = tracked(repository)
    folders = {
        name[:at] for name in names for at, letter in enumerate(name) if letter == "/"
    }
    relative = {path: os.path.relpath(path, repository) for path in paths}
    return [
        path
        for path, name in relative.items()
        if (name not in names and name not in folders) or _identity(path) in known
    ]


def _identity(path: str) -> Identity | None:
    """The part of a path that stays the same when a file, or a folder above it, is renamed."""
    try:
        info = os.stat(path)  # noqa: PTH116 - many, and fast
    except OSError:
        return None
    return (info.st_dev, info.st_ino)

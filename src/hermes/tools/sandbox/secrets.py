"""The secret files of a workspace: keys and .env files that a command may not read unless the user lets it.

What git tracks is in everybody's copy of the project, so it is left alone; so is what builds and package managers make.
The search is bounded: the outermost folders come first.
"""

import os
import subprocess
from collections.abc import Iterable
from pathlib import Path

import msgspec

from hermes.tools.sensitive import is_build_product, is_secret

_FOLDERS = 1_000
_FOUND = 100
_CODE = (
    *(".py", ".pyi", ".js", ".jsx", ".mjs", ".ts", ".tsx", ".go", ".rs", ".c", ".h", ".cc", ".cpp", ".hpp", ".java"),
    *(".kt", ".rb", ".php", ".cs", ".swift", ".sh", ".sql", ".html", ".css", ".scss", ".vue", ".svelte", ".md", ".rst"),
    *(".png", ".jpg", ".svg", ".lock"),
)
"""Names that are never looked at closely: most files of most projects."""
_SLOW = 10.0  # seconds for git to tell what it tracks
_GIT = ("git", "-c", "core.fsmonitor=false", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--")
_ENVIRONMENT = {
    "PATH": f"{os.defpath}:/usr/local/bin",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_OPTIONAL_LOCKS": "0",
}


class Secrets(msgspec.Struct, frozen=True):
    """What was found, and where was looked: as long as none of that changes, nothing else is found."""

    files: tuple[str, ...] = ()
    looked_at: tuple[str, ...] = ()


def workspace_secrets(workspace: Path) -> Secrets:
    """The secret files and folders of a workspace, absolute."""
    top = str(workspace)
    waiting, looked_at, indexes = [(top, top)], list[str](), list[str]()
    found: dict[str, list[str]] = {}
    while waiting and len(looked_at) < _FOLDERS:
        folder, repository = waiting.pop(0)
        looked_at.append(folder)
        entries = _entries(folder)
        if any(entry.name == ".git" for entry in entries):
            repository = folder
            indexes.append(f"{folder}/.git/index")
        for entry in entries:
            is_folder = entry.is_dir(follow_symlinks=False)
            if _is_secret(entry.path[len(top) + 1 :], entry.name, is_folder=is_folder):
                found.setdefault(repository, []).append(os.path.realpath(entry.path))
            elif is_folder and entry.name != ".git" and not is_build_product(Path(entry.name)):
                waiting.append((entry.path, repository))
    files = [path for repository, paths in found.items() for path in _untracked(repository, paths[:_FOUND])]
    return Secrets(tuple(files), (*looked_at, *indexes))


def _is_secret(relative: str, name: str, *, is_folder: bool) -> bool:
    """Whether it is hidden. What is in a secret folder never gets here, so of a file only the name matters."""
    if is_folder:
        return is_secret(Path(relative, "file"))
    return not (name.endswith(_CODE) and not name.startswith(".")) and is_secret(Path(name))


def _entries(folder: str) -> "list[os.DirEntry[str]]":
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError:  # gone, or not ours to read: then not the command's either
        return []


def _untracked(repository: str, paths: list[str]) -> Iterable[str]:
    """The paths that git does not track; all of them when it can't tell."""
    if not os.path.lexists(f"{repository}/.git"):
        return paths
    names = {os.path.relpath(path, repository): path for path in paths}
    try:
        done = subprocess.run(
            [*_GIT, *(f":(literal){name}" for name in names)],
            cwd=repository,
            env=_ENVIRONMENT,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SLOW,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return paths
    tracked = set(map(os.fsdecode, done.stdout.split(b"\0")))
    return [path for name, path in names.items() if name not in tracked and not _holds(name, tracked)]


def _holds(folder: str, tracked: Iterable[str]) -> bool:
    return any(name.startswith(f"{folder}/") for name in tracked)

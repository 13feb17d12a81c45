"""The notes of a project for agents (AGENTS.md and the like). They are not trusted: only ordinary files of the folder are
read, so that they can't make Hermes send another file to the model."""

import errno
import logging
import os
import shlex
import stat
from pathlib import Path

from hermes.core.prompt import (
    MAX_PROJECT_CHARS,
    NOTE_FILES,
    PROJECT_FILES,
    ProjectFile,
)
from hermes.text.hidden_text import without_hidden
from hermes.tools.sandbox.written_notes import is_written
from hermes.tools.sensitive import Guard

log = logging.getLogger("hermes.app")

IDENTITY_FILE = "SOUL.md"
_MAX_BYTES = 4 * MAX_PROJECT_CHARS  # a character of UTF-8 has at most four


def read_project_files(cwd: Path, hermes_home: Path) -> tuple[ProjectFile, ...]:
    """The notes in the folder, each name once. A file that can't be read is listed with the reason."""
    names = [name for name in PROJECT_FILES if os.path.lexists(cwd / name)]
    if not names:
        return ()
    home = Path(os.path.realpath(hermes_home))
    guard = Guard(home, Path.home())
    found = (
        _unaccepted(cwd, name)
        if is_written(home, cwd / name)
        else _read(cwd, name, guard)
        for name in names
    )
    return tuple(file for file in found if file is not None)


def has_accepted_notes(hermes_home: Path, cwd: Path) -> bool:
    """Whether a person wrote or accepted every note in the folder and above it."""
    home = Path(os.path.realpath(hermes_home))
    folder = Path(os.path.realpath(cwd))
    return not any(
        os.path.lexists(above / name) and is_written(home, above / name)
        for above in (folder, *folder.parents)
        for name in NOTE_FILES
    )


def _unaccepted(cwd: Path, name: str) -> ProjectFile:
    refusal = (
        "an agent's command wrote it or may have, and the user has not accepted it"
        f" (hermes policy accept {shlex.quote(str(cwd / name))})"
    )
    return ProjectFile(name, refusal=refusal)


def _read(cwd: Path, name: str, guard: Guard) -> ProjectFile | None:
    try:
        real = Path(os.path.realpath(cwd / name, strict=True))
        root = Path(os.path.realpath(cwd, strict=True))
        if refusal := _refusal(real, root, guard):
            return ProjectFile(name, refusal=refusal)
        return _read_ordinary(name, real)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        loop = error.errno == errno.ELOOP
        return ProjectFile(
            name,
            refusal="it is a broken symbolic link"
            if loop
            else (error.strerror or "it can't be read"),
        )


def _refusal(real: Path, root: Path, guard: Guard) -> str:
    if not real.is_relative_to(root):
        return "it leads outside the folder"
    return "it leads to a file that may hold secrets" if guard.secret([real]) else ""


def _read_ordinary(name: str, real: Path) -> ProjectFile:
    """Opens a file without waiting for a pipe, and without following a link that was put there meanwhile."""
    descriptor = os.open(
        real, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
    )
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return ProjectFile(name, refusal="it is not a regular file")
        content = os.read(descriptor, _MAX_BYTES + 1)
    finally:
        os.close(descriptor)
    if b"\0" in content:
        return ProjectFile(name, refusal="it is not text")
    text = without_hidden(content.decode("utf-8", errors="replace"))
    return ProjectFile(
        name, text[:MAX_PROJECT_CHARS], cut=len(text) > MAX_PROJECT_CHARS
    )


def read_identity(hermes_home: Path) -> str:
    """What the user wrote about who Hermes is, in SOUL.md of the home; empty without that file."""
    path = hermes_home / IDENTITY_FILE
    if not path.exists():
        return ""
    try:
        return _read_ordinary(IDENTITY_FILE, Path(os.path.realpath(path))).text.strip()
    except OSError as error:
        log.warning("%s was not read: %s", path, error.strerror or error)
        return ""

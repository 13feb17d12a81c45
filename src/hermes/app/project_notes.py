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
from hermes.text.translation import translator
from hermes.tools.sandbox.written_notes import MAX_NOTE_BYTES, is_written, stamps
from hermes.tools.sensitive import Guard

t = translator(__name__)


log = logging.getLogger("hermes.app")

IDENTITY_FILE = "SOUL.md"
_MAX_BYTES = 4 * MAX_PROJECT_CHARS  # a character of UTF-8 has at most four
_MAX_READS = 3  # of a note that changes while it is read


def read_project_files(cwd: Path, hermes_home: Path) -> tuple[ProjectFile, ...]:
    """The notes in the folder, each name once. A file that can't be read is listed with the reason."""
    names = [name for name in PROJECT_FILES if os.path.lexists(cwd / name)]
    if not names:
        return ()
    home = Path(os.path.realpath(hermes_home))
    guard = Guard(home, Path.home())
    found = (_judged(cwd, name, home, guard) for name in names)
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


def _judged(
    cwd: Path, name: str, hermes_home: Path, guard: Guard
) -> ProjectFile | None:
    """Reads a note and judges what was read. A note that changes meanwhile is read again."""
    path = cwd / name
    for _ in range(_MAX_READS):
        before = stamps([str(path)])
        file, content = _read(cwd, name, guard)
        if is_written(hermes_home, path, content):
            return _unaccepted(cwd, name)
        if stamps([str(path)]) == before:
            return file
    return ProjectFile(name, refusal=t.logged("it is being changed"))


def _unaccepted(cwd: Path, name: str) -> ProjectFile:
    refusal = t.logged(
        "an agent's command wrote it or may have, and the user has not accepted it (hermes policy "
        "accept {quote})",
        quote=shlex.quote(str(cwd / name)),
    )
    return ProjectFile(name, refusal=refusal)


def _read(
    cwd: Path, name: str, guard: Guard
) -> tuple[ProjectFile | None, bytes | None]:
    """Returns a note, and the content it was made of; None if nothing was read."""
    try:
        real = Path(os.path.realpath(cwd / name, strict=True))
        root = Path(os.path.realpath(cwd, strict=True))
        if refusal := _refusal(real, root, guard):
            return ProjectFile(name, refusal=refusal), None
        content = _ordinary_content(real)
    except (FileNotFoundError, NotADirectoryError):
        return None, None
    except OSError as error:
        loop = error.errno == errno.ELOOP
        reason = error.strerror or t.logged("it can't be read")
        refusal = t.logged("it is a broken symbolic link") if loop else reason
        return ProjectFile(name, refusal=refusal), None
    if content is None:
        return ProjectFile(name, refusal=t.logged("it is not a regular file")), None
    return _note(name, content), content


def _refusal(real: Path, root: Path, guard: Guard) -> str:
    if not real.is_relative_to(root):
        return t.logged("it leads outside the folder")
    return (
        t.logged("it leads to a file that may hold secrets")
        if guard.secret([real])
        else ""
    )


def _ordinary_content(real: Path) -> bytes | None:
    """Opens a file without waiting for a pipe, and without following a link that was put there meanwhile.

    Returns None for what is no regular file.
    """
    descriptor = os.open(
        real, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
    )
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        return os.read(descriptor, MAX_NOTE_BYTES)
    finally:
        os.close(descriptor)


def _note(name: str, content: bytes) -> ProjectFile:
    content = content[: _MAX_BYTES + 1]
    if b"\0" in content:
        return ProjectFile(name, refusal=t.logged("it is not text"))
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
        content = _ordinary_content(Path(os.path.realpath(path)))
        return _note(IDENTITY_FILE, content or b"").text.strip()
    except OSError as error:
        log.warning("%s was not read: %s", path, error.strerror or error)
        return ""

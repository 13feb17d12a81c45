"""Project notes (AGENTS.md and the like) in sub-folders of a workspace that confined commands wrote.

In the workspace's own folder such files are protected. Further down they stay, because a checkout or a package may bring
them. But Hermes remembers what a command wrote, and a session in that folder does not read it until a person accepts it.

A workspace with more folders than are searched has an entry of its own, with a `/` at the end: since that time, whatever
changed in its sub-folders counts as written by a command.
"""

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TypeAlias

import msgspec

from hermes.primitives.file_lock import FileLock
from hermes.primitives.files import replace_file

_FILE = "written_notes.json"
_MAX_BYTES = 1024 * 1024
_LOCK_TIMEOUT_S = 5.0
_CLOCK_NS = 100_000_000
"""How far the kernel's clock for files may be behind."""
_ACCEPTED = "accepted "
Stamps: TypeAlias = dict[str, tuple[int, ...]]


def stamps(notes: Iterable[str]) -> Stamps:
    """Each file with what changes when it is written."""
    return {path: _stamp(path) for path in notes}


def record(hermes_home: Path, before: Stamps, after: Stamps) -> list[Path]:
    """Remembers the notes that were written between two calls of `stamps`, and returns them."""
    written = [path for path, stamp in after.items() if before.get(path) != stamp]
    if written:
        _change(hermes_home, {path: _digest(path) for path in written})
    return list(map(Path, written))


def record_cut(hermes_home: Path, workspace: Path, began_ns: int) -> None:
    """Remembers that a command ran in a workspace of which not all folders could be searched."""
    if f"{workspace}/" not in _read(hermes_home):
        _change(hermes_home, {f"{workspace}/": str(began_ns - _CLOCK_NS)})


def is_written(hermes_home: Path, path: Path) -> bool:
    """Whether a command wrote this file as it is now, and nobody has accepted it."""
    known, real = _read(hermes_home), os.path.realpath(path)
    entry = known.get(real)
    if not known or (entry is None and not _may_be_written(known, real)):
        return False
    digest = _digest(str(path))
    if entry == _ACCEPTED + digest:
        return False
    return entry == digest or _may_be_written(known, real)


def _may_be_written(known: dict[str, str], real: str) -> bool:
    """Whether a file changed in a sub-folder of a workspace that could not be searched, since a command ran there."""
    since = [
        int(entry)
        for folder, entry in known.items()
        if folder.endswith("/")
        and real.startswith(folder)
        and "/" in real[len(folder) :]
    ]
    try:
        return bool(since) and os.lstat(real).st_ctime_ns >= min(since)
    except OSError:
        return False


def accept(hermes_home: Path, path: Path) -> bool:
    """Accepts a file as it is now. Returns False if there was nothing to accept."""
    if not is_written(hermes_home, path):
        return False
    _change(hermes_home, {os.path.realpath(path): _ACCEPTED + _digest(str(path))})
    return True


def _change(hermes_home: Path, digests: dict[str, str]) -> None:
    """Adds entries; every file that is gone is removed."""
    with FileLock(hermes_home / f"{_FILE}.lock") as lock:
        lock.acquire(_LOCK_TIMEOUT_S)
        known = _read(hermes_home) | {
            path if path.endswith("/") else os.path.realpath(path): digest
            for path, digest in digests.items()
        }
        kept = {path: digest for path, digest in known.items() if os.path.lexists(path)}
        replace_file(hermes_home / _FILE, msgspec.json.encode(kept))


def _read(hermes_home: Path) -> dict[str, str]:
    try:
        return msgspec.json.decode(
            (hermes_home / _FILE).read_bytes(), type=dict[str, str]
        )
    except (FileNotFoundError, msgspec.DecodeError):
        return {}


def _stamp(path: str) -> tuple[int, ...]:
    """The times a command can't set, of a file and of what it leads to."""
    found: list[int] = []
    for look in (os.lstat, os.stat):
        try:
            info = look(path)
        except OSError:
            found.append(0)
        else:
            found += (info.st_dev, info.st_ino, info.st_ctime_ns)
    return tuple(found)


def _digest(path: str) -> str:
    try:
        with open(path, "rb", opener=_opened) as file:
            return hashlib.sha256(file.read(_MAX_BYTES)).hexdigest()
    except OSError:
        return "unreadable"


def _opened(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)


def listed(paths: Iterable[Path]) -> str:
    """The note for the model about notes that were written."""
    files = list(paths)
    more = f" and {len(files) - 3} more" if files[3:] else ""
    names = ", ".join(map(str, files[:3]))
    return (
        f"{names}{more}: sessions in that folder do not read this until the user has looked at it and runs"
        f" hermes policy accept FILE"
    )

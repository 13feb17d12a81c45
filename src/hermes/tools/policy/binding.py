"""A hash of all that was judged, so that what was approved is what runs: arguments, folder, reach, files."""

import hashlib
import os
import re
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

_MATTERING = r"PATH|HOME|SHELL|LD_\w+|DYLD_\w+|BASH_ENV|ENV|IFS|GIT_\w+|PYTHON(PATH|STARTUP|HOME)|NODE_(OPTIONS|PATH)|\w*PROXY"


class Judged(msgspec.Struct, frozen=True):
    """What a decision is about."""

    tool: str
    arguments: Mapping[str, Any]
    folder: str
    reach: str
    paths: tuple[Path, ...] = ()


def binding(judged: Judged, environment: Mapping[str, str]) -> str:
    """The hash of a call as it stands now. It changes when a file is swapped, changed, or linked elsewhere."""
    mattering = {
        name: value
        for name, value in sorted(environment.items())
        if re.fullmatch(_MATTERING, name)
    }
    identities = [identity(path) for path in judged.paths]
    parts = (
        judged.tool,
        judged.arguments,
        judged.folder,
        judged.reach,
        identities,
        mattering,
    )
    return hashlib.sha256(msgspec.json.encode(parts, order="deterministic")).hexdigest()


def identity(path: Path) -> tuple[Any, ...]:
    """What is at a path: which file, how large, when changed; where a link leads. Nothing there is an identity too."""
    text = str(path)
    try:
        own = os.lstat(text)
    except (OSError, ValueError):
        return (_writable(text), "nothing")
    if stat.S_ISLNK(own.st_mode):
        real = os.path.realpath(text)
        return (
            _writable(text),
            "link",
            _writable(real),
            own.st_ino,
            *identity_of(real),
        )
    return (_writable(text), *identity_of(text))


def identity_of(text: str) -> tuple[Any, ...]:
    """Device, inode, and for a file its size and time."""
    try:
        found = Path(text).stat()
    except (OSError, ValueError):
        return ("nothing",)
    if not stat.S_ISREG(found.st_mode):
        return (found.st_dev, found.st_ino, found.st_mode)
    return (found.st_dev, found.st_ino, found.st_mode, found.st_size, found.st_mtime_ns)


def existing(paths: Iterable[Path]) -> tuple[Path, ...]:
    """Those of some paths that are there, once each."""
    return tuple(path for path in dict.fromkeys(paths) if os.path.lexists(path))


def _writable(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()

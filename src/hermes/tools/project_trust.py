"""Records which of a project's own files the user has agreed to, by a hash of their content.

A project's commands, prompts and agents are text from somebody else. The user is asked about each once, and again when
it changes.
"""

import os
from pathlib import Path

import msgspec

from hermes.primitives.file_lock import FileLock
from hermes.primitives.files import replace_file

_FILE = "trusted_projects.json"
_LOCK_TIMEOUT_S = 5.0
CHECKS = "#checks"
"""A suffix of a folder's path that stands for its `verify` and `lint` commands."""


def is_trusted(hermes_home: Path, place: str, digest: str) -> bool:
    """Whether the user has agreed to this content at this place."""
    return _read(hermes_home).get(place) == digest


def trust(hermes_home: Path, digests: dict[str, str]) -> None:
    """Records that the user agrees to the content at these places. An empty digest revokes that."""
    with FileLock(hermes_home / f"{_FILE}.lock") as lock:
        lock.acquire(_LOCK_TIMEOUT_S)
        known = _read(hermes_home) | digests
        kept = {place: digest for place, digest in known.items() if digest}
        replace_file(hermes_home / _FILE, msgspec.json.encode(kept))


def checks_place(root: Path) -> str:
    """Names the commands of a project's rules."""
    return os.path.realpath(root) + CHECKS


def _read(hermes_home: Path) -> dict[str, str]:
    try:
        content = (hermes_home / _FILE).read_bytes()
        return msgspec.json.decode(content, type=dict[str, str])
    except (FileNotFoundError, msgspec.DecodeError):
        return {}

"""Checks what bubblewrap really mounted, before the command begins.

Bubblewrap mounts by path. A command that runs at the same time in the same workspace can replace a folder by a link, so
that a folder from outside is mounted, or so that a secret file is not the one that is covered.
"""

import os
import re
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, TypeAlias

import msgspec

from hermes.text.translation import translator

t = translator(__name__)


_CHECK_ROUNDS = 4
"""How many times mounts and files are compared: they can't be read at the same time, but files that are swapped back
and forth differ in one of the rounds."""
_ESCAPED = re.compile(r"\\([0-7]{3})")
_NULL = "/null"
_MEMORY = ("tmpfs", "devtmpfs")

FileIdentity: TypeAlias = tuple[int, int, int]


class Mount(NamedTuple):
    """A line of `mountinfo`: a part of a file system, and where it is mounted."""

    number: str
    device: str
    root: str
    place: str
    kind: str


class ExpectedMounts(msgspec.Struct, frozen=True):
    """The mounts required in a workspace: the files and folders at these paths, as they were when they were found."""

    workspace: Path
    identities: dict[str, FileIdentity | None] = {}

    def problem(self, pid: int) -> str:
        """Returns what is wrong with the mounts of a process; empty if nothing is."""
        if not self.identities:
            return ""  # the command has no workspace to write to
        here = {mount.number: mount for mount in _mounts(os.getpid(), "/")}
        for _ in range(_CHECK_ROUNDS):
            mounts = list(_mounts(pid, str(self.workspace)))
            for path, identity in self.identities.items():
                if identity is None or identity_of(path) != identity:
                    return f"{path} was replaced"
            if missing := self.identities.keys() - {mount.place for mount in mounts}:
                return t.logged("{path} is not mounted", path=min(missing))
            if foreign := _foreign(mounts, here):
                return t.logged(
                    "{foreign} is not what is mounted there", foreign=foreign
                )
        return ""


def expected(workspace: Path, paths: Iterable[str]) -> ExpectedMounts:
    """Returns the required mounts: each of these paths in a workspace, and nothing from elsewhere."""
    return ExpectedMounts(workspace, {path: identity_of(path) for path in paths})


def identity_of(path: str) -> FileIdentity | None:
    """Returns an identity that no other file or folder has; None for a link, or if there is nothing."""
    try:
        info = os.lstat(path)
    except OSError:
        return None
    if stat.S_ISLNK(info.st_mode):
        return None
    return (info.st_dev, info.st_ino, info.st_mode)


def _foreign(mounts: Iterable[Mount], here: dict[str, Mount]) -> str:
    """Returns a path at which something else is mounted than what Hermes sees there (`here`); empty if there is none.
    Ignores covers."""
    for mount in mounts:
        if mount.kind in _MEMORY and mount.root in ("/", _NULL):
            continue
        if (mount.device, mount.root) != _seen_at(mount.place, here):
            return mount.place
    return ""


def _seen_at(place: str, here: dict[str, Mount]) -> tuple[str, str]:
    """Returns the file system, and its part, that Hermes sees at this path."""
    handle = os.open(place, os.O_PATH | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        facts = Path(f"/proc/self/fdinfo/{handle}").read_text().split()
    finally:
        os.close(handle)
    over = here.get(facts[facts.index("mnt_id:") + 1])
    if over is None or not _is_below(place, over.place):
        return ("", "")
    rest = place[len(over.place.rstrip("/")) :]
    return over.device, (over.root.rstrip("/") + rest) or "/"


def _mounts(pid: int, folder: str) -> Iterator[Mount]:
    """Yields the mounts at or below a folder, as a process sees them."""
    text = Path(f"/proc/{pid}/mountinfo").read_bytes().decode(errors="surrogateescape")
    name = Path(folder).name
    is_plain = name.isascii() and name.isalnum()  # others may be escaped
    for line in text.split("\n")[:-1]:
        if is_plain and name not in line:
            continue
        before, _, after = line.partition(" - ")
        number, _, device, root, place, *_ = before.split(" ")
        kind = after.partition(" ")[0]
        mount = Mount(number, device, _unescaped(root), _unescaped(place), kind)
        if _is_below(mount.place, folder):
            yield mount


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _unescaped(text: str) -> str:
    return (
        _ESCAPED.sub(lambda found: chr(int(found[1], 8)), text)
        if "\\" in text
        else text
    )

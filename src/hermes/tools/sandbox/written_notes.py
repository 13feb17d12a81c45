"""Project notes (AGENTS.md and the like) of a workspace that confined commands wrote.

A command can't change existing notes in the workspace's own folder. New ones stay: further down, a checkout or a
package may bring them, and anywhere a person may have made them at the same time. But Hermes records notes that
appeared while a command ran, and a session in that folder does not read them until a person accepts them.

A workspace with more folders than the search covers has an entry with a `/` at the end: everything in its sub-folders
that changed since that time counts as written by a command. With `/.` at the end, this applies only to folders that
builds make.

While a command runs, its marker describes the state before it (`command_markers`).
"""

import hashlib
import json
import os
from collections.abc import Iterable
from itertools import islice
from pathlib import Path

import msgspec

from hermes.primitives.file_lock import FileLock
from hermes.primitives.files import replace_file
from hermes.tools.sandbox.command_markers import (
    CLOCK_NS,
    CommandStart,
    Stamps,
    running_starts,
    to_json,
)
from hermes.tools.sensitive import is_build_product

MAX_NOTE_BYTES = 1024 * 1024
"""How many bytes of a file count as its content."""
_FILE = "written_notes.json"
_LOCK_TIMEOUT_S = 5.0
_ACCEPTED = "accepted "
_PRODUCTS = "/."
_MAX_EARLIER = 16  # digests of a file, besides its newest
_MAX_GONE = 256  # files that are gone, which an undo may bring back


def stamps(notes: Iterable[str]) -> Stamps:
    """Each file with a value that changes when it is written."""
    return {path: _stamp(path) for path in notes}


def record(hermes_home: Path, before: Stamps, after: Stamps) -> list[Path]:
    """Records the notes that were written between two calls of `stamps`, and returns them."""
    changed = [path for path, stamp in after.items() if before.get(path) != stamp]
    known = _read(hermes_home) if changed else {}
    written = {
        path: digest
        for path in changed
        # While one command ran, a person may have accepted what another wrote.
        if not _is_accepted(
            known.get(os.path.realpath(path), ""), digest := digest_of(path)
        )
    }
    if written:
        record_digests(hermes_home, written)
    return list(map(Path, written))


def record_cut(
    hermes_home: Path, workspace: Path, began_ns: int, *, only_products: bool = False
) -> None:
    """Records that a command ran in a workspace whose folders could not all be searched."""
    key = f"{workspace}{_PRODUCTS if only_products else '/'}"
    if key not in _read(hermes_home):
        record_digests(hermes_home, {key: str(began_ns - CLOCK_NS)})


def is_written(hermes_home: Path, path: Path, content: bytes | None = None) -> bool:
    """Whether a command wrote this file as it is now, and nobody has accepted it.

    A caller that has read the file passes its `content`: a command may have changed it just for that moment.
    """
    known, real = _read(hermes_home), os.path.realpath(path)
    entry = known.get(real)
    suspected = _may_be_written(known, real) or _is_being_written(hermes_home, path)
    if entry is None and not suspected:
        return False
    digest = digest_of(str(path)) if content is None else _digest(content)
    if entry is not None and _is_accepted(entry, digest):
        return False
    # Of a file with another name, nobody knows who changed it: a command may have used that name.
    return digest in _written(entry) or suspected or _has_other_names(real)


def _is_accepted(entry: str, digest: str) -> bool:
    return f"{entry} ".startswith(f"{_ACCEPTED}{digest} ")


def _written(entry: str | None) -> list[str]:
    """What commands wrote into a file, newest first: an undo brings earlier content back."""
    digests = (entry or "").split(" ")
    return digests[2:] if digests[0] == _ACCEPTED.strip() else digests


def _may_be_written(known: dict[str, str], real: str) -> bool:
    """Whether a file changed in a sub-folder of a workspace that could not be searched, since a command ran there."""
    since = [
        int(entry)
        for key, entry in known.items()
        if key.endswith(("/", _PRODUCTS))
        and _is_unsearched(
            real, key.removesuffix(".")[:-1], only_products=key.endswith(_PRODUCTS)
        )
    ]
    return bool(since) and _changed_since(real, min(since))


def _is_being_written(hermes_home: Path, path: Path) -> bool:
    """Whether a file changed since a command began that has not ended, or whose end nobody saw."""
    place = f"{os.path.realpath(path.parent)}/{path.name}"
    return any(
        place.startswith(f"{start.workspace}/")
        and place not in start.read_only
        and _has_changed(place, start)
        for start in running_starts(hermes_home)
    )


def _has_changed(place: str, start: CommandStart) -> bool:
    before = start.notes.get(place)
    if before is None and (
        (start.is_cut and _is_unsearched(place, start.workspace))
        or (
            start.is_product_cut
            and _is_unsearched(place, start.workspace, only_products=True)
        )
    ):
        return _changed_since(place, start.began_ns - CLOCK_NS)
    return before != _stamp(place)


def _is_unsearched(path: str, workspace: str, *, only_products: bool = False) -> bool:
    """Whether a file is in a sub-folder of a workspace that an incomplete search may have left out."""
    if not path.startswith(f"{workspace}/"):
        return False
    folders = path[len(workspace) + 1 :].split("/")[:-1]
    if only_products:
        return any(is_build_product(Path(folder)) for folder in folders)
    return bool(folders)


def _changed_since(path: str, since_ns: int) -> bool:
    try:
        return os.lstat(path).st_ctime_ns >= since_ns
    except OSError:
        return False


def _has_other_names(path: str) -> bool:
    try:
        return os.lstat(path).st_nlink > 1
    except OSError:
        return False


def accept(hermes_home: Path, path: Path) -> bool:
    """Accepts a file as it is now. Returns False if there was nothing to accept."""
    if not is_written(hermes_home, path):
        return False
    record_digests(
        hermes_home, {os.path.realpath(path): _ACCEPTED + digest_of(str(path))}
    )
    return True


def record_digests(hermes_home: Path, digests: dict[str, str]) -> None:
    """Remembers files with the content that a command gave them, as digests. Of those that are gone, few are kept."""
    with FileLock(hermes_home / f"{_FILE}.lock") as lock:
        lock.acquire(_LOCK_TIMEOUT_S)
        known = _read(hermes_home)
        for path, digest in digests.items():
            is_mark = path.endswith(("/", _PRODUCTS))
            real = path if is_mark else os.path.realpath(path)
            earlier = () if is_mark else _written(known.pop(real, ""))
            others = (one for one in earlier if one and not digest.endswith(one))
            known[real] = " ".join((digest, *islice(others, _MAX_EARLIER)))
        gone = [path for path in known if not os.path.lexists(path)]
        for path in gone[:-_MAX_GONE]:
            del known[path]
        replace_file(hermes_home / _FILE, to_json(known))


def _read(hermes_home: Path) -> dict[str, str]:
    try:
        found = json.loads((hermes_home / _FILE).read_bytes())
        return msgspec.convert(found, dict[str, str])
    except (FileNotFoundError, ValueError):
        return {}


def _stamp(path: str) -> tuple[int, ...]:
    """The timestamps, which a command can't set, of a file and of its link target."""
    found: list[int] = []
    for look in (os.lstat, os.stat):
        try:
            info = look(path)
        except OSError:
            found.append(0)
        else:
            found += (info.st_dev, info.st_ino, info.st_ctime_ns)
    return tuple(found)


def digest_of(path: str) -> str:
    """A digest of the file's content."""
    try:
        with open(path, "rb", opener=_opened) as file:
            return _digest(file.read(MAX_NOTE_BYTES))
    except OSError:
        return "unreadable"


def _digest(content: bytes) -> str:
    return hashlib.sha256(content[:MAX_NOTE_BYTES]).hexdigest()


def _opened(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)


def listed(paths: Iterable[Path]) -> str:
    """The note for the model about notes that were written."""
    files = list(paths)
    more = f" and {len(files) - 3} more" if files[3:] else ""
    names = ", ".join(os.fsencode(file).decode(errors="replace") for file in files[:3])
    return (
        f"{names}{more}: sessions in that folder do not read this until the user has looked at it and runs"
        f" hermes policy accept FILE"  # not translated
    )

"""Files that exist but were not saved: git ignores them, their folder was too large, or they could not be read.

Not saved does not mean absent: undo never removes such a file, and reports that it was not saved.
"""

# Names are bytes here, because a file name need not be valid text.
# ruff: noqa: PTH118, PTH119, PTH120

import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet

import msgspec

from hermes.primitives.lazy_pattern import lazy_pattern
from hermes.text.translation import translator
from hermes.tools.shadow.path_state import unkept
from hermes.tools.shadow.repository import EXCLUDED, ShadowGit, View
from hermes.tools.shadow.turn_record import Tree, Unkept

t = translator(__name__)


IGNORED = t.logged("git ignores it, so it was not saved")
_MOVED = t.logged("it may have been moved here from a place that is not saved")
_UNKNOWN = t.logged("it existed before, but could not be saved")
_MAX_NAMED_PATHS = 5
_MAX_SEARCHED_PATHS = 4_000
"""The maximum number of ignored files whose size and time are checked."""
_MAX_IGNORED_FOLDER_ENTRIES = 1_500
_THERE = "there"
_CLOCK_LAG_S = 1.0  # seconds by which the times of files can lag behind the clock
_COMPLAINT = lazy_pattern(rb"warning: could not open directory '(.*?)/?': ", re.DOTALL)


class Ignored(msgspec.Struct, frozen=True, array_like=True):
    """A path that git ignores, relative to its tree. A folder ends with a slash and stands for everything in it."""

    path: bytes
    mark: str
    """Changes when the files do; empty if there are too many to check."""


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(tuple[Ignored, ...]).decode


def note_ignored(
    git: ShadowGit, view: View, rules: Iterable[bytes], own: AbstractSet[bytes]
) -> str:
    """Stores a list of what git ignores in a folder and returns its blob's name; empty if nothing is ignored.

    For git's folder, and Hermes' `own`, only their existence is recorded.
    """
    out = git.run("ls-files", "-z", "-o", "-i", "--directory", *rules, view=view)
    start, left = os.path.join(view.root, b""), _MAX_SEARCHED_PATHS
    found: list[Ignored] = []
    for path in sorted(filter(None, out.split(b"\0"))):
        is_own = (start + path).rstrip(b"/") in own
        mark, looked_at = (
            (_THERE, 0)
            if is_own
            else _mark(start + path, min(left, _MAX_IGNORED_FOLDER_ENTRIES))
        )
        left -= looked_at
        found.append(Ignored(path, mark))
    if os.path.lexists(start + b".git"):
        found.append(Ignored(b".git/", _THERE))
    return git.write_blob(_encode(found)) if found else ""


def closed_folders(complaints: bytes, view: View) -> Iterator[Unkept]:
    """Returns the folders that git could not read."""
    for name in dict.fromkeys(_COMPLAINT.findall(complaints)):
        yield Unkept(os.path.join(view.top, name), "not readable")


class Unseen:
    """What existed before a turn without having been saved."""

    def __init__(
        self,
        git: ShadowGit,
        before: Sequence[Tree],
        after: Sequence[Tree],
        began: float,
    ) -> None:
        self._roots = {tree.root: tree for tree in before}
        self._noted = {note.path for tree in before for note in tree.unkept}
        old, new = _ignored(git, before), _ignored(git, after)
        self._places = {path.rstrip(b"/") for path in old}
        self._began = began - _CLOCK_LAG_S
        self._changed = [
            path
            for path in old.keys() | new.keys()
            if not _is_same(old.get(path), new.get(path))
        ]
        self._gone = old.keys() - new.keys()

    def hides(self, path: bytes) -> Unkept | None:
        """Returns what was not saved and may have contained `path`; None if nothing was there."""
        for place in _upwards(path):
            if place in self._places:
                return Unkept(place, IGNORED)
            if place in self._noted or (
                place in self._roots and not self._roots[place].tree
            ):
                return Unkept(place, _UNKNOWN)
            if place in self._roots:
                break
        if self._changed and self._is_older(path):
            return Unkept(path, _MOVED)
        return None

    def notes(self) -> Iterator[Unkept]:
        """Returns ignored files that changed, or may have; undo does not touch them."""
        told = sorted(
            path
            for path in self._changed
            if path in self._gone or not _is_made_again(path)
        )
        for path in told[:_MAX_NAMED_PATHS]:
            yield Unkept(path.rstrip(b"/"), IGNORED)
        if rest := told[_MAX_NAMED_PATHS:]:
            yield Unkept(
                os.path.dirname(rest[0].rstrip(b"/")),
                t.logged(
                    "{count:,} more that git ignores are not saved", count=len(rest)
                ),
            )

    def _is_older(self, path: bytes) -> bool:
        """Whether a file that is new here was written before the turn."""
        try:
            return os.lstat(path).st_mtime < self._began
        except OSError:  # deleted again, so there is nothing to lose
            return False


def _mark(path: bytes, most: int) -> tuple[str, int]:
    """Returns a mark that changes with the files, and how many files were checked."""
    if most <= 0:
        return "", 0
    try:
        if not path.endswith(b"/"):
            return unkept(os.lstat(path)).blob, 1
        return _folder_mark(path, most)
    except OSError:
        return "", 1


def _folder_mark(folder: bytes, most: int) -> tuple[str, int]:
    digest, count = hashlib.blake2b(digest_size=16), 0
    waiting = [folder]
    while waiting:
        place = waiting.pop()
        with os.scandir(place) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                count += 1
                if count > most:
                    return "", count
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                    digest.update(entry.path + b"\0")
                else:
                    digest.update(
                        entry.path
                        + unkept(entry.stat(follow_symlinks=False)).blob.encode()
                    )
    return digest.hexdigest(), count


def _ignored(git: ShadowGit, trees: Iterable[Tree]) -> dict[bytes, str]:
    """The ignored paths of these trees, absolute, with their marks."""
    named = [tree for tree in trees if tree.ignored]
    notes = git.read_blobs(tree.ignored for tree in named)
    return {
        os.path.join(tree.root, one.path): one.mark
        for tree in named
        for one in _decode(notes[tree.ignored])
    }


def _is_same(one: str | None, two: str | None) -> bool:
    return one == two and bool(one)


def _is_made_again(path: bytes) -> bool:
    """Whether a build creates this file again, so that changes to it don't matter."""
    return (
        os.path.basename(path.rstrip(b"/")).decode(errors="replace") + "/" in EXCLUDED
    )


def _upwards(path: bytes) -> Iterator[bytes]:
    """Returns a path and all folders above it."""
    while len(path) > 1:
        yield path
        path = os.path.dirname(path)

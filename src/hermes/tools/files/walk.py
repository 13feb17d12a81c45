"""Walks a folder in a fixed order, without ignored files and without following links. Can be stopped."""

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from hermes.tools.files.gitignore import Ignore, glob_regex, rules_above

MAX_WALK_DEPTH = 64


class Halt:
    """A flag that stops work in another thread."""

    def __init__(self) -> None:
        self.stopped = False
        self._action: Callable[[], None] | None = None

    def on_stop(self, action: Callable[[], None]) -> None:
        """Calls `action` when stopped, or at once if that has already happened."""
        self._action = action
        if self.stopped:
            action()

    def stop(self) -> None:
        """Stops. Idempotent."""
        self.stopped = True
        if self._action is not None:
            self._action()


class WalkEntry(msgspec.Struct, frozen=True):
    """An entry, by its path below the top."""

    relative: str
    is_folder: bool
    is_link: bool


class Walk(msgspec.Struct, frozen=True):
    """A folder to walk, how deep, and the flag that stops it."""

    top: Path
    halt: Halt
    depth: int = MAX_WALK_DEPTH

    def entries(self) -> Iterator[WalkEntry]:
        """Yields everything below, each folder before its content, by name."""
        yield from self._folder(self.top, "", rules_above(self.top), 1)

    def _folder(
        self, folder: Path, relative: str, ignore: Ignore, level: int
    ) -> Iterator[WalkEntry]:
        ignore = ignore.entering(folder, relative)
        try:
            with os.scandir(folder) as scan:
                found = sorted(scan, key=lambda entry: os.fsencode(entry.name))
        except OSError:  # gone, or not readable for us; the folder itself was listed
            return
        for entry in found:
            if self.halt.stopped:
                return
            below = f"{relative}/{entry.name}" if relative else entry.name
            is_folder = entry.is_dir(follow_symlinks=False)
            if ignore.hides(below, entry.name, is_folder=is_folder):
                continue
            yield WalkEntry(below, is_folder, entry.is_symlink())
            if is_folder and level < self.depth:
                yield from self._folder(Path(entry.path), below, ignore, level + 1)


class GlobFilter:
    """Whether a path matches a glob: one without `/` applies to the name, one with it to the path below the top."""

    def __init__(self, glob: str) -> None:
        body = glob.removeprefix("./")
        anchored = "/" in body
        self._pattern = re.compile(
            ("" if anchored else "(?:.*/)?") + glob_regex(body.lstrip("/"))
        )

    def fits(self, relative: str) -> bool:
        return self._pattern.fullmatch(relative) is not None

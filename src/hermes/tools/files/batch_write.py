"""Writes several files together: all of them, or none.

All new content is on disk before the first file is touched, so a full disk or a read-only folder is noticed before
anything has changed. If something fails after that, the changes are reverted.
"""

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from hermes.errors import ToolFailed
from hermes.tools.files.file_content import UNCHANGED, Content, read_content, unwritable
from hermes.tools.files.file_stamps import Stamp
from hermes.tools.files.open_buffers import OpenBuffers, place_file
from hermes.tools.files.replace_file import (
    FileMovedAside,
    StagedFile,
    folder_of,
    remove_folders,
)


class FileWrite(msgspec.Struct, frozen=True, kw_only=True):
    """The new content of one file; None to delete it. `name` is the model's name for it."""

    name: str
    path: Path
    before: Content | None
    after: bytes | None
    mode: int | None = None
    """Its new mode; None keeps the old one."""


def write_all(
    changes: Sequence[FileWrite], buffers: OpenBuffers | None = None
) -> dict[Path, Stamp]:
    """Makes all changes and returns the new stamps of the files. If it raises ToolFailed, nothing has changed."""
    staged: dict[Path, StagedFile] = {}
    try:
        for change in changes:
            with _telling(change):
                _check_unchanged(change)
                if change.after is not None:
                    staged[change.path] = StagedFile(
                        change.path, change.after, mode=change.mode
                    )
        return _put_in_place(changes, staged, buffers)
    finally:
        for one in staged.values():
            one.close()


def _put_in_place(
    changes: Sequence[FileWrite],
    staged: dict[Path, StagedFile],
    buffers: OpenBuffers | None,
) -> dict[Path, Stamp]:
    stamps: dict[Path, Stamp] = {}
    aside: dict[Path, FileMovedAside] = {}
    try:
        for change in changes:
            with _telling(change):
                if change.after is None:
                    aside[change.path] = FileMovedAside(change.path)
                else:
                    stamps[change.path] = _placed(change, staged[change.path], buffers)
    except ToolFailed as error:
        stuck = [
            change.name
            for change in reversed(changes)
            if not _is_back(change, stamps, aside, staged)
        ]
        if stuck:
            what = f"{error.message} Before that it had changed {', '.join(stuck)}, which could not be restored."
            raise ToolFailed(what, hint="All other files are as they were.") from error
        raise
    finally:
        for one in aside.values():
            one.close()
    return stamps


def _placed(
    change: FileWrite, staged: StagedFile, buffers: OpenBuffers | None
) -> Stamp:
    if change.after is None or change.mode is not None:  # an editor sets no mode
        return staged.commit()
    before = None if change.before is None else change.before.data
    return place_file(staged, change.after, before, buffers)


def _is_back(
    change: FileWrite,
    stamps: dict[Path, Stamp],
    aside: dict[Path, FileMovedAside],
    staged: dict[Path, StagedFile],
) -> bool:
    """Restores one file if it was changed; False if that fails."""
    path, before = change.path, change.before
    try:
        if path in aside:
            aside[path].bring_back()
        elif path in stamps and before is None:
            with folder_of(path) as folder:
                os.unlink(path.name, dir_fd=folder)
            remove_folders(staged[path].made)
        elif path in stamps and before is not None:
            old = StagedFile(path, before.data, mode=before.mode)
            try:
                old.commit()
            finally:
                old.close()
    except OSError:
        return False
    return True


def _check_unchanged(change: FileWrite) -> None:
    """Checks that the file is still the one that the change was computed from."""
    now, before = read_content(change.path), change.before
    if now is None and before is None:
        return
    if now is None or before is None or not before.stamp.matches(now.stamp):
        raise ToolFailed(
            f"{change.name} changed while it was edited.",
            hint=f"{UNCHANGED} Read it again.",
        )


@contextlib.contextmanager
def _telling(change: FileWrite) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise unwritable(change.name, error) from error

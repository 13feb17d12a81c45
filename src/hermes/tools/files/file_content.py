"""Reads a whole file that is to be changed, with a stamp, and encodes the changed text as before.

A file that is not UTF-8 keeps its bytes; only plain ASCII, which every old encoding shares, can be written into it.
"""

import itertools
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import msgspec

from hermes.errors import ToolFailed, os_reason
from hermes.tools.files.file_stamps import Stamp, digest_of
from hermes.tools.files.replace_file import folder_of

MAX_EDITABLE_BYTES = 10_000_000
UNCHANGED = "Nothing was changed."
_MAX_COMPARED_NAMES = 20_000  # names compared to find the file that was meant
_NOT_LOOKED_AT = frozenset(
    ("node_modules", "__pycache__", "site-packages", "target", "dist", "build")
)


class Content(msgspec.Struct, frozen=True):
    """The content of a file, its stamp and its mode."""

    data: bytes
    stamp: Stamp
    mode: int

    @property
    def is_whole(self) -> bool:
        """Whether the whole file was read."""
        return len(self.data) <= MAX_EDITABLE_BYTES


def read_content(path: Path) -> Content | None:
    """Reads a file; None if there is none. The path is already resolved, so a link in its place is not followed."""
    try:
        with folder_of(path) as folder:
            flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW
            handle = os.open(path.name, flags, dir_fd=folder)
    except FileNotFoundError:
        return None
    with os.fdopen(handle, "rb", closefd=True) as file:
        status = os.fstat(handle)
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(21, "is a directory", str(path))
        if not stat.S_ISREG(status.st_mode):
            raise ToolFailed(f"{path} is not a regular file.")
        data = file.read(MAX_EDITABLE_BYTES + 1)
    digest = digest_of(data) if len(data) <= MAX_EDITABLE_BYTES else None
    return Content(data, Stamp.of(status, digest), stat.S_IMODE(status.st_mode))


def require_editable(name: str, path: Path, content: Content | None) -> Content:
    """Raises ToolFailed unless a file exists and is small enough to be edited."""
    if content is None:
        raise ToolFailed(
            f"{name} does not exist.",
            hint=suggestion(path) or "Use write_file to create it.",
        )
    if not content.is_whole:
        raise ToolFailed(
            f"{name} is larger than {MAX_EDITABLE_BYTES:,} bytes.",
            hint=f"{UNCHANGED} Use terminal.",
        )
    return content


def decoded(name: str, data: bytes) -> str:
    """Returns a file's text. Invalid UTF-8 becomes characters that are encoded to the same bytes again."""
    if b"\0" in data:
        raise ToolFailed(f"{name} is not text: it holds NUL bytes.", hint=UNCHANGED)
    return data.decode(errors="surrogateescape")


def recoded(name: str, before: str, after: str) -> bytes:
    """Encodes a changed text as `before` was encoded."""
    if before.isascii() or not any(
        "\udc80" <= sign <= "\udcff" for sign in set(before)
    ):
        return encoded(after)
    foreign = sorted(sign for sign in set(after) - set(before) if not sign.isascii())
    if foreign:
        raise ToolFailed(
            f"{name} is not UTF-8, so only ASCII can be written into it, not {foreign[0]!r}.",
            hint=f"{UNCHANGED} Convert the file first, if that is wanted.",
        )
    return after.encode(errors="surrogateescape")


def encoded(text: str) -> bytes:
    """Encodes new text as UTF-8."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise ToolFailed(
            "The text holds half a character (a lone surrogate).", hint=UNCHANGED
        ) from error


def unreadable(name: str, path: Path, error: OSError) -> ToolFailed:
    """Says why a file can't be read, and which file may have been meant."""
    if isinstance(error, IsADirectoryError):
        return ToolFailed(f"{name} is a directory.", hint="Use list_files.")
    if isinstance(error, FileNotFoundError):
        return ToolFailed(f"{name} does not exist.", hint=suggestion(path))
    return ToolFailed(f"{name} can't be read: {os_reason(error)}.")


def unwritable(name: str, error: OSError) -> ToolFailed:
    """Says why a file can't be written."""
    return ToolFailed(
        f"{name} can't be written: {os_reason(error)}.",
        hint=UNCHANGED,
    )


def suggestion(path: Path) -> str:
    """Returns similar names in the nearest existing folder, or files of the same name further down."""
    from difflib import get_close_matches

    folder, missing = path.parent, path.name
    while not folder.is_dir() and folder != folder.parent:
        folder, missing = folder.parent, folder.name
    try:
        names = os.listdir(folder)  # noqa: PTH208 - names are what is compared
    except OSError:
        return ""
    folded = {name.casefold(): name for name in names[:5000]}
    near = [
        folded[name] for name in get_close_matches(missing.casefold(), folded, 3, 0.6)
    ]
    if below := list(itertools.islice(_of_that_name(folder, missing), 3)):
        return f"There is: {', '.join(below)}."
    if near:
        return f"In {folder} there is: {', '.join(near)}."
    return f"{folder} has no {missing}." if folder != path.parent else ""


def _of_that_name(folder: Path, name: str) -> Iterator[str]:
    """Returns files called `name` below a folder. Does not search all of a large tree, nor hidden folders."""
    looked = 0
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(
            one
            for one in folders
            if not one.startswith(".") and one not in _NOT_LOOKED_AT
        )
        looked += len(folders) + len(files)
        if name in files and place != str(folder):
            yield str(Path(place, name))
        if looked > _MAX_COMPARED_NAMES:
            return

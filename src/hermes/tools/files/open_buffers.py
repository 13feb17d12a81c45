"""Files that are open in the user's editor, with text that is not saved yet. A tool sees what the editor would save.

Before a file is changed, the editor saves its text, so that undo returns to what the user had. The change then goes
through the editor too. Whatever the editor can't do happens on disk, as everywhere else: editors reload files that
changed on disk.
"""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

from hermes.errors import ToolFailed
from hermes.tools.files.file_content import UNCHANGED, Content, read_content
from hermes.tools.files.file_stamps import Stamp, digest_of
from hermes.tools.files.replace_file import StagedFile

_MAX_BUFFER_BYTES = 1024 * 1024
"""The editor is not asked for larger files: the whole text is sent in one message."""
_BYTE_ORDER_MARK = "\ufeff"


class OpenBuffers(Protocol):
    """The editor. Its methods block while they wait for an answer, so they are called only in threads."""

    def text(self, path: Path) -> str | None:
        """The text of a file in the editor; None if the editor does not know it."""
        ...

    def write(self, path: Path, text: str) -> bool:
        """Makes the editor replace the text of a file and save it. Returns False if it can't."""
        ...

    def last_text(self, path: Path) -> str | None:
        """The last result of `text`, without asking again. None if there is none."""
        ...


class RememberedBuffers:
    """The editor's latest answers, for callers that can't wait."""

    def __init__(self, buffers: OpenBuffers) -> None:
        self.text = self.last_text = buffers.last_text

    def write(self, path: Path, text: str) -> bool:  # noqa: ARG002 - the port's shape
        """Writes nothing."""
        return False


def unsaved_data(buffers: OpenBuffers | None, path: Path, saved: bytes) -> bytes | None:
    """The content that the editor would save for a file; None if it is what is on disk."""
    disk = _text(saved)
    if buffers is None or disk is None:
        return None
    text = buffers.text(path)
    if text is None or _plain(text) == _plain(disk):
        return None
    return _as_saved(text, disk).encode(errors="replace")


def buffered_content(path: Path, buffers: OpenBuffers | None) -> Content | None:
    """The content of a file as the user sees it, including unsaved changes. None if there is no file."""
    content = read_content(path)
    if content is None:
        return None
    data = unsaved_data(buffers, path, content.data)
    if data is None:
        return content
    stamp = Stamp(
        len(data), content.stamp.changed, content.stamp.inode, digest_of(data)
    )
    return Content(data, stamp, content.mode)


def save_buffers(buffers: OpenBuffers, paths: Iterable[Path]) -> None:
    """Makes the editor save files that are about to be changed. Raises ToolFailed if one has unsaved text and it can't."""
    for path in {Path(os.path.realpath(one)) for one in paths}:
        _save_buffer(buffers, path)


def _save_buffer(buffers: OpenBuffers, path: Path) -> None:
    try:
        content = read_content(path)
    except (OSError, ToolFailed):
        return  # the tool itself reports what is wrong with the file
    if content is None or unsaved_data(buffers, path, content.data) is None:
        return
    text = buffers.last_text(path)
    if text is not None and _leads_to(path) and buffers.write(path, text):
        content = read_content(path)
        if content and unsaved_data(buffers, path, content.data) is None:
            return
    raise ToolFailed(
        f"{path} has unsaved changes in the user's editor.",
        hint=f"{UNCHANGED} Ask the user to save it.",
    )


def place_file(
    staged: StagedFile, data: bytes, before: bytes | None, buffers: OpenBuffers | None
) -> Stamp:
    """Moves new content into place: through the editor if possible, else on disk. Raises ToolFailed if the user typed
    meanwhile."""
    if buffers is None or not _goes_through_editor(data, before):
        return staged.commit()
    path = staged.path
    if before is not None:
        text = buffers.text(path)
        if text is None:
            return staged.commit()
        if text != before.decode():
            raise ToolFailed(
                f"{path} was changed in the editor while it was edited.",
                hint=f"{UNCHANGED} Read it again.",
            )
    if _leads_to(path) and buffers.write(path, data.decode()):
        now = read_content(path)
        if now is not None and now.data != before:
            return staged.stamp
    return staged.commit()


def _goes_through_editor(data: bytes, before: bytes | None) -> bool:
    """Whether an editor writes exactly these bytes: UTF-8 with plain line ends."""
    for content in (data, before or b""):
        text = _text(content)
        if text is None or text != _plain(text):
            return False
    return True


def _text(data: bytes) -> str | None:
    if len(data) > _MAX_BUFFER_BYTES or b"\0" in data:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def _plain(text: str) -> str:
    """A text as editors hold it in memory, whatever its line ends in the file."""
    return text.removeprefix(_BYTE_ORDER_MARK).replace("\r\n", "\n")


def _as_saved(text: str, disk: str) -> str:
    """A text with the line ends and the byte order mark that the file has."""
    plain = _plain(text)
    if "\r\n" in disk:
        plain = plain.replace("\n", "\r\n")
    return _BYTE_ORDER_MARK + plain if disk.startswith(_BYTE_ORDER_MARK) else plain


def _leads_to(path: Path) -> bool:
    """Whether a path that was judged still leads to the same file: an editor follows links."""
    return os.path.realpath(path) == str(path)

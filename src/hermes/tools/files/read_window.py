"""Reads part of a text file, however large: a window of lines, and facts about the rest."""

import io
import os
import stat
from pathlib import Path
from typing import BinaryIO

import msgspec

from hermes.errors import ToolFailed
from hermes.images.image_info import media_type
from hermes.tools.files.file_stamps import Stamp, digest_of
from hermes.tools.process.long_output import is_binary

MAX_LINES = 2000
MAX_WINDOW_BYTES = 50_000
MAX_WHOLE_BYTES = 1024 * 1024
"""Smaller files are read whole, and later recognised by their content."""
_READ_BYTES = 1024 * 1024
_HINTS = {
    b"\x1f\x8b": "Compressed with gzip: terminal with `zcat FILE` shows it.",
    b"SQLite format 3": "A SQLite database: terminal with `sqlite3 FILE .schema` shows its tables.",
}


class NotText(ToolFailed):
    """The file is not text; it may be a document or a picture."""


class FileWindow(msgspec.Struct, frozen=True):
    """Lines of a file: `text` holds `first` to `last` of `total`; `cut` says what is missing from a line that is too
    long."""

    text: str
    first: int
    last: int
    total: int
    stamp: Stamp
    cut: str = ""


def read_window(path: Path, offset: int, limit: int) -> FileWindow:
    """Reads up to `limit` lines from line `offset` on. Raises OSError, or NotText."""
    with open_regular(path) as file:
        status = os.fstat(file.fileno())
        start = file.read(8192)
        if is_binary(start) or media_type(start[:16]) or start.startswith(b"%PDF-"):
            raise _not_text(path, start, status.st_size)
        if status.st_size > MAX_WHOLE_BYTES:
            return _window(file, offset, limit, Stamp.of(status))
        data = start + file.read()
        return _window(
            io.BytesIO(data), offset, limit, Stamp.of(status, digest_of(data))
        )


def bytes_window(
    data: bytes, offset: int, limit: int, status: os.stat_result
) -> FileWindow:
    """The lines of the content that a file will have, such as a text that is not saved yet."""
    stamp = Stamp.of(status, digest_of(data))
    return _window(io.BytesIO(data), offset, limit, stamp)


def text_window(
    text: str, offset: int, limit: int, status: os.stat_result
) -> FileWindow:
    """The lines of a text that was derived from a file, such as a document's."""
    return _window(io.BytesIO(text.encode()), offset, limit, Stamp.of(status))


def open_regular(path: Path) -> BinaryIO:
    """Opens a file, but does not wait for one that is not regular, such as a pipe or a device."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    mode = os.fstat(handle).st_mode
    if stat.S_ISREG(mode):
        return os.fdopen(handle, "rb")
    os.close(handle)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(path)
    raise ToolFailed(f"{path} is not a regular file.")


def _window(file: BinaryIO, offset: int, limit: int, stamp: Stamp) -> FileWindow:
    start = _start_of_line(file, offset)
    file.seek(start)
    body = file.read(MAX_WINDOW_BYTES + 1)
    lines = _by_newline(body[:MAX_WINDOW_BYTES])
    cut = ""
    if len(body) > MAX_WINDOW_BYTES and not lines[-1].endswith(b"\n"):
        if len(lines) > 1:
            lines.pop()
        else:
            cut = f"line {offset} is longer than {MAX_WINDOW_BYTES:,} bytes and shown in part; use terminal to see more of it"
    lines = lines[:limit]
    text = b"".join(lines)
    last = offset + len(lines) - 1
    file.seek(start + len(text))
    return FileWindow(
        text.decode(errors="replace"),
        offset,
        last,
        last + _lines_left(file, cut=bool(cut)),
        stamp,
        cut,
    )


def _by_newline(data: bytes) -> list[bytes]:
    lines = [line + b"\n" for line in data.split(b"\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


def _start_of_line(file: BinaryIO, offset: int) -> int:
    """Returns where a line starts, in bytes."""
    file.seek(0)
    missing, place = offset - 1, 0
    while missing:
        chunk = file.read(_READ_BYTES)
        count = chunk.count(b"\n")
        if not chunk:
            raise ToolFailed(
                f"offset {offset} is past the end: the file has {offset - 1 - missing + bool(place)} lines."
            )
        if count < missing:
            missing -= count
            place += len(chunk)
            continue
        found = -1
        for _ in range(missing):
            found = chunk.find(b"\n", found + 1)
        return place + found + 1
    return 0


def _lines_left(file: BinaryIO, *, cut: bool) -> int:
    """Returns how many lines follow, not counting the rest of a cut line."""
    count, last = 0, b""
    while chunk := file.read(_READ_BYTES):
        count += chunk.count(b"\n")
        last = chunk
    unended = bool(last) and not last.endswith(b"\n")
    return max(0, count + unended - cut)


def _not_text(path: Path, start: bytes, size: int) -> NotText:
    if start[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return NotText(
            f"{path} is UTF-16 text.",
            hint="Convert it first: iconv -f UTF-16 -t UTF-8.",
        )
    if media_type(start[:16]):
        return NotText(
            f"{path} is a picture ({size:,} bytes).",
            hint="Use vision_analyze to see it.",
        )
    hint = next(
        (hint for signature, hint in _HINTS.items() if start.startswith(signature)), ""
    )
    return NotText(
        f"{path} is a binary file ({size:,} bytes, beginning with {start[:8].hex(' ')}).",
        hint=hint,
    )

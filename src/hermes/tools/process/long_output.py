"""Shortens output that is too long for a model: its beginning and end are shown, and all of it is saved to a file.

The name of a file with text from outside says so, because its readers must know. Memory is bounded, and so are the
size, number and age of the files.
"""

import contextlib
import os
import time
from pathlib import Path

from hermes.errors import os_reason
from hermes.primitives.files import make_private_folder, open_private
from hermes.primitives.lazy_pattern import lazy_pattern
from hermes.text.formats import count
from hermes.tools.escapes import clean

MAX_SHOWN_BYTES = 30_000
"""Of longer output, the head and the tail are shown."""
_SHOWN_HEAD_BYTES = 10_000
_TAIL_BYTES = MAX_SHOWN_BYTES - _SHOWN_HEAD_BYTES
_MAX_FILE_BYTES = 64 * 1024 * 1024
"""Longer output is not saved beyond this."""
_FOREIGN = lazy_pattern(r"([a-z_]+-from|mcp-[\w.-]+)-[0-9a-f]{12}(\.|$)")
_MAX_SAVED_OUTPUTS = 50
_MAX_AGE_S = 7 * 24 * 3600.0


class OutputFolder:
    """The folder for long outputs, for this user only. Created on first use."""

    def __init__(self, folder: Path) -> None:
        self.path = folder

    def capture(self, name: str, source: str = "") -> "Capture":
        """Returns a collector for one output. `name` names its origin; `source` is set if it may contain text from
        outside."""
        return Capture(self, f"{name}-from" if source else name)

    def source_of(self, path: Path) -> str:
        """Returns the source of a saved file with text from outside; empty for any other file."""
        is_foreign = path.parent == Path(
            os.path.realpath(self.path)
        ) and _FOREIGN.match(path.name)
        return f"kept output {path.name}" if is_foreign else ""

    def mentions(self, command: str) -> str:
        """Returns the source of the text that a command may show because it names such files."""
        return (
            "kept outputs"
            if str(self.path) in command or _FOREIGN.search(command)
            else ""
        )

    def create_foreign(self, name: str) -> tuple[Path, int]:
        """Creates a file for text from outside."""
        return self.create(f"{name}-from")

    def create(self, name: str) -> tuple[Path, int]:
        """Creates a file, open for writing, and deletes the oldest ones."""
        make_private_folder(self.path)
        self._prune()
        path = self.path / f"{name}-{os.urandom(6).hex()}.txt"
        return path, open_private(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)

    def _prune(self) -> None:
        with os.scandir(self.path) as entries:
            files = sorted(
                (
                    (entry.stat(follow_symlinks=False).st_mtime, entry.path)
                    for entry in entries
                ),
                reverse=True,
            )
        oldest = time.time() - _MAX_AGE_S
        for number, (changed, path) in enumerate(files):
            if number >= _MAX_SAVED_OUTPUTS - 1 or changed < oldest:
                with contextlib.suppress(
                    FileNotFoundError
                ):  # another process deleted it first
                    os.unlink(path)  # noqa: PTH108 - a string from scandir


class Capture:
    """Collects one output."""

    def __init__(self, folder: OutputFolder, name: str) -> None:
        self.size = 0
        self._folder = folder
        self._name = name
        self._line_ends = 0
        self._start = bytearray()
        self._tail = b""
        self._file = -1
        self._path: Path | None = None
        self._written = 0
        self._problem = ""

    def feed(self, chunk: bytes) -> None:
        """Adds the next piece."""
        if self.size < MAX_SHOWN_BYTES:
            self._start += chunk[: MAX_SHOWN_BYTES - self.size]
        rest = (
            chunk[max(0, MAX_SHOWN_BYTES - self.size) :]
            if self.size < MAX_SHOWN_BYTES
            else chunk
        )
        self.size += len(chunk)
        self._line_ends += chunk.count(b"\n")
        self._tail = (
            rest[-_TAIL_BYTES:]
            if len(rest) >= _TAIL_BYTES
            else (self._tail + rest)[-_TAIL_BYTES:]
        )
        if rest:
            self._keep(rest)

    def close(self) -> None:
        """Closes the file. Idempotent."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def text(self) -> str:
        """Returns the text for the model."""
        self.close()
        if is_binary(bytes(self._start)):
            first = bytes(self._start[:16]).hex(" ")
            return f"[binary output, {self.size:,} bytes, beginning with {first}{self.where('; ')}]"
        if self.size <= MAX_SHOWN_BYTES:
            return clean(self._start.decode(errors="replace"))
        head = _until_line_end(bytes(self._start[:_SHOWN_HEAD_BYTES]))
        tail = _from_line_start((bytes(self._start) + self._tail)[-_TAIL_BYTES:])
        left_out = self.size - len(head) - len(tail)
        shown = head.count(b"\n") + 1 + tail.count(b"\n")
        lines = max(self._line_ends - shown, 0)
        of_lines = f"{count(lines, 'line')}, " if lines else ""
        note = f"[{of_lines}{left_out:,} of {self.size:,} bytes left out here{self.where('; ')}]"
        return f"{clean(head.decode(errors='ignore'))}\n{note}\n{clean(tail.decode(errors='ignore'))}"

    def where(self, before: str) -> str:
        """Says where the rest is; empty if there is none."""
        if self._problem:
            return f"{before}the rest could not be saved: {self._problem}"
        if self._path is None:
            return ""
        what = (
            "all of it is"
            if self.size == self._written
            else f"its first {self._written:,} bytes are"
        )
        return f"{before}{what} in {self._path}"

    def _keep(self, rest: bytes) -> None:
        """Writes to the file, beginning with what came before. A full disk does not stop the command."""
        if self._problem or self._written >= _MAX_FILE_BYTES:
            return
        try:
            if self._path is None:
                self._path, self._file = self._folder.create(self._name)
                self._write(bytes(self._start))
            self._write(rest[: _MAX_FILE_BYTES - self._written])
        except OSError as error:
            self._problem = os_reason(error)
            self.close()

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            size = os.write(self._file, view)
            self._written += size
            view = view[size:]


def is_binary(start: bytes) -> bool:
    """Whether bytes are not text: they contain a NUL, or many invalid UTF-8 sequences."""
    sample = start[:8192]
    if b"\0" in sample:
        return True
    return sample.decode(errors="replace").count("\ufffd") > max(4, len(sample) // 10)


def _until_line_end(data: bytes) -> bytes:
    end = data.rfind(b"\n")
    return data[:end] if end > len(data) // 2 else data


def _from_line_start(data: bytes) -> bytes:
    start = data.find(b"\n")
    if 0 <= start < len(data) // 2:
        return data[start + 1 :]
    return data

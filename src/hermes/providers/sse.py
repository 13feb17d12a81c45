"""Parses server-sent events, however the bytes were cut. Bounded in size, and strict about what is no event."""

from collections.abc import Iterator

from msgspec import Struct

from hermes.text.translation import translator

t = translator(__name__)


MAX_EVENT_BYTES = 16 * 1024 * 1024  # also of one line


class ServerEvent(Struct, frozen=True, gc=False):
    """One event: its name (mostly empty), its data, and the last id that the stream gave."""

    name: str
    data: bytes
    id: str = ""


class BrokenEvents(ValueError):
    """The bytes are not server-sent events, or one is too large."""


class EventParser:
    """Turns bytes into events. What is left when the stream ends was cut off, and never becomes an event."""

    __slots__ = (
        "_data",
        "_id",
        "_limit",
        "_line",
        "_line_size",
        "_name",
        "_size",
        "_skip_newline",
        "_started",
    )

    def __init__(self, limit: int = MAX_EVENT_BYTES) -> None:
        self._limit = limit
        self._line: list[bytes] = []  # pieces of a line whose end has not come yet
        self._line_size = 0
        self._data: list[bytes] = []
        self._size = 0
        self._name = ""
        self._id = ""
        self._skip_newline = False
        self._started = False

    def feed(self, chunk: bytes) -> Iterator[ServerEvent]:
        """Yields the events that `chunk` completes; all of them must be taken."""
        if b"\r" in chunk or self._skip_newline:
            chunk = self._plain_newlines(chunk)
        if b"\n" not in chunk:
            self._keep(chunk)
            return
        if self._line:
            chunk = b"".join((*self._line, chunk))
            self._line.clear()
            self._line_size = 0
        if not self._started:
            self._started = True
            chunk = chunk.removeprefix(b"\xef\xbb\xbf")
        lines = chunk.split(b"\n")
        rest = lines.pop()
        yield from self._read(lines)
        self._keep(rest)

    def _plain_newlines(self, chunk: bytes) -> bytes:
        """Turns CR and CRLF into LF. A CR at the end of a chunk ends its line; a LF after it belongs to it."""
        if not chunk:
            return chunk
        if self._skip_newline and chunk.startswith(b"\n"):
            chunk = chunk[1:]
            if not chunk:
                self._skip_newline = False
                return chunk
        self._skip_newline = chunk.endswith(b"\r")
        return chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _keep(self, piece: bytes) -> None:
        if not piece:
            return
        self._line_size += len(piece)
        if self._line_size > self._limit:
            raise BrokenEvents(
                t.logged("a line of more than {limit} bytes", limit=self._limit)
            )
        self._line.append(piece)

    def _read(self, lines: list[bytes]) -> Iterator[ServerEvent]:
        for line in lines:
            if not line:
                if self._data:
                    data = (
                        self._data[0]
                        if len(self._data) == 1
                        else b"\n".join(self._data)
                    )
                    name, self._name = self._name, ""
                    self._data.clear()
                    self._size = 0
                    yield ServerEvent(name, data, self._id)
                self._name = ""
            elif line.startswith(b"data:"):
                self._add_data(line[6:] if line.startswith(b"data: ") else line[5:])
            elif line.startswith(b"event:"):
                self._name = line[6:].removeprefix(b" ").decode("utf-8", "replace")
                if not self._name.isprintable():
                    raise BrokenEvents(
                        t.logged(
                            "an event with a broken name: {name}",
                            name=repr(self._name[:80]),
                        )
                    )
            else:
                self._rare(line)

    def _rare(self, line: bytes) -> None:
        """Reads a rare field. The standard ignores unknown ones; here they mean that something else was sent."""
        if line == b"data":
            self._add_data(b"")
        elif line.startswith(b"error:"):  # as llama.cpp's server reports one
            self._name = "error"
            self._add_data(line[6:].strip())
        elif line.startswith(b"id:"):
            self._id = line[3:].removeprefix(b" ").decode("utf-8", "replace")
        elif not line.startswith((b":", b"retry:")) and line not in {
            b"id",
            b"retry",
            b"event",
        }:
            raise BrokenEvents(
                t.logged(
                    "a line that belongs to no event: {line}",
                    line=repr(line[:80].decode("utf-8", "replace")),
                )
            )

    def _add_data(self, value: bytes) -> None:
        self._size += len(value) + 1
        if self._size > self._limit:
            raise BrokenEvents(
                t.logged("an event of more than {limit} bytes", limit=self._limit)
            )
        self._data.append(value)

"""The newest output of a terminal, by position: a bounded window on an endless stream of bytes."""

from collections import deque

MAX_SCROLLBACK_BYTES = 1024 * 1024


class Scrollback:
    """Keeps the newest bytes. Positions count from the very first byte of output."""

    def __init__(self, limit: int = MAX_SCROLLBACK_BYTES) -> None:
        self._limit = limit
        self._pieces: deque[tuple[int, bytes]] = deque()
        self._size = 0
        self.end = 0

    @property
    def start(self) -> int:
        """The position of the oldest byte that is still stored."""
        return self.end - self._size

    def add(self, piece: bytes) -> None:
        """Adds output. Drops whole pieces, oldest first, until the rest is within the limit."""
        if not piece:
            return
        self.end += len(piece)
        piece = piece[-self._limit :]
        self._pieces.append((self.end - len(piece), piece))
        self._size += len(piece)
        while self._size > self._limit:
            self._size -= len(self._pieces.popleft()[1])

    def after(self, position: int, most: int) -> bytes:
        """Up to `most` bytes from `position` on, which must not be before `start`."""
        found: list[bytes] = []
        room = most
        for at, piece in self._from(position):
            part = piece[max(0, position - at) :][:room]
            found.append(part)
            room -= len(part)
            if room <= 0:
                break
        if len(found) != 1:
            return b"".join(found)
        return found[0]

    def fresh_start(self) -> int:
        """Where a new reader can start without being inside a line, and so inside a character or a control sequence:
        at the very beginning, or else after the first stored line end."""
        if self.start == 0:
            return 0
        for at, piece in self._pieces:
            found = piece.find(b"\n")
            if found >= 0:
                return at + found + 1
        return self.end

    def _from(self, position: int) -> list[tuple[int, bytes]]:
        """The pieces that end after a position. Searches backwards, because readers are usually near the end."""
        found: list[tuple[int, bytes]] = []
        for at, piece in reversed(self._pieces):
            if at + len(piece) <= position:
                break
            found.append((at, piece))
        found.reverse()
        return found

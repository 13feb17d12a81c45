"""What a terminal wrote last, by position: a bounded window on an endless stream of bytes."""

from collections import deque

MAX_SCROLLBACK_BYTES = 1024 * 1024


class Scrollback:
    """Keeps the newest bytes. A position counts from the first byte there ever was."""

    def __init__(self, limit: int = MAX_SCROLLBACK_BYTES) -> None:
        self._limit = limit
        self._pieces: deque[tuple[int, bytes]] = deque()
        self._size = 0
        self.end = 0

    @property
    def start(self) -> int:
        """Position of the oldest byte that is still there."""
        return self.end - self._size

    def add(self, piece: bytes) -> None:
        """Takes more; the oldest gives way, in whole pieces and at most one piece below the limit."""
        if not piece:
            return
        self.end += len(piece)
        piece = piece[-self._limit :]
        self._pieces.append((self.end - len(piece), piece))
        self._size += len(piece)
        while self._size > self._limit:
            self._size -= len(self._pieces.popleft()[1])

    def after(self, position: int, most: int) -> bytes:
        """Up to `most` bytes from `position` on, which must not lie before `start`."""
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
        """Where a reader who has seen nothing may begin without landing inside a line, and so inside a character or
        a control sequence: the beginning of everything, else behind the first line end that is left."""
        if self.start == 0:
            return 0
        for at, piece in self._pieces:
            found = piece.find(b"\n")
            if found >= 0:
                return at + found + 1
        return self.end

    def _from(self, position: int) -> list[tuple[int, bytes]]:
        """The pieces that reach beyond a position. Readers are mostly near the end, so it is looked for from there."""
        found: list[tuple[int, bytes]] = []
        for at, piece in reversed(self._pieces):
            if at + len(piece) <= position:
                break
            found.append((at, piece))
        found.reverse()
        return found

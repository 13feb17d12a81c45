"""What the model thinks before it answers, and how long that takes."""

from hermes.surfaces.terminal.text import clean

_MAX_THOUGHT_CHARS = 100_000


class ReplyThoughts:
    """The thoughts of one reply."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._size = 0
        self._began = self._ended = 0.0

    @property
    def text(self) -> str:
        """All of it; of very long thoughts only the beginning."""
        return "".join(self._parts)

    @property
    def seconds(self) -> float:
        """From the first piece to the last."""
        return self._ended - self._began

    @property
    def last_line(self) -> str:
        """The line that is being written."""
        end = "".join(self._parts[-50:])[-400:]
        return clean(end).strip().rpartition("\n")[2]

    def add(self, text: str, now: float) -> None:
        """Adds a piece."""
        if not self._parts:
            self._began = now
        self._ended = now
        if self._size < _MAX_THOUGHT_CHARS:
            self._parts.append(text)
            self._size += len(text)

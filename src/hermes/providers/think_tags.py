"""Turns `<think>...</think>` at the very beginning of a reply into reasoning, where a server left it in the text.

Anywhere else the tags are the model's own text.
"""

_OPEN = "<think>"
_CLOSE = "</think>"


class Thinking:
    """Splits the text of one reply as it comes. Nothing is lost: what turns out not to be a tag is text."""

    def __init__(self) -> None:
        self._held = ""
        self._inside = False
        self._over = False
        self._gap = False  # between the thinking and the first word

    def feed(self, text: str) -> tuple[str, str]:
        """Returns the next piece as (thought, text)."""
        if self._over:
            text = text.lstrip() if self._gap else text
            self._gap = self._gap and not text
            return "", text
        self._held += text
        if not self._inside:
            start = self._held.lstrip()
            if _OPEN.startswith(start):
                return "", ""  # too early to tell
            if not start.startswith(_OPEN):
                return "", self._release()
            self._inside = True
            self._held = start.removeprefix(_OPEN)
        thought, closed, rest = self._held.partition(_CLOSE)
        if closed:
            self._over, self._held = True, ""
            self._gap = True
            return thought, self.feed(rest)[1]
        kept = _beginning_of_close(thought)
        self._held = thought[len(thought) - kept :]
        return thought[: len(thought) - kept], ""

    def end(self) -> tuple[str, str]:
        """Returns what was still held back when the reply ended, as (thought, text)."""
        inside, held = self._inside and not self._over, self._release()
        return (held, "") if inside else ("", held)

    def _release(self) -> str:
        self._over, held = True, self._held
        self._held = ""
        return held


def _beginning_of_close(text: str) -> int:
    """How many characters at the end may be the beginning of the closing tag."""
    return next(
        (
            size
            for size in range(min(len(_CLOSE) - 1, len(text)), 0, -1)
            if _CLOSE.startswith(text[-size:])
        ),
        0,
    )

"""Turns thinking that a server left in the text (`<think>...</think>`, scratchpads) into reasoning, wherever it stands.

A block at the beginning of a line is thinking from its first word on, closed or not. Within a line it is thinking only if
it is closed soon. In code the tags are text.
"""

import re

from hermes.primitives.lazy_pattern import lazy_pattern
from hermes.schema.model import ModelEvent, ReasoningPiece, TextDelta

_NAMES = ("think", "thinking", "thought", "reasoning", "scratchpad", "reasoning_scratchpad")  # fmt: skip
_OPENERS = {f"<{name}>": f"</{name}>" for name in _NAMES}
_LONGEST_OPENER = max(map(len, _OPENERS))
_MAX_INLINE_CHARACTERS = 2000
_FENCES = ("```", "~~~")
_FENCE_LENGTH = 3
_CLOSING_LINE = lazy_pattern(
    rf"^ {{0,3}}</(?:{'|'.join(_NAMES)})>\s*", re.IGNORECASE | re.MULTILINE
)


class Thinking:
    """Splits the text of one reply as it arrives. Nothing is lost: anything that turns out not to be a tag is text."""

    def __init__(self, *, begins: bool = True) -> None:
        self._held = ""
        self._close = ""  # the tag that ends the block we are in
        self._opener = ""  # how the block began, while it may still turn out to be text
        self._gap = begins  # before the first word, or behind a block of its own
        self._line = _LineState()

    def feed(self, text: str) -> tuple[str, str]:
        """Returns the next piece as (thought, text)."""
        self._held += text
        return self._split(is_over=False)

    def end(self) -> tuple[str, str]:
        """Returns what was still held back when the reply ended, as (thought, text)."""
        return self._split(is_over=True)

    def _split(self, *, is_over: bool) -> tuple[str, str]:
        thoughts: list[str] = []
        texts: list[str] = []
        while self._held:
            before = len(self._held), self._close
            if self._opener:
                self._inline(thoughts, texts, is_over=is_over)
            elif self._close:
                self._block(thoughts, is_over=is_over)
            else:
                self._plain(texts, is_over=is_over)
            if (len(self._held), self._close) == before:
                break  # too early to tell
        return "".join(thoughts), "".join(texts)

    def _plain(self, texts: list[str], *, is_over: bool) -> None:
        """Text up to something that is, or may become, an opening tag."""
        at = self._held.find("<")
        if at < 0:
            self._say(self._held, texts)
            self._held = ""
            return
        self._say(self._held[:at], texts)
        self._held = self._held[at:]
        start = self._held[:_LONGEST_OPENER].lower()
        opener = next((one for one in _OPENERS if start.startswith(one)), "")
        if opener and not self._line.is_code:
            self._close = _OPENERS[opener]
            written, self._held = self._held[: len(opener)], self._held[len(opener) :]
            self._opener = "" if self._line.is_blank else written
        elif opener or is_over or not any(one.startswith(start) for one in _OPENERS):
            self._say("<", texts)
            self._held = self._held[1:]

    def _block(self, thoughts: list[str], *, is_over: bool) -> None:
        """Thinking up to the tag that closes it."""
        at = self._held.lower().find(self._close)
        if at >= 0:
            thoughts.append(self._held[:at])
            self._held = self._held[at + len(self._close) :]
            self._close, self._gap = "", True
            return
        kept = 0 if is_over else _beginning_of(self._close, self._held.lower())
        thoughts.append(self._held[: len(self._held) - kept])
        self._held = self._held[len(self._held) - kept :]

    def _inline(self, thoughts: list[str], texts: list[str], *, is_over: bool) -> None:
        """A block within a line: thinking if it is closed soon, else text."""
        limit = _MAX_INLINE_CHARACTERS + len(self._close)
        at = self._held[:limit].lower().find(self._close)
        if at >= 0:
            thoughts.append(self._held[:at])
            self._held = self._held[at + len(self._close) :]
        elif is_over or len(self._held) >= limit:
            self._say(self._opener, texts)
        else:
            return
        self._close = self._opener = ""

    def _say(self, text: str, texts: list[str]) -> None:
        if self._gap:
            text = text.lstrip() if self._line.is_blank else text
            self._gap = self._gap and not text
        self._line.add(text)
        texts.append(text)


class ReplyWords:
    """The text and the thinking of a reply, as they come. All formats read what a server sends through it. `begins`: no
    other text of the reply comes before. Without `has_tags`, tags in the text are part of it."""

    def __init__(self, *, begins: bool = True, has_tags: bool = True) -> None:
        self._has_tags = has_tags
        self.text: list[str] = []
        self.reasoning: list[str] = []
        self._thinking = Thinking(begins=begins)

    def add_text(self, text: str) -> list[ModelEvent]:
        """Text that a server sent, which may have thinking in it."""
        if not self._has_tags:
            return self.add("", text)
        return self.add(*self._thinking.feed(text))

    def end_part(self) -> list[ModelEvent]:
        """Marks the end of a part of the text; a block that begins in it does not continue in the next part."""
        rest = self.add(*self._thinking.end())
        self._thinking = Thinking(begins=not self.text)
        return rest

    def add(self, thought: str, text: str) -> list[ModelEvent]:
        """Adds text and thinking that the server has already separated."""
        events: list[ModelEvent] = []
        if thought:
            self.reasoning.append(thought)
            events.append(ReasoningPiece(thought))
        if text:
            self.text.append(text)
            events.append(TextDelta(text))
        return events

    def both(self) -> tuple[str, str]:
        """The thinking and the text of the whole reply."""
        thought, text = "".join(self.reasoning), "".join(self.text)
        is_apart = thought or not self._has_tags
        return (thought, text) if is_apart else split_unopened(text)


def without_thinking(text: str) -> str:
    """A complete part of a reply without the thinking in it, as it is sent back."""
    words = ReplyWords()
    words.add_text(text)
    words.end_part()
    return "".join(words.text)


def split_unopened(text: str) -> tuple[str, str]:
    """Returns (thought, text) of a whole reply whose opening tag was in the prompt, where some chat templates have it.

    The first line that begins with a closing tag, outside code, ends the thinking. Without one, all of it is text.
    """
    found = _CLOSING_LINE.search(text) if "</" in text else None
    if found is None:
        return "", text
    before = _LineState()
    before.add(text[: found.start()])
    if before.is_code:
        return "", text
    return text[: found.start()].strip(), text[found.end() :]


class _LineState:
    """What is known about the line that is being written: whether it is blank so far, and whether it is code."""

    def __init__(self) -> None:
        self._start = ""
        self._ticks = 0
        self._fence = (
            ""  # the marker that began the current code; only the same one ends it
        )

    @property
    def is_blank(self) -> bool:
        return not self._start

    @property
    def is_code(self) -> bool:
        return bool(self._fence) or self._start in _FENCES or self._ticks % 2 == 1

    def add(self, text: str) -> None:
        first, *rest = text.split("\n")
        self._extend(first)
        for line in rest:
            if self._start == self._fence:
                self._fence = ""
            elif self._start in _FENCES and not self._fence:
                self._fence = self._start
            self._start, self._ticks = "", 0
            self._extend(line)

    def _extend(self, piece: str) -> None:
        self._ticks += piece.count("`")
        if len(self._start) < _FENCE_LENGTH:
            piece = piece if self._start else piece.lstrip()
            self._start = (self._start + piece)[:_FENCE_LENGTH]


def _beginning_of(tag: str, text: str) -> int:
    """How many characters at the end may be the beginning of a tag."""
    longest = min(len(tag) - 1, len(text))
    sizes = range(longest, 0, -1)
    return next((size for size in sizes if tag.startswith(text[-size:])), 0)

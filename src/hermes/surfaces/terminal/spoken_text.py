"""Text for screen readers: without the marks of Markdown that would be read aloud as symbols."""

import re

_FENCE = re.compile(r" {0,3}```")
_HEADING = re.compile(r" {0,3}#{1,6} +")
_BEGINNING = re.compile(r" {0,3}(?:#{1,6} *|`{1,2})?")
"""What may become a heading or a fence."""
_OPEN_MARK = re.compile(r"(?:\*+|`+)\Z")
_CODE_MARK = re.compile(r"`+")


class SpokenText:
    """Leaves out the marks of headings, bold text and code in a line. Blocks of code stay as they are."""

    def __init__(self) -> None:
        self._held = ""  # the start of a mark, perhaps
        self._is_fresh = True  # at the start of a line
        self._is_fence = False  # in the first or the last line of a block
        self._in_block = False
        self._in_code = False

    def feed(self, text: str) -> str:
        """Returns what can be shown. The start of a mark waits for what follows it."""
        text = self._held + text
        at = self._end_of_certain(text)
        self._held = text[at:]
        return self._shown(text[:at])

    def end(self) -> str:
        """Returns the rest, and begins anew."""
        text, self._held = self._shown(self._held), ""
        self._is_fresh, self._is_fence = True, False
        self._in_block = self._in_code = False
        return text

    def _end_of_certain(self, text: str) -> int:
        begin = text.rfind("\n") + 1
        if (begin or self._is_fresh) and _BEGINNING.fullmatch(text, begin):
            return begin
        found = _OPEN_MARK.search(text)
        return found.start() if found else len(text)

    def _shown(self, text: str) -> str:
        return "".join(map(self._of_line, text.splitlines(keepends=True)))

    def _of_line(self, text: str) -> str:
        """Returns a line, or a part of one."""
        if self._is_fresh and _FENCE.match(text):
            self._is_fence, self._in_block = True, not self._in_block
        is_raw = self._in_block or self._is_fence
        shown = text if is_raw else self._without_marks(text)
        self._is_fresh = text.endswith("\n")
        if self._is_fresh:
            self._is_fence = self._in_code = False
        return shown

    def _without_marks(self, text: str) -> str:
        if self._is_fresh:
            text = _HEADING.sub("", text, count=1) if _HEADING.match(text) else text
        parts: list[str] = []
        for number, part in enumerate(_CODE_MARK.split(text)):
            if number:
                self._in_code = not self._in_code
            parts.append(part if self._in_code else part.replace("**", ""))
        return "".join(parts)

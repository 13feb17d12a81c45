"""Text for screen readers: without the marks of Markdown that would be read aloud as symbols."""

import re

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_HEADING = re.compile(r" {0,3}#{1,6} +")
_BEGINNING = re.compile(r" {0,3}(?:#{1,6} *|`+|~+)?")
"""What may become a heading or a fence."""
_MARK = re.compile(r"\*+|`+")
_NOT_BEFORE_BOLD = re.compile(r"[A-Za-z0-9_/(]")
"""As in `2**10`, `src/**` and `f(**options)`. In languages without spaces a letter may come before bold text."""
_NOT_IN_BOLD = re.compile(r"[\s/]|\Z")
"""What bold text does not begin with."""
_NOT_AFTER_BOLD = re.compile(r"[A-Za-z0-9_/]")


class SpokenText:
    """Leaves out the marks of headings, bold text and code in a line. Blocks of code stay as they are."""

    def __init__(self) -> None:
        self._held = ""  # the start of a mark, perhaps
        self._fence = ""  # the marks that began the block
        self._begin_line()

    def feed(self, text: str) -> str:
        """Returns what can be shown. The start of a mark waits for what follows it."""
        text = self._held + text
        at = self._end_of_certain(text)
        self._held = text[at:]
        return self._shown(text[:at])

    def end(self) -> str:
        """Returns the rest, and begins anew."""
        text, self._held = self._shown(self._held), ""
        self._fence = ""
        self._begin_line()
        return text

    def _begin_line(self) -> None:
        self._is_fresh = True  # at the start of a line
        self._is_end = False  # in what may be the last line of a block
        self._in_code = self._in_bold = False
        self._before = ""  # the last character

    def _end_of_certain(self, text: str) -> int:
        begin = text.rfind("\n") + 1
        if (begin or self._is_fresh) and _BEGINNING.fullmatch(text, begin):
            return begin
        return len(text.rstrip("*`"))

    def _shown(self, text: str) -> str:
        return "".join(map(self._of_line, text.splitlines(keepends=True)))

    def _of_line(self, text: str) -> str:
        """Returns a line, or a part of one."""
        if self._is_fresh or self._is_end:
            self._find_fence(text)
        shown = text if self._fence else self._without_marks(text)
        self._is_fresh, self._before = False, text[-1]
        if text.endswith("\n"):
            self._fence = "" if self._is_end else self._fence
            self._begin_line()
        return shown

    def _find_fence(self, text: str) -> None:
        """A block ends with at least as many of the marks that began it, and nothing else in the line."""
        found = _FENCE.match(text) if self._is_fresh else None
        if self._fence:
            is_end = self._is_end or bool(found and found[1].startswith(self._fence))
            self._is_end = is_end and not text[found.end() if found else 0 :].strip()
        elif found:
            self._fence = found[1]

    def _without_marks(self, text: str) -> str:
        if self._is_fresh:
            text = _HEADING.sub("", text, count=1) if _HEADING.match(text) else text
        return _MARK.sub(self._in_place_of, text)

    def _in_place_of(self, mark: re.Match[str]) -> str:
        if mark[0].startswith("`"):
            self._in_code = not self._in_code
            return ""
        if self._in_code or len(mark[0]) not in (2, 3) or not self._is_bold_mark(mark):
            return mark[0]
        self._in_bold = not self._in_bold
        return mark[0][2:]

    def _is_bold_mark(self, mark: re.Match[str]) -> bool:
        """Whether bold text begins or, if it has begun in this line, ends here."""
        text, end = mark.string, mark.end()
        before = text[mark.start() - 1] if mark.start() else self._before
        if self._in_bold:
            return not before.isspace() and not _NOT_AFTER_BOLD.match(text, end)
        return not _NOT_BEFORE_BOLD.match(before) and not _NOT_IN_BOLD.match(text, end)

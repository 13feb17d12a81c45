"""Turns Markdown into text that sounds right when read aloud, and splits it into sentences.

Code blocks are left out, links become their text, addresses their host; headings and list items become sentences.
"""

import re
from collections.abc import Iterator

from hermes.primitives.lazy_pattern import lazy_pattern

_FENCE = lazy_pattern(
    r"^ {0,3}(`{3,12}|~{3,12})[^\n]*\n.*?(^ {0,3}\1[`~]*[ \t]*$|\Z)",
    re.MULTILINE | re.DOTALL,
)
_FENCE_MARK = lazy_pattern(r" {0,3}(?:`{3}|~{3})")
_COMMENT = lazy_pattern(r"<!--.*?(-->|\Z)", re.DOTALL)
_TAG = lazy_pattern(r"</?[A-Za-z][^<>\n]*>")
_IMAGE_OR_LINK = lazy_pattern(
    r"!?\[([^\[\]\n]*)\]\([^()\n]*(?:\([^()\n]*\)[^()\n]*)*\)"
)
_REFERENCE = lazy_pattern(
    r"\[\^[^\[\]\n]+\]:?|^ {0,3}\[[^\]\n]+\]:[^\n]*$", re.MULTILINE
)
_ADDRESS = lazy_pattern(
    r"(?:[A-Za-z][A-Za-z0-9+.-]{0,30}:){1,3}//+(?:[^\s/@<>\"]*@)?([^\s/<>\"')\]:?#]*)[^\s<>\"')\]]*"
)
_LEAD = lazy_pattern(
    r"^[ \t]*(?:>[ \t]*)*(?:#{1,6}(?=[ \t]|$)|[-*+](?=[ \t])|\d{1,3}[.)](?=[ \t]))?[ \t]*(?:\[[ xX]\][ \t]+)?"
)
_MARKS = lazy_pattern(r"[*~`#|]+|(?<!\w)_+|_+(?!\w)")
_UNSPOKEN_CHARACTERS = "\U0001f000-\U0001faff☀-➿⬀-⯿︎️‍→-⇿\x00-\x08\x0b-\x1f"
_UNSPOKEN = lazy_pattern(f"[{_UNSPOKEN_CHARACTERS}]+")
_SPACES = lazy_pattern(r"[ \t\xa0]{2,}|[\t\xa0]")
_WORD = rf"[^\s*~`#|_{_UNSPOKEN_CHARACTERS}]++"
_PLAIN_LINE = lazy_pattern(rf"(?![>\[]|[-+][ ]|\d{{1,3}}[.)][ ]){_WORD}(?: {_WORD})*+")
"""Matches a line that is spoken as it is, if anything in it is."""
_LETTER_OR_DIGIT = lazy_pattern(r"[^\W_]")
_ENDS = ".!?:;,…。！？：；、"
_ABBREVIATIONS = (  # the most common ones first: a number that starts an item, a letter as in `e.g.`
    *(r"\s\d", r"\b[A-Za-z]", r"\s\d\d", r"\s\d\d\d", r"^\d", r"^\d\d", r"^\d\d\d"),
    *(r"\b(?:Mr|Ms|Dr|St|vs|No|Nr|ca)", r"\b(?:Mrs|Fig)", r"\bProf", r"\bapprox"),
)
_NO_ABBREVIATION = "".join(rf"(?<!{one}\.)" for one in _ABBREVIATIONS)
_NO_ABBREVIATION_BEFORE = "".join(rf"(?<!{one}\.\n)" for one in _ABBREVIATIONS)
_SENTENCE_END = lazy_pattern(
    rf"\.(?=\s)(?<![.!?…]\.){_NO_ABBREVIATION}"
    r"|[.!?…](?<![.!?…]{2})(?!(?<=\.)\s)[.!?…]*+[\"'”’)\]]*+(?=\s)|[。！？]+[」』”]*"
    rf"|\n(?:\n+|{_NO_ABBREVIATION_BEFORE})"
)
_MIN_SENTENCE_CHARACTERS = 20
_MAX_PASSES = 4
_MAX_LINE_CHARACTERS = 2_000
"""Applies to a line that waits for the end of a link or of inline code."""
_MAX_END_CHARACTERS = 64
"""Applies to the marks that end a sentence."""


def spoken(markdown: str) -> str:
    """Returns the text to read aloud: one line per paragraph, heading, list item or row, without markup or URLs."""
    text = markdown.replace("\r\n", "\n").replace("\r", "\n")
    for _ in range(_MAX_PASSES):  # removing one mark can complete another
        before, text = text, _plain(text)
        if text == before:
            break
    return text


def sentences(text: str, max_characters: int = 400) -> Iterator[str]:
    """Yields the sentences of a spoken text, each at most `max_characters` long."""
    start, short = 0, ""
    for end in [*_sentence_ends(text), len(text)]:
        part = short + text[start:end]
        start, sentence = end, " ".join(part.split())
        if len(sentence) < _MIN_SENTENCE_CHARACTERS and end < len(text):
            # spoken together with the next one
            short = f"{sentence} " if part[-1:].isspace() else sentence
            continue
        short = ""
        yield from _pieces(sentence, max_characters)


class SpokenStream:
    """Finds the sentences to read aloud in Markdown that is still being written."""

    def __init__(self) -> None:
        self._line = ""
        self._ready = ""
        self._is_code = False
        self._examined = 0  # characters of the line in which no whole sentence ends

    def feed(self, text: str) -> list[str]:
        """Takes the next piece. Returns the sentences that are complete now."""
        self._line += text
        while "\n" in self._line:
            line, _, self._line = self._line.partition("\n")
            self._end_line(line)
        if not self._is_code and not _FENCE_MARK.match(self._line):
            self._take_sentences()
        return self._spoken()

    def finish(self) -> list[str]:
        """Returns what is left at the end of the text."""
        self._end_line(self._line)
        rest, self._ready = spoken(self._ready), ""
        self._line, self._is_code = "", False
        return list(sentences(rest))

    def _end_line(self, line: str) -> None:
        self._examined = 0
        if _FENCE_MARK.match(line):
            self._is_code = not self._is_code
        elif not self._is_code:
            self._ready += f"{line}\n"

    def _take_sentences(self) -> None:
        """Takes whole sentences of the last line, unless one ends inside a link or inline code."""
        is_long = len(self._line) > _MAX_LINE_CHARACTERS
        found = _sentence_ends(self._line, 0 if is_long else self._examined)
        ends = [end for end in found if end < len(self._line)]
        whole = (
            end for end in reversed(ends) if is_long or _is_balanced(self._line[:end])
        )
        cut = (self._line.rfind(" ") + 1 or len(self._line)) if is_long else 0
        self._examined = max(0, len(self._line) - _MAX_END_CHARACTERS)
        if end := next(whole, cut):
            if not is_long or any(map(str.isalnum, self._line[:end])):
                self._ready += self._line[:end] + " "
            self._line = self._line[end:].lstrip(" ")
            self._examined = 0

    def _spoken(self) -> list[str]:
        """The sentences so far; a short one waits for the next."""
        found = list(sentences(spoken(self._ready)))
        if not found:
            return []
        is_short = len(found[-1]) < _MIN_SENTENCE_CHARACTERS
        self._ready = f"{found.pop()} " if is_short else ""
        return found


def _is_balanced(text: str) -> bool:
    is_outside_code = text.count("`") % 2 == 0
    return is_outside_code and all(
        text.count(one) == text.count(other) for one, other in ("[]", "()")
    )


def _plain(text: str) -> str:
    if "```" in text or "~~~" in text:
        text = _FENCE.sub("\n", text)
    if "<!--" in text:
        text = _COMMENT.sub("", text)
    if "[" in text:
        text = _REFERENCE.sub("", _IMAGE_OR_LINK.sub(r"\1", text))
    if "<" in text:
        text = _TAG.sub(" ", text)
    if "//" in text:
        text = _ADDRESS.sub(r"\1", text)
    return "\n".join(filter(None, map(_line, filter(None, text.split("\n")))))


def _line(line: str) -> str:
    """Returns one line without markup. A heading, list item or table row ends like a sentence."""
    if not _LETTER_OR_DIGIT.search(line):
        return ""
    if _PLAIN_LINE.fullmatch(line):
        return line
    lead = _LEAD.match(line)
    rest = line[lead.end() :] if lead else line
    is_item = bool(lead and lead[0].strip())
    if not _PLAIN_LINE.fullmatch(rest):
        cells = [cell.strip() for cell in rest.strip().strip("|").split("|")]
        if len(cells) > 1:
            rest, is_item = ", ".join(filter(None, cells)), True
        rest = _unmarked(rest).strip()
    if not _LETTER_OR_DIGIT.search(rest):
        return ""
    return f"{rest}." if is_item and rest[-1] not in _ENDS else rest


def _unmarked(text: str) -> str:
    """Returns text without marks, unspoken characters and wide spaces; looking whether there are any costs far less."""
    if any(mark in text for mark in "*~`#|_"):
        text = _MARKS.sub("", text)
    if not (text.isascii() and text.isprintable()):
        text = _UNSPOKEN.sub("", text)
    if "  " in text or "\t" in text or "\xa0" in text:
        text = _SPACES.sub(" ", text)
    return text


def _sentence_ends(text: str, start: int = 0) -> Iterator[int]:
    for found in _SENTENCE_END.finditer(text, start):
        yield found.end()


def _pieces(sentence: str, max_characters: int) -> Iterator[str]:
    """Yields the pieces of a sentence that is too long for one call, cut at a comma or a space if possible."""
    while len(sentence) > max_characters:
        head = sentence[:max_characters]
        cut = max(head.rfind(", "), head.rfind("; ")) + 1 or head.rfind(" ")
        cut = cut if cut > 0 else max_characters
        yield sentence[:cut].strip()
        sentence = sentence[cut:].strip()
    if sentence:
        yield sentence

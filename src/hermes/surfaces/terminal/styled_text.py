"""Styled terminal rows, and wrapping of styled text."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from hermes.surfaces.terminal.style import Style
from hermes.surfaces.terminal.text import cells, width

Run: TypeAlias = tuple[str, str]
"""Text and its style: the parameters of an SGR sequence, empty for plain text."""
Row: TypeAlias = tuple[Run, ...]

BOLD, DIM, ITALIC, UNDERLINE, REVERSE, STRIKE = "1", "2", "3", "4", "7", "9"
RED, GREEN, YELLOW, MAGENTA, CYAN = "31", "32", "33", "35", "36"


def plain(runs: Iterable[Run]) -> str:
    """Returns the text without styles."""
    return "".join(text for text, _ in runs)


def painted(row: Iterable[Run], style: Style) -> str:
    """Returns a row with its escape codes, or only its text without colour."""
    if not style.enabled:
        return plain(row)
    sgr = style.theme.sgr
    return "".join(
        f"\x1b[{codes}m{text}\x1b[0m" if look and (codes := sgr(look)) else text
        for text, look in row
    )


def flow(runs: Sequence[Run], columns: int) -> Iterator[Row]:
    """Wraps runs into rows of at most `columns` cells, between words; longer words are split anywhere."""
    room = max(columns, 1)
    breaks = _simple_breaks(plain(runs), room)
    if breaks is None:
        yield from _flow_words(runs, room)
    else:
        yield from _sliced(runs, breaks)


def _simple_breaks(text: str, room: int) -> list[tuple[int, int]] | None:
    """Returns where each row starts and ends in a text, or None unless all of it is words of ASCII that fit a row.

    A row in which nothing else occurs is found in one step, and a reply that streams in is mostly such rows.
    """
    if not text.isascii() or "  " in text or text.startswith(" "):
        return None
    end = len(text) - text.endswith(" ")
    breaks: list[tuple[int, int]] = []
    start = 0
    while end - start > room:
        space = text.rfind(" ", start, start + room + 1)
        if space < 0:
            return None
        breaks.append((start, space))
        start = space + 1
    return [*breaks, (start, end)]


def _sliced(runs: Sequence[Run], breaks: Sequence[tuple[int, int]]) -> Iterator[Row]:
    """Yields the runs between each two offsets."""
    rest = iter([run for run in runs if run[0]])
    text, look = next(rest, ("", ""))
    offset = 0  # of `text`
    for start, end in breaks:
        row: list[Run] = []
        while offset < end:
            part = text[max(start - offset, 0) : end - offset]
            row += [(part, look)] if part else []
            if offset + len(text) > end:
                break
            offset += len(text)
            text, look = next(rest, ("", ""))
            if not text:
                break
        yield _joined(row)


def _flow_words(runs: Sequence[Run], room: int) -> Iterator[Row]:
    """Wraps runs word by word."""
    row: list[Run] = []
    used = 0
    pending = ""  # the space between two words, with its style
    look_of_pending = ""
    for word in _words(runs):
        if word[0][0] == " ":
            pending, look_of_pending = (" ", word[0][1]) if row else ("", "")
            continue
        size = _width(word)
        if row and used + len(pending) + size > room:
            yield _joined(row)
            row, used, pending = list[Run](), 0, ""
        if pending:
            row.append((pending, look_of_pending))
            used, pending = used + 1, ""
        if size <= room:
            row += word
            used += size
            continue
        for part in _split(word, room):
            size = _width(part)
            if used and used + size > room:
                yield _joined(row)
                row, used = list[Run](), 0
            row += part
            used += size
    yield _joined(row)


def _words(runs: Sequence[Run]) -> Iterator[list[Run]]:
    """Splits runs into words and the spaces between them. Wide characters stand alone."""
    word: list[Run] = []
    for text, look in runs:
        for piece in re.findall(r" +|[^ ]+", text):
            if piece[0] == " ":
                if word:
                    yield word
                word = []
                yield [(" ", look)]
            elif piece.isascii():
                word.append((piece, look))
            else:
                for char in piece:
                    if cells(char) == 2 and word:
                        yield word
                        word = []
                    word.append((char, look))
                    if cells(char) == 2:
                        yield word
                        word = []
    if word:
        yield word


def _width(word: Sequence[Run]) -> int:
    if len(word) == 1:
        return width(word[0][0])
    return sum([width(text) for text, _ in word])


def _split(word: list[Run], room: int) -> Iterator[list[Run]]:
    """Splits a word that is longer than a row into parts that fit one."""
    part: list[Run] = []
    used = 0
    for text, look in word:
        for char in text:
            if used + cells(char) > room and part:
                yield part
                part, used = list[Run](), 0
            part.append((char, look))
            used += cells(char)
    if part:
        yield part


def _joined(row: Sequence[Run]) -> Row:
    """Joins neighbouring runs of the same style."""
    found: list[Run] = []
    for text, look in row:
        if found and found[-1][1] == look:
            found[-1] = (found[-1][0] + text, look)
        else:
            found.append((text, look))
    return tuple(found)

"""Emphasis, code and links inside a line of Markdown."""

import re
from bisect import bisect_left
from collections.abc import Iterator

from hermes.surfaces.terminal.styled_text import (
    BOLD,
    CYAN,
    DIM,
    ITALIC,
    STRIKE,
    UNDERLINE,
    Run,
    flow,
)

_MAX_OPEN_CHARS = 2_100  # after which a mark stays as it is written
# Emphasis must close within 2,000 characters, which bounds the time to parse.
_CODE = re.compile(
    r"(?<!`)(?P<ticks>`++)(?P<code>(?:(?!(?P=ticks)).){1,2000}?)(?P=ticks)(?!`)"
)
_LINK = re.compile(
    r"!?\[(?P<label>[^\[\]\n]{0,2000})\]\((?P<url>[^()\s]*(?:\([^()\s]*\)[^()\s]*)*)(?:\s+\"[^\"]*\")?\)"
)
_MATCH_AT = {
    "`": _CODE.match,
    "!": _LINK.match,
    "[": _LINK.match,
    "<": re.compile(r"<(?P<auto>https?://[^<>\s]{1,2000})>").match,
    "*": re.compile(
        r"\*\*(?P<bold>(?=[^\s*]).{1,2000}?(?<=\S))\*\*"
        r"|(?<![\w*])\*(?P<italic>(?=[^\s*]).{0,2000}?[^\s*])\*(?!\*)"
    ).match,
    "_": re.compile(
        r"(?<!\w)__(?P<bold_>(?=[^\s_]).{1,2000}?(?<=\S))__(?!\w)"
        r"|(?<!\w)_(?P<italic_>(?=[^\s_]).{0,2000}?[^\s_])_(?!\w)"
    ).match,
    "~": re.compile(r"~~(?P<strike>(?=[^\s~]).{1,2000}?(?<=\S))~~").match,
}
"""What can begin with each mark. The last group that matches names what it is."""
_START = re.compile(
    r"\\(?P<escaped>[!-/:-@\[-`{-~])|(?<!`)`|!(?=\[)|\[|<(?=h)"
    r"|(?P<bold>\*\*(?=[^\s*]))|(?<!\w)(?P<bold_>__(?=[^\s_]))|(?<!~)(?P<strike>~~(?=[^\s~]))"
    r"|(?<![\w*])(?P<italic>\*(?=[^\s*]))|(?<!\w)(?P<italic_>_(?=[^\s_]))"
)
"""Matches where something can begin."""
_CLOSERS = {  # each takes one character, which `re` finds quickly
    "bold": re.compile(r"\*(?<=\S\*)(?=\*)"),
    "bold_": re.compile(r"_(?<=\S_)(?=_(?!\w))"),
    "strike": re.compile(r"~(?<=\S~)(?=~)"),
    "italic": re.compile(r"\*(?<=[^\s*]\*)(?!\*)"),
    "italic_": re.compile(r"_(?<=[^\s_]_)(?!\w)"),
}
_OPENER = re.compile(r"[*`~<\\]|!?\[|!$|(?<!\w)_")
_EMPHASIS = {
    "bold": BOLD,
    "bold_": BOLD,
    "italic": ITALIC,
    "italic_": ITALIC,
    "strike": STRIKE,
}


def parse(text: str, look: str = "", *, marked: bool = False) -> list[Run]:
    """Parses one line into styled runs. `marked` keeps backquotes, for a screen without colours."""
    runs: list[Run] = []
    at = 0
    for found in _matches(text):
        if (start := found.start()) > at:
            runs.append((text[at:start], look))
        runs += _run(found, look, marked=marked)
        at = found.end()
    if at < len(text):
        runs.append((text[at:], look))
    return runs


def _matches(text: str) -> "Iterator[re.Match[str]]":
    """Yields each escape, emphasis, code and link. Emphasis that nothing closes is not tried, so that a text of openers
    is read once, not once for each.
    """
    closers: dict[str, list[int]] = {}
    after = 0
    while start := _START.search(text, after):
        kind, after = start.lastgroup, start.end()
        if kind == "escaped":
            yield start
        elif kind is None or _may_close(text, after, kind, closers):
            at = start.start()
            if found := _MATCH_AT[text[at]](text, at):
                yield found
                after = found.end()


def _may_close(text: str, end: int, kind: str, closers: dict[str, list[int]]) -> bool:
    """Returns whether something may close a mark that ends there."""
    ends = closers.get(kind)
    if ends is None:
        found = _CLOSERS[kind].finditer(text)
        ends = closers[kind] = [one.start() for one in found]
    place = bisect_left(ends, end + 1)
    return place < len(ends) and ends[place] - end <= _MAX_OPEN_CHARS


def stable_prefix(text: str) -> str:
    """Returns the start of `text` that looks the same whatever follows."""
    at = 0
    for found in _matches(text):
        if found.end() == len(text):  # one more character may change it
            break
        if (opener := _open_mark(text, at, found.start())) is not None:
            return text[:opener]
        at = found.end()
    return text[: _open_mark(text, at, len(text))]


def _open_mark(text: str, start: int, end: int) -> int | None:
    """Returns where the first mark is that what follows the text can still close."""
    for opener in _OPENER.finditer(text, start, end):
        is_link = opener[0] in ("[", "![")  # whose address may be of any length
        if is_link or len(text) - opener.start() <= _MAX_OPEN_CHARS:
            return opener.start()
    return None


def row_offsets(text: str, room: int, *, marked: bool = False) -> list[int | None]:
    """Returns where each row of a wrapped text starts in it.

    An offset is None where the text from there on would parse differently, because a mark is open
    or the character before matters.
    """
    runs: list[Run] = []
    at = 0
    for found in _matches(text):
        runs += [(text[at : found.start()], f"@{at}")] if found.start() > at else []
        runs += [(part, "") for part, _ in _run(found, "", marked=marked)]
        at = found.end()
    runs += [(text[at:], f"@{at}")] if at < len(text) else []
    offsets: list[int | None] = []
    passed: dict[str, int] = {}  # non-blank characters of the run in earlier rows
    for row in flow(runs, room):
        offset = (
            _nth(text, int(row[0][1][1:]), passed.get(row[0][1], 0))
            if row and row[0][1]
            else None
        )
        offsets.append(
            offset
            if offset is not None and text[offset : offset + 1] not in ("_", "*")
            else None
        )
        for part, name in row:
            passed[name] = passed.get(name, 0) + len(part) - part.count(" ")
    return offsets


def _nth(text: str, start: int, number: int) -> int:
    """Returns the position of the first non-blank character after `count` others, from `start` on."""
    for at in range(start, len(text)):
        if text[at] != " ":
            if not number:
                return at
            number -= 1
    return len(text)


def _run(found: re.Match[str], look: str, *, marked: bool) -> list[Run]:
    kind = found.lastgroup or ""
    text = found[kind]
    if emphasis := _EMPHASIS.get(kind):
        look = _with(look, emphasis)
        if len(text) == 1:  # too short for a mark in it
            return [(text, look)]
        return parse(text, look, marked=marked)
    if kind == "escaped":
        return [(text, look)]
    if kind == "code":
        code = text.strip() or text
        return [(f"`{code}`" if marked else code, _with(look, CYAN))]
    if kind == "auto":
        return [(text, _with(look, UNDERLINE))]
    label = found["label"] or text
    tail = [(f" ({text})", _with(look, DIM))] if text and text != label else []
    return [*parse(label, _with(look, UNDERLINE), marked=marked), *tail]


def _with(look: str, code: str) -> str:
    return f"{look};{code}" if look else code

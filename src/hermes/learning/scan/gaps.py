"""Splits a pattern at its wide gaps, so that a text is searched for the parts before and after each.

`curl[^\\n]{0,400}\\|\\s*sh` looks at 400 characters after every `curl`. Finding every `| sh` first, and then the `curl`
before it on the line, looks at each character once.
"""

import re
from typing import NamedTuple

_MIN_GAP_CHARS = 10  # shorter gaps cost little
_SLACK_CHARS = 200  # characters allowed before a piece whose start was dropped
_GAP = re.compile(
    r"\[\^((?:\\.|[^\]\\])+)\]\{\d+,(\d+)\}[?+]?",
)
# Parts that a search can't start with: whitespace, and the name before an `@`.
_VAGUE_START = re.compile(r"(?:\\[sW](?:\{\d+,\d+\}[?+]?)?|\\b(?=\\[sW]))+")
_NAME_BEFORE_AT = r"\b[\w.+-]{1,200}@"
_REFERENCE = re.compile(r"(?:\\s\{\d+,\d+\}[?+]?)?\\[1-9]")
_SPELLED = {"\\n": "\n", "\\s": " \t\n", "\\\\": "\\"}


class Piece(NamedTuple):
    """A part of a pattern without wide gaps, and the gap before the next one."""

    source: str
    slack: int = 0
    gap: int = 0
    forbidden: str = ""
    """The characters that the gap can't contain."""


def alternatives(source: str) -> list[str]:
    """Splits a pattern at each `|` outside of groups."""
    parts, depth, at, begin = list[str](), 0, 0, 0
    while at < len(source):
        character = source[at]
        if character == "[":
            at = _end_of_class(source, at)
            continue
        if character == "\\":
            at += 1
        elif character in "()":
            depth += 1 if character == "(" else -1
        elif character == "|" and depth == 0:
            parts.append(source[begin:at])
            begin = at + 1
        at += 1
    return [*parts, source[begin:]]


def pieces(source: str) -> list[Piece]:
    """Splits one alternative of a pattern at its wide gaps."""
    source = _without_atomic(source)
    made, depth, at, begin = list[Piece](), 0, 0, 0
    while at < len(source):
        character = source[at]
        if character == "[":
            found = _GAP.match(source, at) if depth == 0 else None
            if found and int(found[2]) >= _MIN_GAP_CHARS:
                made.append(_piece(source[begin:at], int(found[2]), found[1]))
                at = begin = found.end()
            else:
                at = _end_of_class(source, at)
            continue
        if character == "\\":
            at += 1
        elif character in "()":
            depth += 1 if character == "(" else -1
        at += 1
    return [*made, _piece(source[begin:], 0, "")]


def _piece(source: str, gap: int, forbidden: str) -> Piece:
    slack = 0
    if vague := _VAGUE_START.match(source):
        source = source[vague.end() :]
        slack = _SLACK_CHARS
    if _NAME_BEFORE_AT in source:
        source = source.replace(_NAME_BEFORE_AT, "@")
        slack = _SLACK_CHARS
    if reference := _REFERENCE.search(source):
        source = source[: reference.start()]
    return Piece(source, slack, gap, _spelled(forbidden))


def _spelled(forbidden: str) -> str:
    """Returns the characters of a class, as far as they are known."""
    if re.search(r"\\[^\Wns]|.-.", forbidden):
        return ""
    return re.sub(r"\\.", lambda one: _SPELLED.get(one[0], one[0][1]), forbidden)


def _without_atomic(source: str) -> str:
    """Replaces atomic groups with plain text: their content must match too."""
    while (start := source.find("(?>")) >= 0:
        depth, at = 1, start + 3
        while depth:
            if source[at] == "[":
                at = _end_of_class(source, at)
                continue
            if source[at] == "\\":
                at += 1
            elif source[at] in "()":
                depth += 1 if source[at] == "(" else -1
            at += 1
        source = source[:start] + source[start + 3 : at - 1] + source[at:]
    return source


def _end_of_class(source: str, at: int) -> int:
    at += 2 if source.startswith("[^", at) else 1
    at += source[at] == "]"
    while source[at] != "]":
        at += 2 if source[at] == "\\" else 1
    return at + 1

"""Parses HTML into a flat list of tags and texts, in one pass.

The standard library's parser takes quadratic time for some pages; pages are written by strangers, so this one never
does. It behaves like browsers where that matters: comments, scripts, attributes, text that only looks like a tag.
"""

import html
import re
from collections.abc import Iterator, Mapping
from typing import TypeAlias

import msgspec

_TAG_NAME = re.compile(r"[a-zA-Z][^\s/>]{0,60}")
_ATTRIBUTE = re.compile(
    r"[\s/]*([^\s/>=\"'<]{1,100})(?:\s{0,20}=\s{0,20}(?:\"([^\"]*)\"|'([^']*)'|([^\s>]*)))?"
)
_MAX_ATTRIBUTES = 100
_MAX_TAG_CHARACTERS = 100_000
RAW = frozenset(
    (
        "script",
        "style",
        "textarea",
        "title",
        "xmp",
        "iframe",
        "noembed",
        "noframes",
        "plaintext",
    )
)
"""Elements whose content is text up to their own end tag, whatever it looks like."""
VOID = frozenset(
    (
        "area",
        "base",
        "br",
        "col",
        "embed",
        "hr",
        "img",
        "input",
        "link",
        "meta",
        "param",
        "source",
        "track",
        "wbr",
    )
)


class Tag(msgspec.Struct, frozen=True, gc=False):
    """A start or end tag."""

    name: str
    closing: bool = False
    attributes: Mapping[str, str] = {}


Token: TypeAlias = Tag | str
"""A tag, or text with its character references resolved."""


def tokens(page: str) -> Iterator[Token]:
    """All of a page except comments and declarations."""
    position, length = 0, len(page)
    while position < length:
        start = page.find("<", position)
        if start < 0:
            yield html.unescape(page[position:])
            return
        if start > position:
            yield html.unescape(page[position:start])
        following = page[start + 1 : start + 2]
        if following in ("!", "?"):
            position = _after_comment(page, start)
            continue
        name = _TAG_NAME.match(page, start + (2 if following == "/" else 1))
        if name is None:
            position = start + 1
            yield "<"
            continue
        tag, position = _tag(page, name, closing=following == "/")
        yield tag
        if tag.name in RAW and not tag.closing:
            text, position = _raw(page, position, tag.name)
            yield html.unescape(text) if tag.name in ("title", "textarea") else text
            yield Tag(tag.name, closing=True)


def _after_comment(page: str, start: int) -> int:
    """The end of a comment or declaration; an unclosed one includes the rest of the page, as in a browser."""
    mark = ">"
    if page.startswith("<!--", start):
        mark = "-->"
    elif page.startswith("<![CDATA[", start):
        mark = "]]>"
    end = page.find(mark, start + 2)
    return len(page) if end < 0 else end + len(mark)


def _tag(page: str, name: re.Match[str], *, closing: bool) -> tuple[Tag, int]:
    attributes: dict[str, str] = {}
    position = name.end()
    if page[position : position + 1] == ">":  # the usual case
        return Tag(name[0].lower(), closing, attributes), position + 1
    for _ in range(_MAX_ATTRIBUTES):
        found = (
            None
            if closing
            else _ATTRIBUTE.match(page, position, position + _MAX_TAG_CHARACTERS)
        )
        if found is None:
            break
        value = next((group for group in found.group(2, 3, 4) if group is not None), "")
        attributes.setdefault(found[1].lower(), html.unescape(value))
        position = found.end()
    end = page.find(">", position)
    return Tag(name[0].lower(), closing, attributes), len(page) if end < 0 else end + 1


def _raw(page: str, start: int, name: str) -> tuple[str, int]:
    """The text of an element such as a script, and where it ends."""
    found = re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE).search(page, start)
    end = found.start() if found else len(page)
    return page[start:end], end if found is None else _end_of(page, end)


def _end_of(page: str, start: int) -> int:
    end = page.find(">", start)
    return len(page) if end < 0 else end + 1

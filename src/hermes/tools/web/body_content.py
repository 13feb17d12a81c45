"""The type of a response body, and the text that a model can read of it."""

from typing import Literal, TypeAlias

import msgspec

from hermes.tools.escapes import one_line, visible
from hermes.tools.web.charset import decode
from hermes.tools.web.feeds import read_feed
from hermes.tools.web.markdown import to_markdown
from hermes.tools.web.readable_page import read_page
from hermes.tools.web.web_client import WebResponse

Kind: TypeAlias = Literal["html", "json", "xml", "text", "image", "binary"]

MAX_PAGE_CHARACTERS = 2_000_000
"""How many bytes of HTML are read; what follows is rarely relevant."""
_MAGIC = (
    (b"%PDF-", "application/pdf"),
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"PK\x03\x04", "application/zip"),
    (b"\x1f\x8b", "application/gzip"),
)
PICTURES = {
    "image/png": ".png",
    "image/jpeg": ".jpg",
    "image/gif": ".gif",
    "image/webp": ".webp",
}
"""The pictures that models accept, and the suffixes of such files."""
_TEXTS = (
    "javascript",
    "yaml",
    "toml",
    "x-sh",
    "sql",
    "graphql",
    "x-www-form-urlencoded",
    "ecmascript",
    "markdown",
)
_VAGUE = (
    "",
    "application/octet-stream",
    "binary/octet-stream",
    "unknown/unknown",
    "text/plain",
)


class Media(msgspec.Struct, frozen=True):
    """The type of a body, and how to treat it."""

    type: str
    kind: Kind


class BodyText(msgspec.Struct, frozen=True):
    """The text of a body: its title, if it has one, the text, and a note for the reader."""

    text: str
    title: str = ""
    notes: tuple[str, ...] = ()


def media_of(answer: WebResponse) -> Media:
    """The type of a body: what the server says, unless it says nothing or the first bytes clearly contradict it."""
    declared = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
    start = answer.body[:512]
    found = next((name for magic, name in _MAGIC if start.startswith(magic)), "")
    if start.startswith(b"RIFF") and start[8:12] == b"WEBP":
        found = "image/webp"
    if found:
        return Media(found, "image" if found in PICTURES else "binary")
    if declared in _VAGUE:
        return _sniffed(declared, answer.body)
    return Media(declared, _kind(declared))


def read_body(answer: WebResponse, media: Media) -> BodyText:
    """The text of a textual body. Blocks: call it in a thread."""
    notes = (
        ("The page is longer than what is read of it; its end is missing.",)
        if answer.cut
        else ()
    )
    body = answer.body
    if media.kind == "html" and len(body) > MAX_PAGE_CHARACTERS:
        body, notes = (
            body[:MAX_PAGE_CHARACTERS],
            (f"Only the first {MAX_PAGE_CHARACTERS:,} bytes of the page were read.",),
        )
    text = decode(body, answer.headers.get("content-type", ""))
    if media.kind == "html":
        page = read_page(text, str(answer.place))
        words = visible(to_markdown(page))
        if not words:
            notes = (
                *notes,
                "The page has no text of its own; it may be made by scripts, which are not run here.",
            )
        return BodyText(words, one_line(page.title), notes)
    if media.kind == "xml":
        feed = read_feed(text, str(answer.place))
        return BodyText(visible(feed if feed is not None else text), "", notes)
    if media.kind == "json":
        text = _spread(text)
    return BodyText(visible(text), "", notes)


def _kind(declared: str) -> Kind:
    major, _, minor = declared.partition("/")
    if declared in ("text/html", "application/xhtml+xml"):
        return "html"
    if minor.endswith("json") or minor in ("x-ndjson", "json-seq"):
        return "json"
    if minor.endswith("xml") and major != "image":
        return "xml"
    if (
        major == "text"
        or minor in _TEXTS
        or any(minor == f"x-{name}" for name in _TEXTS)
    ):
        return "text"
    return "image" if declared in PICTURES else "binary"


def _sniffed(declared: str, body: bytes) -> Media:
    start = body[:512].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if start.startswith((b"<!doctype html", b"<html", b"<head", b"<body")):
        return Media("text/html", "html")
    if start.startswith((b"<?xml", b"<rss", b"<feed")):
        return Media("application/xml", "xml")
    if b"\0" in body[:8192] and not body.startswith((b"\xff\xfe", b"\xfe\xff")):
        return Media(declared or "application/octet-stream", "binary")
    if start.startswith((b"{", b"[")):
        return Media(declared or "application/json", "json")
    return Media(declared or "text/plain", "text")


def _spread(text: str) -> str:
    """Spreads JSON over several lines, so that a part of it can be read; returns any other text unchanged."""
    if "\n" in text.strip():
        return text
    try:
        return msgspec.json.format(text, indent=1)
    except msgspec.DecodeError:
        return text

"""Documents that consist of web pages: HTML itself, and EPUB books chapter by chapter."""

import posixpath
import zipfile
from importlib.util import find_spec
from typing import IO
from urllib.parse import unquote
from xml.etree import ElementTree as ET

from hermes.tools.documents.document import Document, DocumentPart, short_title

_OPF = "{http://www.idpf.org/2007/opf}"
_DC = "{http://purl.org/dc/elements/1.1/}"
_CONTAINER = "{urn:oasis:names:tc:opendocument:xmlns:container}"
_PAGE_TYPES = ("application/xhtml+xml", "text/html")


def can_read_html() -> bool:
    """Whether the extra `markdown` is installed."""
    return find_spec("html_to_markdown") is not None


def read_html(file: IO[bytes]) -> Document:
    """The text of a web page as Markdown."""
    return Document("html", (DocumentPart("page", _markdown(file.read())),))


def read_epub(file: IO[bytes]) -> Document:
    """The chapters in the order of the book's spine. Raises ValueError if there is none."""
    with zipfile.ZipFile(file) as book:
        package_name = _package_name(book)
        package = _xml(book.read(package_name))
        folder = posixpath.dirname(package_name)
        pages = {
            item.get("id"): posixpath.normpath(
                posixpath.join(folder, unquote(item.get("href", "")))
            )
            for item in package.iter(f"{_OPF}item")
            if item.get("media-type") in _PAGE_TYPES
        }
        spine = [item.get("idref") for item in package.iter(f"{_OPF}itemref")]
        texts = [_markdown(book.read(pages[page])) for page in spine if page in pages]
        title = package.findtext(f".//{_DC}title") or ""
    chapters = [text for text in texts if text.strip()]
    parts = tuple(
        DocumentPart(f"chapter {n}", text, _heading(text))
        for n, text in enumerate(chapters, 1)
    )
    if not parts:
        raise ValueError("the book has no readable chapters")
    return Document("epub", parts, title.strip())


def _heading(text: str) -> str:
    """The heading at the beginning of a chapter; empty if it has none."""
    first = text.split("\n", 1)[0]
    return short_title(first.lstrip("# ")) if first.startswith("#") else ""


def _package_name(book: zipfile.ZipFile) -> str:
    container = _xml(book.read("META-INF/container.xml"))
    root = container.find(f".//{_CONTAINER}rootfile")
    if root is None:
        raise ValueError("the book has no package file")
    return root.get("full-path", "")


def _xml(data: bytes) -> ET.Element:
    """Parses XML that declares no entities, so that nothing can expand."""
    if b"<!ENTITY" in data:
        raise ValueError("the book declares XML entities")
    return ET.fromstring(data)  # noqa: S314 - no entities, and a process with limits


def _markdown(data: bytes) -> str:
    from html_to_markdown import convert

    found = convert(data.decode("utf-8", "replace"))
    return (found if isinstance(found, str) else found.content or "").strip()

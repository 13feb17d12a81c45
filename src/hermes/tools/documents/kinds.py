"""Recognises documents, by their first bytes or their names, and recordings, by their names."""

from pathlib import Path, PurePath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hermes.tools.documents.document import DocumentKind

START_BYTES = 1024
"""The number of bytes that are enough to recognise a file."""

_ZIP = b"PK\x03\x04"
_OLD_OFFICE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_IN_ZIP: "dict[str, DocumentKind]" = {
    ".docx": "docx",
    ".docm": "docx",
    ".dotx": "docx",
    ".xlsx": "xlsx",
    ".xlsm": "xlsx",
    ".pptx": "pptx",
    ".pptm": "pptx",
    ".ppsx": "pptx",
    ".epub": "epub",
}
_BY_NAME: "dict[str, DocumentKind]" = {".eml": "email", ".ipynb": "notebook"}
_PACKED = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ\x00")
_TAR_NAMES = (".tar", ".tgz", ".tbz2", ".txz", ".tar.gz", ".tar.bz2", ".tar.xz")
_OLD_NAMES = {
    ".doc": "Word 97-2003",
    ".xls": "Excel 97-2003",
    ".ppt": "PowerPoint 97-2003",
}
_WEB_PAGES = frozenset((".html", ".htm", ".xhtml"))
RECORDINGS = frozenset(
    (".wav", ".mp3", ".ogg", ".oga", ".opus", ".m4a", ".aac", ".flac", ".amr", ".weba")
)


def document_kind(name: str, start: bytes) -> "DocumentKind | None":
    """The kind of document, by the first kilobyte of the file and its name; None if it is not a document."""
    lower = name.lower()
    suffix = PurePath(lower).suffix
    if start[:START_BYTES].lstrip(b"\xef\xbb\xbf \r\n\t").startswith(b"%PDF-"):
        return "pdf"
    if start.startswith(_ZIP):
        return _IN_ZIP.get(suffix, "archive")
    if start.startswith(_PACKED) and lower.endswith(_TAR_NAMES):
        return "archive"
    if start[257:262] == b"ustar":
        return "archive"
    return _BY_NAME.get(suffix)


def old_office_format(name: str, start: bytes) -> str:
    """The name of an old binary Office format, which no small library reads; empty for any other file."""
    if not start.startswith(_OLD_OFFICE):
        return ""
    return _OLD_NAMES.get(PurePath(name.lower()).suffix, "")


def is_locked_office(name: str, start: bytes) -> bool:
    """Whether this is a current Office file with a password, which is wrapped in the old format."""
    suffix = PurePath(name.lower()).suffix
    return start.startswith(_OLD_OFFICE) and suffix in _IN_ZIP


def is_document(path: Path) -> bool:
    """Whether a file is a document, or an Office file for which the reader can say why it is unreadable. Raises
    OSError."""
    with path.open("rb") as file:
        start = file.read(START_BYTES)
    is_known = document_kind(path.name, start) is not None
    is_old = bool(old_office_format(path.name, start))
    return is_known or is_old or is_locked_office(path.name, start)


def is_web_page(name: str) -> bool:
    """Whether a file is a web page, by its name."""
    return PurePath(name.lower()).suffix in _WEB_PAGES


def is_in_repository(path: Path) -> bool:
    """Whether a file is in a git repository. A web page there is probably the source of a project, not a document."""
    return any((folder / ".git").exists() for folder in path.parents)


def is_recording(name: str) -> bool:
    """Whether a file is a recording, by its name."""
    return name.lower().endswith(tuple(RECORDINGS))

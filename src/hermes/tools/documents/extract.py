"""The program that takes one document apart: `extract KIND`, the file on its input, JSON on its output.

It runs in the sandbox and limits itself, because a document may be made to break its reader.
"""

import resource
import sys
import zipfile
from collections.abc import Callable
from typing import IO, cast

import msgspec

from hermes.children.one_result import write_one_result
from hermes.installation import install_hint
from hermes.tools.documents.document import (
    MAX_TEXT_CHARACTERS,
    Document,
    DocumentKind,
    DocumentPart,
)

MAX_CPU_S = 120
_MAX_MEMORY_BYTES = 4 * 1024**3  # addresses, of which OCR reserves many
_MAX_UNPACKED_BYTES = 500 * 1024**2
_MAX_ENTRIES = 50_000
_ZIPPED = ("docx", "xlsx", "pptx", "epub")


class _TooLarge(Exception):
    """A document that is far larger than any that is read."""


class ExtractionProblem(msgspec.Struct, frozen=True, tag="problem"):
    """Why a document could not be read."""

    message: str
    hint: str = ""


class ExtractedDocument(msgspec.Struct, frozen=True, tag="document"):
    """A document that was read."""

    document: Document


def extract(
    kind: DocumentKind, file: IO[bytes]
) -> ExtractedDocument | ExtractionProblem:
    """Reads a document. A broken one is a problem, never an exception."""
    try:
        if kind in _ZIPPED:
            _check_size(file)
        document = _reader(kind)(file)
    except ImportError as error:
        return ExtractionProblem(
            f"reading it needs the package {error.name}", install_hint("documents")
        )
    except _TooLarge as error:
        return ExtractionProblem(str(error))
    except MemoryError:
        return ExtractionProblem("it needs too much memory")
    except Exception as error:  # noqa: BLE001 - libraries raise anything for a broken file
        return ExtractionProblem(_reason(error))
    return ExtractedDocument(_shortened(document))


def _reader(kind: DocumentKind) -> Callable[[IO[bytes]], Document]:
    from hermes.tools.documents import ocr, office, pages, pdf, records

    readers: dict[DocumentKind, Callable[[IO[bytes]], Document]] = {
        "pdf": pdf.read_pdf,
        "docx": office.read_docx,
        "xlsx": office.read_xlsx,
        "pptx": office.read_pptx,
        "epub": pages.read_epub,
        "html": pages.read_html,
        "email": records.read_email,
        "notebook": records.read_notebook,
        "archive": records.read_archive,
        "picture": ocr.read_picture,
    }
    return readers[kind]


def _check_size(file: IO[bytes]) -> None:
    """Raises _TooLarge for an archive that would unpack to far more than a document has."""
    with zipfile.ZipFile(file) as archive:
        entries = archive.infolist()
    file.seek(0)
    size = sum(entry.file_size for entry in entries)
    if size > _MAX_UNPACKED_BYTES or len(entries) > _MAX_ENTRIES:
        raise _TooLarge(
            f"it is too large: it unpacks to {size:,} bytes in {len(entries):,} files, and at most"
            f" {_MAX_UNPACKED_BYTES:,} bytes in {_MAX_ENTRIES:,} files are read"
        )


def _reason(error: Exception) -> str:
    if "password" in str(error).lower():
        return "it is protected by a password"
    text = " ".join(str(error).split())[:300].rstrip(".")
    return f"it is damaged, or not what its name says ({text or type(error).__name__})"


def _shortened(document: Document) -> Document:
    """Cuts the text of a document that is longer than any model reads, and says so."""
    room = MAX_TEXT_CHARACTERS
    parts: list[DocumentPart] = []
    for part in document.parts:
        if len(part.text) > room:
            note = f"only the first {MAX_TEXT_CHARACTERS:,} characters are shown"
            cut = DocumentPart(part.name, part.text[:room])
            return msgspec.structs.replace(
                document, parts=(*parts, cut), notes=(*document.notes, note)
            )
        parts.append(part)
        room -= len(part.text)
    return document


def main() -> None:
    """Reads the file on the input, and writes the result to the output."""
    kind = cast("DocumentKind", sys.argv[1])
    write_one_result(
        lambda file: msgspec.json.encode(extract(kind, file)),
        {
            resource.RLIMIT_AS: _MAX_MEMORY_BYTES,
            resource.RLIMIT_CPU: MAX_CPU_S,
            resource.RLIMIT_FSIZE: 0,
        },
    )


if __name__ == "__main__":
    main()

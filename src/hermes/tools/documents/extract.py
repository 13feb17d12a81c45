"""The program that parses one document: `extract TASK`, with the file on its input and JSON on its output.

It runs in the sandbox and limits itself, because a document may be crafted to exploit its reader.
"""

import resource
import sys
import zipfile
from collections.abc import Callable
from functools import partial
from typing import IO

import msgspec

from hermes.children.one_result import write_one_result
from hermes.errors import MediaErrorKind
from hermes.text.install_words import install_hint
from hermes.tools.documents.document import (
    MAX_TEXT_CHARACTERS,
    WHOLE,
    Document,
    DocumentKind,
    DocumentPart,
    PageRange,
)
from hermes.tools.documents.limits import ReaderLimits, TimeBudget

_ZIPPED = ("docx", "xlsx", "pptx", "epub")
_WITH_OCR = ("pdf", "picture")
_EXTRAS = {"html_to_markdown": "markdown", "rapidocr": "ocr", "PIL": "images"}
"""The extra that installs a package, if it is not `documents`."""
_DEFAULT_LIMITS = ReaderLimits()


class _TooLarge(Exception):
    """A document that is far too large to read."""


class ExtractionTask(msgspec.Struct, frozen=True, kw_only=True):
    """What to read, and within which limits."""

    kind: DocumentKind
    pages: PageRange = WHOLE
    """Only these pages of a PDF are read. Other documents are always read whole."""
    limits: ReaderLimits = _DEFAULT_LIMITS


class ExtractionProblem(msgspec.Struct, frozen=True, tag="problem"):
    """Why a document could not be read."""

    message: str
    hint: str = ""
    kind: MediaErrorKind = MediaErrorKind.NOT_SUPPORTED


class ExtractedDocument(msgspec.Struct, frozen=True, tag="document"):
    """A document that was read."""

    document: Document


def extract(
    task: ExtractionTask, file: IO[bytes]
) -> ExtractedDocument | ExtractionProblem:
    """Reads a document. A broken one is reported as a problem, never raised."""
    try:
        if task.kind in _ZIPPED:
            _check_size(file, task.limits)
        document = _reader(task)(file)
    except ImportError as error:
        name = (error.name or "").partition(".")[0]
        return ExtractionProblem(
            f"reading it needs the package {name}",
            str(install_hint(_EXTRAS.get(name, "documents"))),
            MediaErrorKind.NOT_CONFIGURED,
        )
    except _TooLarge as error:
        return ExtractionProblem(str(error), kind=MediaErrorKind.TOO_LARGE)
    except MemoryError:
        return ExtractionProblem(
            "it needs too much memory", kind=MediaErrorKind.TOO_LARGE
        )
    except Exception as error:  # noqa: BLE001 - libraries raise anything for a broken file
        return _broken(error)
    return ExtractedDocument(_shortened(document))


def _reader(task: ExtractionTask) -> Callable[[IO[bytes]], Document]:
    from hermes.tools.documents import ocr, office, pages, pdf, records

    budget = TimeBudget(task.limits)
    readers: dict[DocumentKind, Callable[[IO[bytes]], Document]] = {
        "pdf": partial(pdf.read_pdf, pages=task.pages, budget=budget),
        "docx": office.read_docx,
        "xlsx": partial(office.read_xlsx, budget=budget),
        "pptx": office.read_pptx,
        "epub": pages.read_epub,
        "html": pages.read_html,
        "email": records.read_email,
        "notebook": records.read_notebook,
        "archive": partial(records.read_archive, budget=budget),
        "picture": ocr.read_picture,
    }
    return readers[task.kind]


def _check_size(file: IO[bytes], limits: ReaderLimits) -> None:
    """Raises _TooLarge for an archive that would unpack to far more than any real document."""
    with zipfile.ZipFile(file) as archive:
        entries = archive.infolist()
    file.seek(0)
    size = sum(entry.file_size for entry in entries)
    if size > limits.unpacked_bytes or len(entries) > limits.entries:
        raise _TooLarge(
            f"it is too large: it unpacks to {size:,} bytes in {len(entries):,} files, and at most"
            f" {limits.unpacked_bytes:,} bytes in {limits.entries:,} files are read"
        )


def _broken(error: Exception) -> ExtractionProblem:
    if "password" in str(error).lower():
        return ExtractionProblem(
            "it is protected by a password", kind=MediaErrorKind.REFUSED
        )
    return ExtractionProblem(_reason(error))


def _reason(error: Exception) -> str:
    text = " ".join(str(error).split())[:300].rstrip(".")
    return f"it is damaged, or not what its name says ({text or type(error).__name__})"


def _shortened(document: Document) -> Document:
    """Cuts the text of a document that is longer than any model reads, and adds a note."""
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
    task = msgspec.json.decode(sys.argv[1], type=ExtractionTask)
    limits = task.limits
    has_ocr = task.kind in _WITH_OCR
    write_one_result(
        lambda file: msgspec.json.encode(extract(task, file)),
        {
            resource.RLIMIT_AS: limits.ocr_memory_bytes
            if has_ocr
            else limits.memory_bytes,
            resource.RLIMIT_CPU: limits.cpu_s,
            resource.RLIMIT_FSIZE: 0,
        },
    )


if __name__ == "__main__":
    main()

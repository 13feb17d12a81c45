"""Documents that are made to hurt their reader: each is an error in words, within limits of memory and time."""

import gzip
import os
import tarfile
import zipfile
from io import BytesIO
from pathlib import Path

import pytest
from tests.integration.test_documents import make_docx, make_pdf, make_xlsx

from hermes.errors import MediaError, MediaErrorKind
from hermes.tools.documents.document import PageRange
from hermes.tools.documents.extract import (
    ExtractedDocument,
    ExtractionProblem,
    ExtractionTask,
    extract,
)
from hermes.tools.documents.limits import ReaderLimits
from hermes.tools.documents.reader import DocumentReader, read_pages

_MB = 1024**2
_ENDLESS_PDF = b"""%PDF-1.4
1 0 obj <</Type/Catalog/Pages 2 0 R>> endobj
2 0 obj <</Type/Pages/Kids[3 0 R 2 0 R]/Count 1000000>> endobj
3 0 obj <</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]>> endobj
trailer <</Root 1 0 R>>
%%EOF
"""
"""Its pages contain themselves."""


def docx_with_body(body: bytes) -> bytes:
    """A Word file with another body."""
    buffer = BytesIO()
    with (
        zipfile.ZipFile(BytesIO(make_docx())) as old,
        zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as made,
    ):
        for name in old.namelist():
            is_body = name == "word/document.xml"
            made.writestr(name, body if is_body else old.read(name))
    return buffer.getvalue()


def docx_with_paragraphs(count: int) -> bytes:
    space = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    body = "<w:p><w:r><w:t>x</w:t></w:r></w:p>" * count
    document = f'<w:document xmlns:w="{space}"><w:body>{body}</w:body></w:document>'
    return docx_with_body(document.encode())


def failure(folder: Path, name: str, data: bytes, limits: ReaderLimits) -> MediaError:
    """Why the real process, in the sandbox, did not read a file."""
    path = folder / name
    path.write_bytes(data)
    with pytest.raises(MediaError) as failed:
        read_pages(DocumentReader(dict(os.environ), limits), path)
    assert failed.value.sense == "documents"
    return failed.value


def problem(task: ExtractionTask, data: bytes) -> ExtractionProblem:
    result = extract(task, BytesIO(data))
    assert isinstance(result, ExtractionProblem)
    return result


def test_a_document_that_unpacks_to_too_much_is_refused_before_it_unpacks() -> None:
    limits = ReaderLimits(unpacked_bytes=5 * _MB)
    bomb = docx_with_body(bytes(6 * _MB))
    assert len(bomb) < _MB
    found = problem(ExtractionTask(kind="docx", limits=limits), bomb)
    assert found.kind is MediaErrorKind.TOO_LARGE
    assert found.message.startswith("it is too large: it unpacks to 7,")


def test_a_document_that_lies_about_its_size_is_damaged() -> None:
    """Its entries say that they are short; no more than that is ever unpacked."""
    bomb = docx_with_body(bytes(20 * _MB)).replace(
        (20 * _MB).to_bytes(4, "little"), (1_000).to_bytes(4, "little")
    )
    found = problem(ExtractionTask(kind="docx"), bomb)
    assert found.kind is MediaErrorKind.NOT_SUPPORTED
    assert found.message.startswith("it is damaged")


def test_a_document_that_needs_too_much_memory_ends_its_own_process(
    tmp_path: Path,
) -> None:
    limits = ReaderLimits(memory_bytes=220 * _MB)
    lists = b"[" + b"[]," * 3_000_000 + b"[]]"
    found = failure(tmp_path, "a.ipynb", lists, limits)
    assert found.kind is MediaErrorKind.TOO_LARGE
    assert "it needs too much memory" in found.message


def test_a_document_that_takes_too_long_ends_its_own_process(tmp_path: Path) -> None:
    limits = ReaderLimits(cpu_s=1)
    found = failure(tmp_path, "a.docx", docx_with_paragraphs(60_000), limits)
    assert found.kind is MediaErrorKind.TOO_LARGE
    assert "its reader stopped" in found.message


def test_a_parser_that_runs_out_of_stack_is_an_error(tmp_path: Path) -> None:
    found = failure(tmp_path, "a.ipynb", b"[" * 200_000, ReaderLimits())
    assert "can't be read" in found.message


def test_a_pdf_with_endless_pages_is_read_as_far_as_it_has_any() -> None:
    result = extract(ExtractionTask(kind="pdf"), BytesIO(_ENDLESS_PDF))
    assert isinstance(result, ExtractedDocument)
    assert len(result.document.parts) == 21
    assert "too many pages are damaged" in result.document.notes[-1]


def test_a_long_pdf_is_read_until_the_time_is_up_and_then_by_page() -> None:
    pdf = make_pdf(40)
    in_no_time = ReaderLimits(cpu_s=0)
    result = extract(ExtractionTask(kind="pdf", limits=in_no_time), BytesIO(pdf))
    assert isinstance(result, ExtractedDocument)
    assert result.document.label == 'PDF "Annual report", 40 pages'
    assert result.document.notes == ("reading stopped after page 1: it took too long",)
    rest = ExtractionTask(kind="pdf", pages=PageRange(40, 40), limits=in_no_time)
    result = extract(rest, BytesIO(pdf))
    assert isinstance(result, ExtractedDocument)
    assert "Heading of page 40" in result.document.text()


@pytest.mark.parametrize("at", [0.2, 0.5, 0.9])
def test_a_workbook_with_a_damaged_part_is_an_error(at: float) -> None:
    data = bytearray(make_xlsx())
    middle = int(len(data) * at)
    data[middle : middle + 200] = bytes(200)
    found = problem(ExtractionTask(kind="xlsx"), bytes(data))
    assert found.kind is MediaErrorKind.NOT_SUPPORTED
    assert found.message.startswith("it is damaged")


def test_archives_in_archives_are_named_and_not_opened() -> None:
    inner = BytesIO()
    with zipfile.ZipFile(inner, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("zeros", bytes(20 * _MB))
    outer = BytesIO()
    with zipfile.ZipFile(outer, "w") as archive:
        for number in range(16):
            archive.writestr(f"{number}.zip", inner.getvalue())
    result = extract(ExtractionTask(kind="archive"), BytesIO(outer.getvalue()))
    assert isinstance(result, ExtractedDocument)
    assert result.document.text().count(".zip") == 16


def test_the_listing_of_an_archive_bomb_stops_in_time() -> None:
    """One entry after which no other is found without unpacking it."""
    entry = tarfile.TarInfo("zeros")
    entry.size = 20 * _MB
    packed = gzip.compress(entry.tobuf() + bytes(entry.size), 1)
    task = ExtractionTask(kind="archive", limits=ReaderLimits(cpu_s=0))
    result = extract(task, BytesIO(packed))
    assert isinstance(result, ExtractedDocument)
    assert result.document.text().endswith("reading stopped here: it took too long")


def test_what_is_missing_is_told_by_its_kind(tmp_path: Path) -> None:
    old = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600)
    kinds = {
        "a.doc": (old, MediaErrorKind.NOT_SUPPORTED),
        "locked.docx": (old, MediaErrorKind.REFUSED),
        "broken.pdf": (b"%PDF-1.7\n", MediaErrorKind.NOT_SUPPORTED),
    }
    for name, (data, kind) in kinds.items():
        assert failure(tmp_path, name, data, ReaderLimits()).kind is kind

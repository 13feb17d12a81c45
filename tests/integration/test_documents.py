"""Documents read back word for word: real files of each kind, and files that are made to hurt."""

import json
import os
import re
import tarfile
import zipfile
from datetime import date
from email.message import EmailMessage
from io import BytesIO
from pathlib import Path

import pytest
from tests.integration.providers.local_models import missing

from hermes.app.attachments import (
    AttachmentFolder,
    attach,
    received_file,
    uploaded_file,
)
from hermes.core.ports import ToolContext
from hermes.errors import MediaError, MediaErrorKind, ToolFailed
from hermes.media.picture_text import ocr_is_available
from hermes.tools.documents.document import Document
from hermes.tools.documents.extract import (
    ExtractedDocument,
    ExtractionProblem,
    ExtractionTask,
    extract,
)
from hermes.tools.documents.kinds import document_kind
from hermes.tools.files.file_tools import FileTools
from hermes.tools.sensitive import Guard

FOX = "The quick brown fox jumps over the lazy dog."


def need_ocr() -> None:
    """Where OCR is not installed the test is skipped; in CI that is a failure."""
    if not ocr_is_available():
        missing("the extra `ocr` is not installed, so no scan is read")


def make_pdf(pages: int, *, table: bool = False) -> bytes:
    from reportlab.pdfgen.canvas import Canvas

    buffer = BytesIO()
    canvas = Canvas(buffer)
    canvas.setTitle("Annual report")
    for number in range(1, pages + 1):
        canvas.drawString(72, 750, f"Heading of page {number}")
        canvas.drawString(72, 730, FOX)
        for row, cells in enumerate((("Name", "Price"), ("Pear, big", "2.50"))):
            for column, cell in enumerate(cells if table else ()):
                canvas.drawString(72 + 150 * column, 700 - 20 * row, cell)
        canvas.showPage()
    canvas.save()
    return buffer.getvalue()


def make_docx() -> bytes:
    import docx

    document = docx.Document()
    document.add_heading("Report", 0)
    document.add_paragraph("Grüße aus Köln.")
    document.add_heading("Figures", 1)
    table = document.add_table(rows=2, cols=2)
    for index, text in enumerate(("year", "a | b", "2026", "7")):
        table.cell(index // 2, index % 2).text = text
    document.add_paragraph("first", style="List Bullet")
    buffer = BytesIO()
    document.save(buffer)
    return buffer.getvalue()


def make_pptx() -> bytes:
    from pptx import Presentation

    deck = Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[1])
    title = slide.shapes.title
    assert title is not None
    title.text = "Why foxes"
    notes = slide.notes_slide.notes_text_frame
    assert notes is not None
    notes.text = "speak slowly"
    deck.slides.add_slide(deck.slide_layouts[5])
    buffer = BytesIO()
    deck.save(buffer)
    return buffer.getvalue()


def make_xlsx() -> bytes:
    import openpyxl

    book = openpyxl.Workbook()
    sheet = book.worksheets[0]
    sheet.title = "Sales"
    for row in (["day", "amount"], [date(2026, 1, 2), 3.5], [None, "=SUM(B2:B2)"]):
        sheet.append(row)
    book.create_sheet("Empty")
    buffer = BytesIO()
    book.save(buffer)
    return buffer.getvalue()


def make_epub() -> bytes:
    buffer = BytesIO()
    container = (
        '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container">'
        '<rootfiles><rootfile full-path="OEBPS/book.opf"/></rootfiles></container>'
    )
    package = (
        '<package xmlns="http://www.idpf.org/2007/opf" xmlns:dc="http://purl.org/dc/elements/1.1/">'
        "<metadata><dc:title>Fox tales</dc:title></metadata><manifest>"
        '<item id="b" href="two.xhtml" media-type="application/xhtml+xml"/>'
        '<item id="a" href="one%20.xhtml" media-type="application/xhtml+xml"/></manifest>'
        '<spine><itemref idref="a"/><itemref idref="b"/></spine></package>'
    )
    with zipfile.ZipFile(buffer, "w") as book:
        book.writestr("META-INF/container.xml", container)
        book.writestr("OEBPS/book.opf", package)
        book.writestr(
            "OEBPS/one .xhtml", "<html><body><h1>One</h1><p>A fox.</p></body></html>"
        )
        book.writestr("OEBPS/two.xhtml", "<html><body><p>A dog.</p></body></html>")
    return buffer.getvalue()


def read(name: str, data: bytes) -> Document:
    kind = document_kind(name, data[:1024])
    assert kind is not None
    result = extract(ExtractionTask(kind=kind), BytesIO(data))
    assert isinstance(result, ExtractedDocument), result
    return result.document


def problem(name: str, data: bytes) -> str:
    kind = document_kind(name, data[:1024])
    assert kind is not None
    result = extract(ExtractionTask(kind=kind), BytesIO(data))
    assert isinstance(result, ExtractionProblem)
    return result.message


def context(folder: Path) -> ToolContext:
    return ToolContext("c", "s", folder, lambda text: None)


def test_a_pdf_is_read_page_by_page_with_its_tables() -> None:
    document = read("a.pdf", make_pdf(3, table=True))
    assert document.label == 'PDF "Annual report", 3 pages'
    assert document.parts[1].text.splitlines() == [
        "Heading of page 2",
        FOX,
        "| Name | Price |",
        "| --- | --- |",
        "| Pear, big | 2.50 |",
    ]


def test_a_word_document_keeps_headings_lists_and_tables() -> None:
    assert read("a.docx", make_docx()).text() == (
        "# Report\n\nGrüße aus Köln.\n\n# Figures\n\n| year | a \\| b |\n| --- | --- |\n| 2026 | 7 |\n\n- first"
    )


def test_slides_have_their_notes() -> None:
    document = read("a.pptx", make_pptx())
    assert document.parts[0].text == "Why foxes\nNotes: speak slowly"
    assert document.label == "PowerPoint presentation, 2 slides"


def retyped(data: bytes, new: str) -> bytes:
    """An Office file whose main part has another type."""
    buffer = BytesIO()
    with zipfile.ZipFile(BytesIO(data)) as old, zipfile.ZipFile(buffer, "w") as made:
        for name in old.namelist():
            part = old.read(name)
            if name == "[Content_Types].xml":
                part, count = re.subn(
                    rb'"application/[^"]*\.main\+xml"', new.encode(), part
                )
                assert count == 1
            made.writestr(name, part)
    return buffer.getvalue()


def test_templates_macro_files_and_slide_shows_are_read_like_documents() -> None:
    office = "application/vnd.openxmlformats-officedocument"
    template = f'"{office}.wordprocessingml.template.main+xml"'
    macros = '"application/vnd.ms-word.document.macroEnabled.main+xml"'
    show = f'"{office}.presentationml.slideshow.main+xml"'
    assert "Grüße" in read("a.dotx", retyped(make_docx(), template)).text()
    assert "Grüße" in read("a.docm", retyped(make_docx(), macros)).text()
    assert "Why foxes" in read("a.ppsx", retyped(make_pptx(), show)).text()
    assert "not a Word file" in problem("a.docx", make_xlsx())


def test_a_workbook_is_read_by_sheet_with_dates_and_formulas() -> None:
    document = read("a.xlsx", make_xlsx())
    assert [part.name for part in document.parts] == ["sheet Sales", "sheet Empty"]
    assert "| 2026-01-02 | 3.5 |" in document.parts[0].text
    assert "=SUM(B2:B2)" in document.parts[0].text


def test_a_book_is_read_in_the_order_of_its_spine() -> None:
    document = read("a.epub", make_epub())
    assert document.title == "Fox tales"
    assert [part.text.replace("\n\n", " ") for part in document.parts] == [
        "# One A fox.",
        "A dog.",
    ]


def test_an_email_in_an_unknown_charset_keeps_its_body() -> None:
    message = b"From: a@example.org\nSubject: Hi\nContent-Type: text/plain; charset=x-odd\n\nHello there.\n"
    assert (
        read("a.eml", message).text()
        == "From: a@example.org\nSubject: Hi\n\nHello there."
    )


def test_a_forwarded_email_is_read_too() -> None:
    inner, outer = EmailMessage(), EmailMessage()
    inner["Subject"], outer["Subject"] = "The plan", "Fwd: The plan"
    inner.set_content("We meet on Thursday.")
    outer.set_content("See below.")
    outer.add_attachment(inner)
    document = read("a.eml", outer.as_bytes())
    assert [part.name for part in document.parts] == ["message 1", "message 2"]
    assert "- The plan (message 2)" in document.parts[0].text
    assert "We meet on Thursday." in document.parts[1].text


def test_a_notebook_shows_cells_and_outputs() -> None:
    cell = {
        "cell_type": "code",
        "source": ["print(42)"],
        "outputs": [{"output_type": "stream", "text": ["42\n"]}],
    }
    notebook = {
        "cells": [{"cell_type": "markdown", "source": "# T"}, cell],
        "metadata": {"kernelspec": {"name": "python3"}},
    }
    document = read("a.ipynb", json.dumps(notebook).encode())
    assert document.parts[1].text == "```\nprint(42)\n```\nOutput:\n42"


def test_archives_are_listed() -> None:
    zipped, tarred = BytesIO(), BytesIO()
    with zipfile.ZipFile(zipped, "w") as archive:
        archive.writestr("folder/notes.txt", "x" * 1234)
    with tarfile.open(fileobj=tarred, mode="w:gz") as archive:
        archive.addfile(tarfile.TarInfo("deep/file.bin"))
    assert "1,234" in read("a.zip", zipped.getvalue()).text()
    assert read("a.tar.gz", tarred.getvalue()).text().endswith("deep/file.bin")


@pytest.mark.parametrize(
    "name", ["a.pdf", "a.docx", "a.xlsx", "a.pptx", "a.epub", "a.ipynb"]
)
def test_a_broken_document_is_a_problem_in_words(name: str) -> None:
    start = {"a.pdf": b"%PDF-1.7\n", "a.ipynb": b"{"}.get(name, b"PK\x03\x04")
    assert problem(name, start + os.urandom(300)).startswith("it is damaged")


def test_a_book_with_entities_is_refused() -> None:
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w") as book:
        book.writestr(
            "META-INF/container.xml", '<!DOCTYPE x [<!ENTITY a "b">]><x>&a;</x>'
        )
    assert "entities" in problem("a.epub", buffer.getvalue())


async def test_read_file_reads_a_document_in_the_sandbox(tmp_path: Path) -> None:
    (tmp_path / "long.pdf").write_bytes(make_pdf(60))
    files = FileTools(environment=dict(os.environ))
    result = await files.read_file.run(
        {"path": "long.pdf", "limit": 4}, context(tmp_path)
    )
    header, *lines = result.text.splitlines()
    assert 'PDF "Annual report", 60 pages' in header
    assert "page 31: line 91" in header
    assert lines[:3] == ["--- page 1 ---", "Heading of page 1", FOX]
    assert result.source == "long.pdf"
    later = await files.read_file.run(
        {"path": "long.pdf", "offset": 91, "limit": 2}, context(tmp_path)
    )
    assert "Heading of page 31" in later.text


async def test_read_file_shows_the_pages_that_are_named(tmp_path: Path) -> None:
    (tmp_path / "long.pdf").write_bytes(make_pdf(9))
    (tmp_path / "deck.pptx").write_bytes(make_pptx())
    files = FileTools(environment=dict(os.environ))

    async def shown(name: str, pages: str) -> str:
        wanted = {"path": name, "pages": pages}
        return (await files.read_file.run(wanted, context(tmp_path))).text

    some = await shown("long.pdf", "3-4")
    assert "9 pages; page 3 to page 4]" in some.splitlines()[0]
    assert re.findall(r"Heading of page \d", some) == [
        "Heading of page 3",
        "Heading of page 4",
    ]
    assert "Heading of page 9" in await shown("long.pdf", "9-")
    assert "slide 2 to slide 2]" in await shown("deck.pptx", "2")
    for pages, why in (("12", "has only 9 pages"), ("x", "names no pages")):
        with pytest.raises(ToolFailed, match=why):
            await shown("long.pdf", pages)
    (tmp_path / "a.txt").write_text("text")
    with pytest.raises(ToolFailed, match="without pages"):
        await shown("a.txt", "2")


def test_the_contents_of_a_document_have_its_headings() -> None:
    from reportlab.pdfgen.canvas import Canvas

    buffer = BytesIO()
    canvas = Canvas(buffer)
    for number in range(1, 5):
        canvas.drawString(72, 750, FOX)
        if number != 3:
            canvas.bookmarkPage(f"p{number}")
            canvas.addOutlineEntry(f"Part {number}", f"p{number}")
        canvas.showPage()
    canvas.save()
    book = read("a.pdf", buffer.getvalue())
    assert (
        book.contents()
        == "page 1 (Part 1): line 1; page 2 (Part 2): line 3; page 4 (Part 4): line 7"
    )
    assert read("a.docx", make_docx()).contents() == "Report: line 1; Figures: line 5"


async def test_a_web_page_is_read_as_text_and_a_projects_page_as_source(
    tmp_path: Path,
) -> None:
    page = "<html><script>x = 1</script><h1>News</h1><p>A fox.</p></html>"
    for folder in ("downloads", "project/.git", "project/site"):
        (tmp_path / folder).mkdir(parents=True)
    saved, source = "downloads/news.html", "project/site/index.html"
    (tmp_path / saved).write_text(page)
    (tmp_path / source).write_text(page)
    files = FileTools(environment=dict(os.environ))

    async def shown(path: str, **more: object) -> str:
        wanted = {"path": path, **more}
        return (await files.read_file.run(wanted, context(tmp_path))).text

    text = await shown(saved)
    assert "raw=true shows the source" in text
    assert "# News\n\nA fox." in text
    assert "x = 1" not in text
    assert page in await shown(source)
    assert "x = 1" not in await shown(source, pages="1")
    assert page in await shown(saved, raw=True)
    assert page in await shown(saved)  # the session works on its source now


async def test_documents_can_be_turned_off(tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_bytes(make_zip())
    (tmp_path / "a.ipynb").write_text("{}")
    files = FileTools(reads_documents=False)
    with pytest.raises(MediaError, match="turned off") as failed:
        await files.read_file.run({"path": "a.zip"}, context(tmp_path))
    assert failed.value.kind is MediaErrorKind.NOT_CONFIGURED
    source = await files.read_file.run({"path": "a.ipynb"}, context(tmp_path))
    assert source.text.endswith("{}")
    folder = AttachmentFolder(tmp_path, Guard(Path("/nowhere")), reads_documents=False)
    (said,) = attach("@a.zip", folder).left
    assert "turned off" in said
    kept = uploaded_file(tmp_path / "a.zip", reads_documents=False)
    assert "media.documents auto" in kept


async def test_the_source_of_a_notebook_can_be_read(tmp_path: Path) -> None:
    (tmp_path / "a.ipynb").write_text('{"cells": []}')
    read = FileTools().read_file.run(
        {"path": "a.ipynb", "raw": True}, context(tmp_path)
    )
    assert '{"cells": []}' in (await read).text


async def test_read_file_reads_a_long_email_from_its_beginning(tmp_path: Path) -> None:
    """Its kind is told by its first bytes, which must not be missing afterwards."""
    body = "\n".join([FOX] * 200)
    (tmp_path / "a.eml").write_text(f"Subject: Foxes\n\n{body}\nThe end.\n")
    result = await FileTools().read_file.run({"path": "a.eml"}, context(tmp_path))
    assert 'e-mail "Foxes"' in result.text
    assert result.text.count(FOX) == 200
    assert "The end." in result.text


async def test_a_csv_file_is_shown_as_it_is_with_the_types_of_its_columns(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.csv").write_text(
        "day;amount;ok;name\n2026-01-02;3,5;yes;x\n2026-01-03;4;no;y\n"
    )
    result = await FileTools().read_file.run({"path": "a.csv"}, context(tmp_path))
    header = result.text.splitlines()[0]
    assert header.endswith(
        "columns: day (date), amount (number), ok (boolean), name (text)]"
    )
    assert "2026-01-02;3,5;yes;x" in result.text


async def test_an_old_office_file_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "a.doc").write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600))
    with pytest.raises(ToolFailed, match=r"old Word 97-2003 format") as failed:
        await FileTools().read_file.run({"path": "a.doc"}, context(tmp_path))
    assert ".docx" in (failed.value.hint or "")
    (tmp_path / "a.doc").rename(tmp_path / "a.docx")
    with pytest.raises(ToolFailed, match="protected by a password"):
        await FileTools().read_file.run({"path": "a.docx"}, context(tmp_path))


def test_an_attached_document_sends_the_pages_that_were_named(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(make_pdf(5))
    folder = AttachmentFolder(tmp_path, Guard(Path("/nowhere")))
    attached = attach("what is on @a.pdf#2-3?", folder)
    assert "Heading of page 2" in attached.text
    assert "Heading of page 3" in attached.text
    assert "Heading of page 1" not in attached.text
    assert "Heading of page 4" not in attached.text
    assert attached.left == ()


def make_zip() -> bytes:
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("sub/one.txt", "1")
    return buffer.getvalue()


def make_tar_gz() -> bytes:
    buffer = BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        archive.addfile(tarfile.TarInfo("sub/two.txt"))
    return buffer.getvalue()


def test_every_document_that_read_file_reads_can_be_attached(tmp_path: Path) -> None:
    texts = {
        "report": (make_pdf(1), "Heading of page 1"),
        "macros.xlsm": (make_xlsx(), "sheet Sales"),
        "code.tar.gz": (make_tar_gz(), "sub/two.txt"),
        "code.zip": (make_zip(), "sub/one.txt"),
    }
    for name, (data, _) in texts.items():
        (tmp_path / name).write_bytes(data)
    named = " ".join(f"@{name}" for name in texts)
    sent = attach(named, AttachmentFolder(tmp_path, Guard(Path("/nowhere"))))
    assert [text for _, text in texts.values() if text not in sent.text] == []
    assert sent.left == ()
    in_chat_app = received_file(tmp_path / "code.zip", alone=True)
    on_page = uploaded_file(tmp_path / "code.zip")
    assert ("sub/one.txt" in in_chat_app, "sub/one.txt" in on_page) == (True, True)


def test_an_attached_file_that_nothing_reads_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "a.doc").write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600))
    (said,) = attach("@a.doc", AttachmentFolder(tmp_path, Guard(Path("/nowhere")))).left
    assert "Save it in the current format (.docx" in said
    assert "Save it in the current format" in uploaded_file(tmp_path / "a.doc")


def test_a_long_attached_document_begins_with_its_contents(tmp_path: Path) -> None:
    cells = [{"cell_type": "markdown", "source": "x" * 1_000}] * 60
    (tmp_path / "long.ipynb").write_text(json.dumps({"cells": cells}))
    folder = AttachmentFolder(tmp_path, Guard(Path("/nowhere")))
    sent = attach("@long.ipynb", folder).text
    head = sent.split("--- cell 1 ")[0]
    assert "contents: cell 1 (markdown): line 1; cell 3 (markdown): line 5;" in head
    assert sent.rstrip().endswith("[cut here: read_file shows the rest]\n</attached>")


def test_an_attached_table_has_the_types_of_its_columns(tmp_path: Path) -> None:
    rows = "".join(f"2026-01-0{n % 9 + 1},{n}.5\n" for n in range(9_000))
    (tmp_path / "long.csv").write_text(f"day,amount\n{rows}")
    (tmp_path / "short.csv").write_text("day,amount\n2026-01-02,7.5\n")
    folder = AttachmentFolder(tmp_path, Guard(Path("/nowhere")))
    for name in ("long.csv", "short.csv"):
        sent = attach(f"@{name}", folder)
        assert "[columns: day (date), amount (number)]\nday,amount\n" in sent.text
        assert sent.left == ()
        assert len(sent.text) < 2_000
        assert ("[cut here: read_file shows the rest]" in sent.text) == (name[0] == "l")
    secret = (tmp_path / "short.csv").rename(tmp_path / "credentials.csv")
    assert received_file(secret, alone=True) == f"[file: {secret}]"


def test_a_scanned_page_is_recognised(tmp_path: Path) -> None:
    need_ocr()
    pdfium = pytest.importorskip("pypdfium2")
    from reportlab.lib.utils import ImageReader
    from reportlab.pdfgen.canvas import Canvas

    picture = pdfium.PdfDocument(make_pdf(1))[0].render(scale=3).to_pil()
    buffer = BytesIO()
    canvas = Canvas(buffer)
    canvas.drawImage(ImageReader(picture), 0, 0, 595, 842)
    canvas.save()
    document = read("scan.pdf", buffer.getvalue())
    assert "quick brown fox jumps over the lazy dog" in document.text()
    assert "was recognised" in document.notes[0]

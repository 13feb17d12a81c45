"""Office documents: Word as Markdown, PowerPoint by slide with its notes, Excel by sheet with values and formulas."""

from collections.abc import Iterable, Iterator
from datetime import date, datetime, time
from typing import IO, Any

from hermes.tools.documents.document import Document, DocumentPart, markdown_table
from hermes.tools.documents.limits import TimeBudget

_MAX_SHEET_ROWS = 20_000
_MAX_SHEET_COLUMNS = 200
_WORD_TYPES = (
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.template.main+xml",
    "application/vnd.ms-word.document.macroEnabled.main+xml",
    "application/vnd.ms-word.template.macroEnabledTemplate.main+xml",
)
_SLIDE_TYPES = (
    "application/vnd.openxmlformats-officedocument.presentationml.presentation.main+xml",
    "application/vnd.openxmlformats-officedocument.presentationml.slideshow.main+xml",
    "application/vnd.openxmlformats-officedocument.presentationml.template.main+xml",
    "application/vnd.ms-powerpoint.presentation.macroEnabled.main+xml",
    "application/vnd.ms-powerpoint.slideshow.macroEnabled.main+xml",
)
"""Templates, slide shows and files with macros are read like documents; the libraries open only the first kind."""


def read_docx(file: IO[bytes]) -> Document:
    """Paragraphs, headings, lists and tables in their order."""
    from docx.table import Table

    document = _opened_docx(file)
    blocks = [
        markdown_table(_cells(block)) if isinstance(block, Table) else _paragraph(block)
        for block in document.iter_inner_content()
        if not isinstance(block, Table) or block.rows
    ]
    text = "\n\n".join(block for block in blocks if block)
    title = (document.core_properties.title or "").strip()
    return Document("docx", (DocumentPart("document", text),), title)


def _opened_docx(file: IO[bytes]) -> Any:
    import docx  # noqa: F401 - it registers the other parts
    from docx.opc.part import PartFactory
    from docx.package import Package
    from docx.parts.document import DocumentPart as WordPart

    PartFactory.part_type_for.update(dict.fromkeys(_WORD_TYPES, WordPart))
    main: Any = Package.open(file).main_document_part
    if main.content_type not in _WORD_TYPES:
        raise ValueError(f"it is not a Word file but {main.content_type}")
    return main.document


def _paragraph(paragraph: Any) -> str:
    text = paragraph.text.strip()
    style = (paragraph.style.name if paragraph.style is not None else None) or ""
    if not text:
        return ""
    if style == "Title":
        return f"# {text}"
    if style.startswith("Heading "):
        level = style.removeprefix("Heading ")
        return f"{'#' * int(level) if level.isdecimal() else '#'} {text}"
    return f"- {text}" if style.startswith("List") else text


def _cells(table: Any) -> list[list[str]]:
    """The cells of a table. A merged cell is listed once."""
    rows: list[list[str]] = []
    for row in table.rows:
        unique = {id(cell._tc): cell.text for cell in row.cells}  # noqa: SLF001 - merged cells share it
        rows.append(list(unique.values()))
    return rows


def _opened_pptx(file: IO[bytes]) -> Any:
    import pptx  # noqa: F401 - it registers the other parts
    from pptx.opc.package import PartFactory
    from pptx.package import Package
    from pptx.parts.presentation import PresentationPart

    PartFactory.part_type_for.update(dict.fromkeys(_SLIDE_TYPES, PresentationPart))
    main: Any = Package.open(file).main_document_part
    if main.content_type not in _SLIDE_TYPES:
        raise ValueError(f"it is not a PowerPoint file but {main.content_type}")
    return main.presentation


def read_pptx(file: IO[bytes]) -> Document:
    """Slide by slide: text, tables and the speaker's notes."""
    presentation = _opened_pptx(file)
    parts: list[DocumentPart] = []
    for number, slide in enumerate(presentation.slides, 1):
        blocks = list(_shapes(slide.shapes))
        if slide.has_notes_slide and (frame := slide.notes_slide.notes_text_frame):
            notes = frame.text.strip()
            blocks += [f"Notes: {notes}"] if notes else []
        parts.append(DocumentPart(f"slide {number}", "\n".join(blocks)))
    title = (presentation.core_properties.title or "").strip()
    return Document(
        "pptx", tuple(parts), "" if title == "PowerPoint Presentation" else title
    )


def _shapes(shapes: Iterable[Any]) -> Iterator[str]:
    for shape in shapes:
        if hasattr(shape, "shapes"):  # a group
            yield from _shapes(shape.shapes)
        elif shape.has_table:
            yield markdown_table(
                [[cell.text for cell in row.cells] for row in shape.table.rows]
            )
        elif shape.has_text_frame and shape.text_frame.text.strip():
            yield shape.text_frame.text.strip()


def read_xlsx(file: IO[bytes], budget: TimeBudget) -> Document:
    """Sheet by sheet, until the time is up. A formula is shown with the value that Excel stored for it."""
    import openpyxl

    values = openpyxl.load_workbook(file, read_only=True, data_only=True)
    file.seek(0)
    formulas = openpyxl.load_workbook(file, read_only=True)
    parts: list[DocumentPart] = []
    notes: list[str] = []
    for sheet in values.worksheets:
        rows: list[list[str]] = []
        for row in _sheet_rows(sheet, formulas[sheet.title]):
            if budget.is_spent:
                notes.append(
                    f"sheet {sheet.title}: reading stopped after {len(rows):,} rows: it took too long"
                )
                break
            rows.append(row)
        parts.append(
            DocumentPart(f"sheet {sheet.title}", markdown_table(rows) if rows else "")
        )
        if (sheet.max_row or 0) > _MAX_SHEET_ROWS:
            notes.append(
                f"sheet {sheet.title}: only the first {_MAX_SHEET_ROWS:,} rows are shown"
            )
    title = (values.properties.title or "").strip()
    return Document("xlsx", tuple(parts), title, tuple(notes))


def _sheet_rows(values: Any, formulas: Any) -> Iterator[list[str]]:
    bounds = {
        "max_row": _MAX_SHEET_ROWS,
        "max_col": _MAX_SHEET_COLUMNS,
        "values_only": True,
    }
    pairs = zip(values.iter_rows(**bounds), formulas.iter_rows(**bounds), strict=False)
    for row, typed in pairs:
        cells = [
            _cell(value, formula) for value, formula in zip(row, typed, strict=False)
        ]
        while cells and not cells[-1]:
            cells.pop()
        if cells:
            yield cells


def _cell(value: Any, formula: Any) -> str:
    """A value as a person would write it, followed by its formula if it has one."""
    if isinstance(value, datetime) and value.time() == time():
        value = value.date()
    if isinstance(value, (datetime, date, time)):
        shown = value.isoformat()
    elif isinstance(value, bool):
        shown = str(value).upper()
    elif isinstance(value, float):
        shown = f"{value:.15g}"
    else:
        shown = "" if value is None else str(value)
    if isinstance(formula, str) and formula.startswith("="):
        return f"{shown} ({formula})" if shown else formula
    return shown

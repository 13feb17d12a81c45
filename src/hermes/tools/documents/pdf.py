"""PDF: the text of each page as a person would read it, tables as Markdown, scanned pages by OCR if it is installed."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import IO, Any

import msgspec

from hermes.tools.documents.document import (
    Document,
    DocumentPart,
    PageRange,
    markdown_table,
    short_title,
)
from hermes.tools.documents.limits import TimeBudget
from hermes.tools.documents.ocr import PageOcr

_CELL_GAP_EMS = 0.9  # a gap this wide, in heights of the line, separates two cells
_ALIGNED_POINTS = 6.0
_MAX_OCR_PAGES = 30
_OCR_SCALE = 2.0  # 144 dots per inch
_MAX_BOOKMARKS = 2_000
_MAX_DAMAGED_PAGES = 20


class _Cell(msgspec.Struct, frozen=True):
    left: float
    right: float
    text: str


class _Line(msgspec.Struct):
    top: float
    bottom: float
    cells: list[_Cell]


def read_pdf(file: IO[bytes], pages: PageRange, budget: TimeBudget) -> Document:
    """Reads these pages, until the time is up. Raises pypdfium2's PdfiumError if the file is broken or encrypted."""
    import pypdfium2

    pdf = pypdfium2.PdfDocument(file)
    titles = _titles(pdf)
    reading = _PageReading()
    parts: list[DocumentPart] = []
    last = min(pages.last or len(pdf), len(pdf))
    for number in range(pages.first, last + 1):
        if parts and (budget.is_spent or reading.is_hopeless):
            break
        text = reading.text(pdf, number)
        parts.append(DocumentPart(f"page {number}", text, titles.get(number, "")))
    reading.check(len(parts))
    title = pdf.get_metadata_dict().get("Title", "").strip()
    notes = reading.notes()
    end = pages.first + len(parts) - 1
    if parts and end < last:
        why = "it took too long" if budget.is_spent else "too many pages are damaged"
        notes = (*notes, f"reading stopped after page {end}: {why}")
    return Document("pdf", tuple(parts), _real_title(title), notes, len(pdf))


class _PageReading:
    """Reads page after page, and remembers which were scanned and which are damaged."""

    def __init__(self) -> None:
        self._ocr = PageOcr()
        self._scanned: list[int] = []
        self._damaged: list[int] = []
        self._recognised = 0
        self._error: Exception | None = None

    @property
    def is_hopeless(self) -> bool:
        """Whether so many pages are damaged that the others are not attempted."""
        return len(self._damaged) >= _MAX_DAMAGED_PAGES

    def text(self, pdf: Any, number: int) -> str:
        """The text of a page; empty for a damaged one."""
        from pypdfium2 import PdfiumError

        try:
            page = pdf[number - 1]
        except PdfiumError as error:
            self._error = error
            self._damaged.append(number)
            return ""
        text = _page_text(page)
        if not text.strip() and _has_picture(page):
            self._scanned.append(number)
            if self._ocr.is_available and self._recognised < _MAX_OCR_PAGES:
                text = self._ocr.read(page.render(scale=_OCR_SCALE).to_pil())
                self._recognised += 1
        page.close()
        return text

    def check(self, count: int) -> None:
        """Raises the error of the last page if none of them could be read."""
        if self._error is not None and len(self._damaged) == count:
            raise self._error

    def notes(self) -> tuple[str, ...]:
        """What is missing, and how the text of scanned pages was made."""
        notes = _notes(self._scanned, self._recognised, self._ocr)
        if not self._damaged:
            return notes
        return (*notes, f"damaged and left out: pages {_listed(self._damaged)}")


def _titles(pdf: Any) -> dict[int, str]:
    """The first bookmark of each page. A broken table of contents counts as none."""
    from pypdfium2 import PdfiumError

    titles: dict[int, str] = {}
    try:
        for bookmark in islice(pdf.get_toc(max_depth=3), _MAX_BOOKMARKS):
            place = bookmark.get_dest()
            index = place.get_index() if place is not None else None
            if index is not None:
                titles.setdefault(index + 1, short_title(bookmark.get_title()))
    except PdfiumError:
        return {}
    return titles


def _notes(scanned: list[int], recognised: int, ocr: PageOcr) -> tuple[str, ...]:
    """What is missing from scanned pages, or how their text was made."""
    missing = scanned[recognised:]
    notes: list[str] = []
    if recognised:
        notes.append(
            f"the text of {recognised} scanned pages was recognised and may contain mistakes"
        )
    if missing:
        why = (
            f"only {_MAX_OCR_PAGES} are recognised at once; ask for these pages"
            if ocr.is_available
            else ocr.missing
        )
        notes.append(f"no text of the scanned pages {_listed(missing)}: {why}")
    return tuple(notes)


def _listed(pages: list[int]) -> str:
    return ", ".join(map(str, pages[:10])) + (" ..." if len(pages) > 10 else "")


def _real_title(title: str) -> str:
    """The title, unless it is a placeholder that a program wrote."""
    if title.lower() in ("", "untitled", "(anonymous)"):
        return ""
    return title[:200]


def _has_picture(page: Any) -> bool:
    from pypdfium2.raw import FPDF_PAGEOBJ_IMAGE

    return any(True for _ in page.get_objects(filter=[FPDF_PAGEOBJ_IMAGE], max_depth=3))


def _page_text(page: Any) -> str:
    textpage = page.get_textpage()
    try:
        return "\n".join(_blocks(list(_lines(textpage))))
    finally:
        textpage.close()


def _lines(textpage: Any) -> Iterator[_Line]:
    """The runs of text on a page, joined into lines. Runs of one line are cells if the gap between them is wide."""
    line: _Line | None = None
    for index in range(textpage.count_rects()):
        left, bottom, right, top = textpage.get_rect(index)
        text = textpage.get_text_bounded(left, bottom, right, top)
        text = " ".join(text.split())
        if not text:
            continue
        if (
            line is not None
            and _is_same_line(line, bottom, top)
            and left >= line.cells[-1].left
        ):
            _add(line, _Cell(left, right, text))
            line.top, line.bottom = max(line.top, top), min(line.bottom, bottom)
            continue
        if line is not None:
            yield line
        line = _Line(top, bottom, [_Cell(left, right, text)])
    if line is not None:
        yield line


def _is_same_line(line: _Line, bottom: float, top: float) -> bool:
    overlap = min(line.top, top) - max(line.bottom, bottom)
    return overlap > 0.5 * min(line.top - line.bottom, top - bottom)


def _add(line: _Line, cell: _Cell) -> None:
    last = line.cells[-1]
    height = max(line.top - line.bottom, 1.0)
    gap = cell.left - last.right
    if gap > _CELL_GAP_EMS * height:
        line.cells.append(cell)
        return
    space = " " if gap > 0.1 * height else ""
    line.cells[-1] = _Cell(last.left, cell.right, f"{last.text}{space}{cell.text}")


def _blocks(lines: list[_Line]) -> Iterator[str]:
    """Lines as text. Lines whose cells are aligned with each other become a table."""
    at = 0
    while at < len(lines):
        rows = list(_table_rows(lines[at:]))
        if len(rows) > 1:
            yield markdown_table([[cell.text for cell in row.cells] for row in rows])
            at += len(rows)
            continue
        yield "  ".join(cell.text for cell in lines[at].cells)
        at += 1


def _table_rows(lines: Iterable[_Line]) -> Iterator[_Line]:
    first: _Line | None = None
    for line in lines:
        if len(line.cells) < 2:
            return
        if first is not None and not _is_aligned(first, line):
            return
        first = first or line
        yield line


def _is_aligned(first: _Line, line: _Line) -> bool:
    """Whether each cell begins or ends where the one above it does."""
    if len(first.cells) != len(line.cells):
        return False
    return all(
        abs(above.left - below.left) < _ALIGNED_POINTS
        or abs(above.right - below.right) < _ALIGNED_POINTS
        or (above.left <= below.right and below.left <= above.right)
        for above, below in zip(first.cells, line.cells, strict=True)
    )

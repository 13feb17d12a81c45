"""A document as text: its parts (pages, sheets, slides, chapters) in order, and where each begins."""

from collections.abc import Iterator
from typing import Literal, TypeAlias

import msgspec

DocumentKind: TypeAlias = Literal[
    "pdf",
    "docx",
    "xlsx",
    "pptx",
    "epub",
    "html",
    "email",
    "notebook",
    "archive",
    "picture",
]
MAX_TEXT_CHARACTERS = 20_000_000
_MAX_CONTENTS_ENTRIES = 40
_MAX_TITLE_CHARACTERS = 60
_WITH_HEADINGS: tuple[DocumentKind, ...] = ("docx", "html")
_KIND_LABELS: dict[DocumentKind, str] = {
    "pdf": "PDF",
    "docx": "Word document",
    "xlsx": "Excel workbook",
    "pptx": "PowerPoint presentation",
    "epub": "EPUB book",
    "html": "web page",
    "email": "e-mail",
    "notebook": "notebook",
    "archive": "archive",
    "picture": "picture",
}


class PageRange(msgspec.Struct, frozen=True):
    """Which parts of a document are wanted, counted from 1; all parts after `first` if `last` is 0."""

    first: int = 1
    last: int = 0

    def __str__(self) -> str:
        if self.first == self.last:
            return str(self.first)
        return f"{self.first}-{self.last or ''}"


WHOLE = PageRange()


class DocumentPart(msgspec.Struct, frozen=True):
    """One page, sheet, slide or chapter. `name` is what a person would call it: `page 3`, `sheet Sales`; `title` is the
    heading that it has in a table of contents."""

    name: str
    text: str
    title: str = ""


class Document(msgspec.Struct, frozen=True):
    """The text of a document.

    `notes` say what is missing from it, and why. `total` is the number of all its parts, if `parts` has only some of
    them.
    """

    kind: DocumentKind
    parts: tuple[DocumentPart, ...]
    title: str = ""
    notes: tuple[str, ...] = ()
    total: int = 0

    @property
    def label(self) -> str:
        """Describes the document: `PDF "Annual report", 12 pages`."""
        title = f' "{self.title}"' if self.title else ""
        return f"{_KIND_LABELS[self.kind]}{title}{self._size()}"

    def text(self, names: bool = True) -> str:
        """All parts, each under its name if there are several."""
        if len(self.parts) == 1 or not names:
            return "\n".join(part.text for part in self.parts)
        return "\n".join(f"--- {part.name} ---\n{part.text}" for part in self.parts)

    def contents(self) -> str:
        """A table of contents: the line at which each part begins, or each heading of a single part; at most 40."""
        entries = list(self._headings() if len(self.parts) == 1 else self._begins())
        step = -(-len(entries) // _MAX_CONTENTS_ENTRIES) or 1
        return "; ".join(entries[::step]) if len(entries) > 1 else ""

    def count_text(self) -> str:
        """The number of parts: `12 pages`; empty if there is only one."""
        count = self.total or len(self.parts)
        if count < 2:
            return ""
        unit = self.parts[0].name.split(" ", 1)[0] if self.parts else "page"
        return f"{count} {unit}s"

    def _begins(self) -> Iterator[str]:
        """The line at which each part begins; only those with a title, if there are any."""
        has_titles = any(part.title for part in self.parts)
        line = 1
        for part in self.parts:
            title = f" ({part.title})" if part.title else ""
            if part.title or not has_titles:
                yield f"{part.name}{title}: line {line}"
            line += 2 + part.text.count("\n")

    def _headings(self) -> Iterator[str]:
        """The lines of the headings of the only part."""
        if self.kind not in _WITH_HEADINGS:
            return
        for number, line in enumerate(self.parts[0].text.split("\n"), 1):
            marks, _, title = line.partition(" ")
            if title and marks.strip("#") == "" and 0 < len(marks) <= 3:
                yield f"{short_title(title)}: line {number}"

    def _size(self) -> str:
        count = self.count_text()
        return f", {count}" if count else ""


def short_title(text: str) -> str:
    """A heading as one short line of a table of contents."""
    line = " ".join(text.split())
    is_long = len(line) > _MAX_TITLE_CHARACTERS
    return f"{line[: _MAX_TITLE_CHARACTERS - 1]}…" if is_long else line


def markdown_table(rows: list[list[str]]) -> str:
    """A table in Markdown; the first row is its header."""
    width = max(len(row) for row in rows)
    lines = [_table_row([*row, *[""] * (width - len(row))]) for row in rows]
    lines.insert(1, "|" + " --- |" * width)
    return "\n".join(lines)


def _table_row(cells: list[str]) -> str:
    escaped = (" ".join(cell.split()).replace("|", "\\|") for cell in cells)
    return f"| {' | '.join(escaped)} |"

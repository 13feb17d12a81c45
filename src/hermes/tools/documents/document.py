"""A document as text: its parts (pages, sheets, slides, chapters) in order, and where each begins."""

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


class DocumentPart(msgspec.Struct, frozen=True):
    """One page, sheet, slide or chapter. `name` is what a person would call it: `page 3`, `sheet Sales`."""

    name: str
    text: str


class Document(msgspec.Struct, frozen=True):
    """The text of a document. `notes` say what is missing from it, and why."""

    kind: DocumentKind
    parts: tuple[DocumentPart, ...]
    title: str = ""
    notes: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """What this is, in words: `PDF "Annual report", 12 pages`."""
        title = f' "{self.title}"' if self.title else ""
        return f"{_KIND_LABELS[self.kind]}{title}{self._size()}"

    def text(self, names: bool = True) -> str:
        """All parts, each below its name unless there is only one."""
        if len(self.parts) == 1 or not names:
            return "\n".join(part.text for part in self.parts)
        return "\n".join(f"--- {part.name} ---\n{part.text}" for part in self.parts)

    def contents(self) -> str:
        """The line at which each part begins, so that a reader can go there; at most 40 of them."""
        if len(self.parts) < 2:
            return ""
        lines: list[str] = []
        line = 1
        for part in self.parts:
            lines.append(f"{part.name}: line {line}")
            line += 2 + part.text.count("\n")
        step = -(-len(lines) // _MAX_CONTENTS_ENTRIES)
        return "; ".join(lines[::step])

    def _size(self) -> str:
        if len(self.parts) < 2:
            return ""
        unit = self.parts[0].name.split(" ", 1)[0]
        return f", {len(self.parts)} {unit}s"


def markdown_table(rows: list[list[str]]) -> str:
    """A table in Markdown; the first row is its header."""
    width = max(len(row) for row in rows)
    lines = [_table_row([*row, *[""] * (width - len(row))]) for row in rows]
    lines.insert(1, "|" + " --- |" * width)
    return "\n".join(lines)


def _table_row(cells: list[str]) -> str:
    escaped = (" ".join(cell.split()).replace("|", "\\|") for cell in cells)
    return f"| {' | '.join(escaped)} |"

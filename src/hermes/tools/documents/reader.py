"""Starts the process that reads a document, waits for it within limits, and keeps the last few results."""

import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

import msgspec

from hermes.children.own_python import module_command
from hermes.errors import ToolFailed
from hermes.primitives.recent import RecentDict
from hermes.tools.documents.document import Document, DocumentKind
from hermes.tools.documents.extract import (
    MAX_CPU_S,
    ExtractedDocument,
    ExtractionProblem,
)
from hermes.tools.documents.kinds import (
    START_BYTES,
    document_kind,
    is_locked_office,
    old_office_format,
)
from hermes.tools.files.read_window import FileWindow, open_regular, text_window
from hermes.tools.sandbox.confined_run import ConfinedProgram, run_confined
from hermes.tools.sandbox.session_tmp import TemporaryFolder

MAX_DOCUMENT_BYTES = 200 * 1024**2
_MAX_OUTPUT_BYTES = 100 * 1024**2
_TIMEOUT_S = MAX_CPU_S + 60.0
_KEPT_DOCUMENTS = 8
_RESULT = msgspec.json.Decoder(ExtractedDocument | ExtractionProblem)


class ShownPart(msgspec.Struct, frozen=True):
    """The lines of a document that were asked for, and what to say about all of it."""

    window: FileWindow
    remarks: str


class ShownPages(msgspec.Struct, frozen=True):
    """The text of some pages, and what to say about the document. `contents` is where each part of all of it begins."""

    label: str
    text: str
    contents: str


class DocumentReader:
    """Reads documents for the tools of one session, and for attachments."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._known: RecentDict[tuple[str, int, int], Document] = RecentDict(
            _KEPT_DOCUMENTS
        )
        self._lock = threading.Lock()

    def kind(self, name: str, file: BinaryIO) -> DocumentKind | None:
        """Which kind of document an open file is; None if it is none.

        Raises ToolFailed for an Office file in an old format or with a password.
        """
        start = file.read(START_BYTES)
        file.seek(0)
        if old := old_office_format(name, start):
            raise ToolFailed(
                f"{name} is in the old {old} format, which Hermes can't read.",
                hint="Save it in the current format (.docx, .xlsx, .pptx) first,"
                " for example with `soffice --convert-to`.",
            )
        if is_locked_office(name, start):
            raise ToolFailed(
                f"{name} can't be read: it is protected by a password.",
                hint="Save a copy without the password, and use that.",
            )
        return document_kind(name, start)

    def read(self, name: str, file: BinaryIO, kind: DocumentKind) -> Document:
        """The text of a document. Raises ToolFailed if it can't be read."""
        status = os.fstat(file.fileno())
        if status.st_size > MAX_DOCUMENT_BYTES:
            raise ToolFailed(
                f"{name} is larger than {MAX_DOCUMENT_BYTES // 1024**2} MB."
            )
        key = (str(Path(name)), status.st_ino, status.st_mtime_ns)
        with self._lock:
            known = self._known.get(key)
        if known is not None:
            return known
        result = self._extracted(name, file, kind)
        if isinstance(result, ExtractionProblem):
            raise ToolFailed(
                f"{name} can't be read: {result.message}.", hint=result.hint
            )
        with self._lock:
            self._known[key] = result.document
        return result.document

    def _extracted(
        self, name: str, file: BinaryIO, kind: DocumentKind
    ) -> ExtractedDocument | ExtractionProblem:
        output = self._run(file, kind)
        try:
            return _RESULT.decode(output)
        except msgspec.DecodeError:
            raise ToolFailed(
                f"{name} can't be read: its reader stopped.",
                hint="The file is too large, too complex or damaged."
                " Another program may still be able to open it.",
            ) from None

    def _run(self, file: BinaryIO, kind: DocumentKind) -> bytes:
        temporary = TemporaryFolder()
        program = ConfinedProgram(
            argv=module_command("hermes.tools.documents.extract", kind),
            environment=self._environment,
            timeout_s=_TIMEOUT_S,
            max_output_bytes=_MAX_OUTPUT_BYTES,
        )
        try:
            return run_confined(program, temporary.path(), file.fileno()).data
        except OSError as error:
            raise ToolFailed(
                f"The reader of documents could not start: {error}."
            ) from error
        finally:
            temporary.close()


def read_part(
    reader: DocumentReader, name: str, path: Path, offset: int, limit: int
) -> ShownPart | None:
    """Lines of a document; None if the file is no document. Raises OSError, or ToolFailed if it can't be read."""
    with open_regular(path) as file:
        kind = reader.kind(path.name, file)
        if kind is None:
            return None
        document = reader.read(name, file, kind)
        window = text_window(
            document.text() or "(no text)", offset, limit, os.fstat(file.fileno())
        )
    remarks = [document.label, *document.notes]
    is_all = window.first == 1 and window.last == window.total
    if not is_all and (contents := document.contents()):
        remarks.append(f"contents: {contents}")
    return ShownPart(window, "".join(f"; {remark}" for remark in remarks))


def read_pages(
    reader: DocumentReader,
    path: Path,
    first: int,
    last: int,
    kind: DocumentKind | None = None,
) -> ShownPages | None:
    """Some parts of a document, all from `first` on if `last` is 0; None if the file is no document.

    `kind` is for files that are documents only by choice, such as HTML.
    """
    with open_regular(path) as file:
        kind = kind or reader.kind(path.name, file)
        if kind is None:
            return None
        document = reader.read(path.name, file, kind)
    chosen = document.parts[max(first, 1) - 1 : last or None]
    if not chosen:
        raise ToolFailed(f"{path.name} has only {len(document.parts)} parts.")
    text = msgspec.structs.replace(document, parts=chosen).text()
    label = "; ".join((document.label, *document.notes))
    if len(chosen) < len(document.parts):
        label = f"{label}; {chosen[0].name} to {chosen[-1].name}"
    return ShownPages(label, text, document.contents())

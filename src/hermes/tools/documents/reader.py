"""Starts the process that reads a document, waits for it within limits, and keeps the last few results."""

import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

import msgspec

from hermes.children.own_python import module_command
from hermes.errors import MediaError, MediaErrorKind, ToolFailed, os_reason
from hermes.primitives.lazy_pattern import lazy_pattern
from hermes.primitives.recent import RecentDict
from hermes.text.translation import translator
from hermes.tools.documents.document import WHOLE, Document, DocumentKind, PageRange
from hermes.tools.documents.extract import (
    ExtractedDocument,
    ExtractionProblem,
    ExtractionTask,
)
from hermes.tools.documents.kinds import (
    START_BYTES,
    document_kind,
    is_locked_office,
    old_office_format,
)
from hermes.tools.documents.limits import ReaderLimits
from hermes.tools.files.read_window import FileWindow, open_regular, text_window
from hermes.tools.sandbox.confined_run import ConfinedProgram, run_confined
from hermes.tools.sandbox.session_tmp import TemporaryFolder

t = translator(__name__)

MAX_DOCUMENT_BYTES = 200 * 1024**2
SENSE = "documents"
_MAX_OUTPUT_BYTES = 100 * 1024**2
_WAITING_S = 60.0  # for the CPU, beside the CPU time itself
_NO_LIMITS_GIVEN = ReaderLimits()
_KEPT_DOCUMENTS = 8
_PAGES = lazy_pattern(r"(\d{1,9})\s*(?:(-)\s*(\d{1,9})?)?")
_RESULT = msgspec.json.Decoder(ExtractedDocument | ExtractionProblem)


class ShownPart(msgspec.Struct, frozen=True):
    """The requested lines of a document, and a note about the whole of it."""

    window: FileWindow
    remarks: str


class ShownPages(msgspec.Struct, frozen=True):
    """The text of some pages, and a note about the document. `contents` is where each of its parts begins."""

    label: str
    text: str
    contents: str


class DocumentReader:
    """Reads documents for the tools of one session, and for attachments. Its errors are MediaErrors."""

    def __init__(
        self, environment: Mapping[str, str], limits: ReaderLimits = _NO_LIMITS_GIVEN
    ) -> None:
        self._environment = environment
        self._limits = limits
        self._known: RecentDict[tuple[str, int, int, PageRange], Document] = RecentDict(
            _KEPT_DOCUMENTS
        )
        self._lock = threading.Lock()

    def kind(self, name: str, file: BinaryIO) -> DocumentKind | None:
        """The kind of an open file; None if it is not a document.

        Raises MediaError for an Office file in an old format or with a password.
        """
        start = file.read(START_BYTES)
        file.seek(0)
        if old := old_office_format(name, start):
            raise MediaError(
                MediaErrorKind.NOT_SUPPORTED,
                t.later(
                    "{name} is in the old {old} format, which Hermes can't read.",
                    name=name,
                    old=old,
                ),
                sense=SENSE,
                hint=t.later(
                    "Save it in the current format (.docx, .xlsx, .pptx) first, for example with `soffice --convert-to`."
                ),
            )
        if is_locked_office(name, start):
            raise _unreadable(
                name,
                ExtractionProblem(
                    "it is protected by a password",
                    "Save a copy without the password, and use that.",
                    MediaErrorKind.REFUSED,
                ),
            )
        return document_kind(name, start)

    def read(
        self, name: str, file: BinaryIO, kind: DocumentKind, pages: PageRange = WHOLE
    ) -> Document:
        """The text of a document, or of some pages of a PDF. Raises MediaError if it can't be read."""
        status = os.fstat(file.fileno())
        if status.st_size > MAX_DOCUMENT_BYTES:
            raise MediaError(
                MediaErrorKind.TOO_LARGE,
                t.later(
                    "{name} is larger than {megabytes} MB.",
                    name=name,
                    megabytes=MAX_DOCUMENT_BYTES // 1024**2,
                ),
                sense=SENSE,
            )
        read = pages if kind == "pdf" else WHOLE
        key = (str(Path(name)), status.st_ino, status.st_mtime_ns, read)
        with self._lock:
            known = self._known.get(key)
        if known is not None:
            return known
        task = ExtractionTask(kind=kind, pages=read, limits=self._limits)
        result = self._extracted(name, file, task)
        if isinstance(result, ExtractionProblem):
            raise _unreadable(name, result)
        with self._lock:
            self._known[key] = result.document
        return result.document

    def _extracted(
        self, name: str, file: BinaryIO, task: ExtractionTask
    ) -> ExtractedDocument | ExtractionProblem:
        output = self._run(file, task)
        try:
            return _RESULT.decode(output)
        except msgspec.DecodeError:
            problem = ExtractionProblem(
                "its reader stopped",
                "The file is too large, too complex or damaged."
                " Another program may still be able to open it.",
                MediaErrorKind.TOO_LARGE,
            )
            raise _unreadable(name, problem) from None

    def _run(self, file: BinaryIO, task: ExtractionTask) -> bytes:
        temporary = TemporaryFolder()
        encoded = msgspec.json.encode(task).decode()
        program = ConfinedProgram(
            argv=module_command("hermes.tools.documents.extract", encoded),
            environment=self._environment,
            timeout_s=task.limits.cpu_s + _WAITING_S,
            max_output_bytes=_MAX_OUTPUT_BYTES,
        )
        try:
            return run_confined(program, temporary.path(), file.fileno()).data
        except OSError as error:
            raise MediaError(
                MediaErrorKind.NOT_CONFIGURED,
                t.later(
                    "The reader of documents could not start: {os_reason}.",
                    os_reason=os_reason(error),
                ),
                sense=SENSE,
            ) from error
        finally:
            temporary.close()


def _unreadable(name: str, problem: ExtractionProblem) -> MediaError:
    return MediaError(
        problem.kind,
        t.later(
            "{name} can't be read: {os_reason}.", name=name, os_reason=problem.message
        ),
        sense=SENSE,
        hint=problem.hint,
    )


def documents_off() -> MediaError:
    """The error for a document where the setting `media.documents` is `off`."""
    return MediaError(
        MediaErrorKind.NOT_CONFIGURED,
        t.later("Reading documents is turned off."),
        sense=SENSE,
        hint=t.later(
            "Turn it on with: hermes config set {setting} auto",
            setting="media.documents",
        ),
    )


def parse_pages(text: str) -> PageRange:
    """The pages that `3`, `3-5` or `3-` names; all for an empty text. Raises ToolFailed for anything else."""
    if not text.strip():
        return WHOLE
    found = _PAGES.fullmatch(text.strip())
    first = int(found[1]) if found else 0
    last = int(found[3] or 0) if found and found[2] else first
    if not first or (last and last < first):
        raise ToolFailed(
            f"pages: {text[:40]!r} names no pages.", hint="Such as 7, 3-5 or 3-."
        )
    return PageRange(first, last)


def read_part(
    reader: DocumentReader, name: str, path: Path, wanted: "WantedPart"
) -> ShownPart | None:
    """Lines of a document; None if the file is no document. Raises OSError, or MediaError if it can't be read."""
    with open_regular(path) as file:
        kind = wanted.kind or reader.kind(path.name, file)
        if kind is None:
            return None
        document = reader.read(name, file, kind, wanted.pages)
        status = os.fstat(file.fileno())
    shown = _chosen(document, name, wanted.pages)
    text = shown.text() or "(no text)"
    window = text_window(text, wanted.offset, wanted.limit, status)
    remarks = [document.label, *document.notes]
    is_all = window.first == 1 and window.last == window.total
    if wanted.pages != WHOLE:
        remarks.append(f"{shown.parts[0].name} to {shown.parts[-1].name}")
    elif not is_all and (contents := document.contents()):
        remarks.append(f"contents: {contents}")
        remarks += ["pages=3-5 shows pages"] if document.count_text() else []
    return ShownPart(window, "".join(f"; {remark}" for remark in remarks))


class WantedPart(msgspec.Struct, frozen=True, kw_only=True):
    """Which lines of which pages of a document to show."""

    offset: int
    limit: int
    pages: PageRange = WHOLE
    kind: DocumentKind | None = None
    """For files that are shown as documents only on request, such as HTML."""


def read_pages(
    reader: DocumentReader,
    path: Path,
    pages: PageRange = WHOLE,
    kind: DocumentKind | None = None,
) -> ShownPages | None:
    """Some parts of a document; None if the file is not one.

    `kind` is for files that are shown as documents only on request, such as HTML.
    """
    with open_regular(path) as file:
        kind = kind or reader.kind(path.name, file)
        if kind is None:
            return None
        document = reader.read(path.name, file, kind, pages)
    shown = _chosen(document, path.name, pages)
    label = "; ".join((document.label, *document.notes))
    if pages != WHOLE:
        label = f"{label}; {shown.parts[0].name} to {shown.parts[-1].name}"
    return ShownPages(label, shown.text(), document.contents())


def _chosen(document: Document, name: str, pages: PageRange) -> Document:
    """The document with these parts only. Raises ToolFailed if it has none of them."""
    if pages == WHOLE:
        return document
    chosen = document.parts
    if document.kind != "pdf":  # only these pages were read
        chosen = chosen[pages.first - 1 : pages.last or None]
    if not chosen:
        raise ToolFailed(f"{name} has only {document.count_text() or '1 page'}.")
    return msgspec.structs.replace(document, parts=chosen)

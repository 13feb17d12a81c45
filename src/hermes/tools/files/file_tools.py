"""`read_file`, `write_file`, `edit_file`: the user's files, as text.

What a call shows or writes is recorded; an edit of a file that has changed since is refused.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeAlias

from msgspec import Meta

from hermes.core.ports import ToolContext
from hermes.errors import ToolFailed
from hermes.schema.tool_spec import ToolResult
from hermes.tools.documents.kinds import (
    is_document,
    is_in_repository,
    is_recording,
    is_web_page,
)
from hermes.tools.escapes import spelled_out
from hermes.tools.files.file_content import (
    UNCHANGED,
    Content,
    decoded,
    encoded,
    read_content,
    recoded,
    require_editable,
    unreadable,
    unwritable,
)
from hermes.tools.files.file_stamps import FileStamps, Stamp
from hermes.tools.files.open_buffers import (
    OpenBuffers,
    buffered_content,
    unsaved_data,
)
from hermes.tools.files.read_window import (
    MAX_LINES,
    FileWindow,
    NotText,
    bytes_window,
    read_window,
    text_window,
)
from hermes.tools.process.long_output import OutputFolder
from hermes.tools.tool import judged, tool

if TYPE_CHECKING:
    from hermes.tools.documents.document import DocumentKind
    from hermes.tools.documents.reader import DocumentReader

Listen: TypeAlias = Callable[[Path], str]
"""Transcribes a recording; blocks. Raises ToolFailed if that is not possible."""

_DOCUMENTS_OF_TEXT: "dict[str, DocumentKind]" = {".ipynb": "notebook", ".eml": "email"}
"""Text files that nobody reads in their raw form."""


class _Part(NamedTuple):
    """The part of a file that a call of `read_file` asks for. `name` is the path as the model wrote it."""

    name: str
    file: Path
    offset: int
    limit: int
    pages: str


class FileTools:
    """The file tools of one session."""

    def __init__(
        self,
        seen: FileStamps | None = None,
        outputs: OutputFolder | None = None,
        environment: Mapping[str, str] = {},
        buffers: OpenBuffers | None = None,
        listen: Listen | None = None,
        *,
        reads_documents: bool = True,
    ) -> None:
        self.buffers = buffers
        self._reads_documents = reads_documents
        self._listen = listen
        self._seen = FileStamps() if seen is None else seen
        self._outputs = outputs
        self._environment = environment
        self._documents: DocumentReader | None = None
        self._sources: set[Path] = set()
        """Web pages whose source the session has read or written, so that it continues with the source."""
        self._seen.on_write(self._sources.add)

    @tool("read_file", effect="read", paths=("path",))
    def read_file(
        self,
        context: ToolContext,
        path: str,
        offset: Annotated[int, Meta(ge=1, description="First line.")] = 1,
        limit: Annotated[int, Meta(ge=1, le=MAX_LINES)] = MAX_LINES,
        pages: Annotated[str, Meta(description="Of a document: 3-5.")] = "",
        raw: bool = False,
    ) -> ToolResult:
        """Reads text, a document or a recording; at most 50 KB at once. Web pages outside a repository as text, unless
        raw."""
        file = judged(path, context)
        part = _Part(path, file, offset, limit, pages)
        if not raw and (kind := self._document_kind(part)):
            return self._read_document(part, kind=kind)
        try:
            window, is_unsaved = self._window(file, offset, limit)
        except NotText as error:
            if self._listen is not None and is_recording(file.name):
                return self._read_recording(path, file, offset, limit)
            return self._read_document(part, error)
        except OSError as error:
            raise unreadable(path, file, error) from error
        if pages and not raw:
            raise ToolFailed(f"{path} is text, without pages.", hint="Use offset.")
        self._seen.note(file, window.stamp)
        self._sources.add(file)
        if not window.text:
            return ToolResult(text=f"[{path}: empty file]")
        remarks = _remarks(window.text) + _columns(file, window)
        if is_unsaved:
            remarks += "; not saved yet, as the user's editor has it"
        if is_web_page(file.name) and not raw:
            remarks += "; source: pages=1 shows the text"
        source = self._outputs.source_of(file) if self._outputs else ""
        return ToolResult(text=_shown(path, window, remarks), source=source)

    def _document_kind(self, part: "_Part") -> "DocumentKind | None":
        """The kind of a text file that is shown as a document: a notebook, an e-mail, or a web page that is not source
        code."""
        if not self._reads_documents:
            return None
        kind = _DOCUMENTS_OF_TEXT.get(part.file.suffix.lower())
        if kind or not is_web_page(part.file.name):
            return kind
        from hermes.tools.documents.pages import can_read_html

        is_source = part.file in self._sources or is_in_repository(part.file)
        is_text = bool(part.pages) or not is_source
        return "html" if is_text and can_read_html() else None

    def _window(self, file: Path, offset: int, limit: int) -> tuple[FileWindow, bool]:
        """The lines, and whether they come from text that the user has not saved yet."""
        saved = read_content(file) if self.buffers is not None else None
        data = unsaved_data(self.buffers, file, saved.data) if saved else None
        if data is not None:
            return bytes_window(data, offset, limit, file.stat()), True
        return read_window(file, offset, limit), False

    def _read_recording(
        self, path: str, file: Path, offset: int, limit: int
    ) -> ToolResult:
        """Transcribes a recording. The text is fenced: the speaker may be anybody."""
        assert self._listen is not None  # noqa: S101 - asked before
        try:
            window = text_window(self._listen(file), offset, limit, file.stat())
        except OSError as error:
            raise unreadable(path, file, error) from error
        return ToolResult(
            text=_shown(path, window, "; what is said in it"), source=path
        )

    def _read_document(
        self,
        part: "_Part",
        not_text: NotText | None = None,
        kind: "DocumentKind | None" = None,
    ) -> ToolResult:
        """Reads a PDF, an Office document and so on as text. The text is fenced: its author may be anybody."""
        from hermes.tools.documents.reader import (
            DocumentReader,
            WantedPart,
            documents_off,
            parse_pages,
            read_part,
        )

        wanted = WantedPart(
            offset=part.offset,
            limit=part.limit,
            pages=parse_pages(part.pages),
            kind=kind,
        )
        if self._documents is None:
            self._documents = DocumentReader(self._environment)
        if not self._reads_documents and is_document(part.file):
            raise documents_off()
        try:
            shown = read_part(self._documents, part.name, part.file, wanted)
        except OSError as error:
            raise unreadable(part.name, part.file, error) from error
        if shown is None:
            raise not_text or ToolFailed(f"{part.name} is not text.")
        remarks = shown.remarks
        if kind:
            remarks += "; shown as text, raw=true shows the source"
        text = _shown(part.name, shown.window, remarks, part.pages)
        return ToolResult(text=text, source=part.name)

    def _check_write(
        self, arguments: Mapping[str, Any], paths: tuple[Path, ...], _: Path
    ) -> None:
        path, file = arguments["path"], paths[-1]
        try:
            old = buffered_content(file, self.buffers)
        except OSError as error:
            raise unwritable(path, error) from error
        if old is None:
            return
        self._check_current(path, file, old.stamp)
        if old.data == encoded(arguments["content"]):
            raise ToolFailed(
                f"{path} already has exactly this content.", hint=UNCHANGED
            )

    def _check_edit(
        self, arguments: Mapping[str, Any], paths: tuple[Path, ...], _: Path
    ) -> None:
        path, file = arguments["path"], paths[-1]
        try:
            old = self._editable(path, file)
        except OSError as error:
            raise unwritable(path, error) from error
        self._check_current(path, file, old.stamp)
        from hermes.tools.files.edit_match import plan_edit

        plan_edit(
            decoded(path, old.data),
            arguments["old_text"],
            arguments["new_text"],
            replace_all=arguments.get("replace_all") is True,
        )

    @tool("write_file", effect="files", paths=("path",), precheck=_check_write)
    def write_file(self, context: ToolContext, path: str, content: str) -> str:
        """Creates a file, or replaces all of it; missing directories are made. To change part of a file use
        edit_file."""
        from hermes.tools.files.batch_write import FileWrite, write_all

        file = judged(path, context)
        data = encoded(content)
        try:
            old = buffered_content(file, self.buffers)
            if old is not None:
                self._check_current(path, file, old.stamp)
            change = FileWrite(name=path, path=file, before=old, after=data)
            self._seen.wrote(file, write_all([change], self.buffers)[file])
        except OSError as error:
            raise unwritable(path, error) from error
        size = f"{_line_count(data):,} lines, {len(data):,} bytes"
        return (
            f"Created {path}: {size}."
            if old is None
            else f"Replaced {path}: {size} (before: {old.stamp.size:,} bytes)."
        )

    @tool("edit_file", effect="files", paths=("path",), precheck=_check_edit)
    def edit_file(
        self,
        context: ToolContext,
        path: str,
        old_text: Annotated[
            str,
            Meta(
                description="Copied exactly, with enough lines around it to be unique."
            ),
        ],
        new_text: str,
        replace_all: bool = False,
    ) -> str:
        """Replaces text in a file and shows the diff. The text must occur exactly once, unless replace_all."""
        from hermes.tools.files.batch_write import FileWrite, write_all
        from hermes.tools.files.diff import edit_diff
        from hermes.tools.files.edit_match import plan_edit

        file = judged(path, context)
        try:
            old = self._editable(path, file)
            self._check_current(path, file, old.stamp)
            edit = plan_edit(
                decoded(path, old.data), old_text, new_text, replace_all=replace_all
            )
            after = recoded(path, edit.before, edit.after)
            change = FileWrite(name=path, path=file, before=old, after=after)
            self._seen.wrote(file, write_all([change], self.buffers)[file])
        except OSError as error:
            raise unwritable(path, error) from error
        places = (
            f", {len(edit.replacements)} places" if len(edit.replacements) > 1 else ""
        )
        how = f" ({edit.how})" if edit.how else ""
        return f"Edited {path}{places}{how}:\n{edit_diff(edit)}"

    def _editable(self, path: str, file: Path) -> Content:
        return require_editable(path, file, buffered_content(file, self.buffers))

    def _check_current(self, path: str, file: Path, now: Stamp) -> None:
        if not self._seen.is_current(file, now):
            raise ToolFailed(
                f"{path} changed since you read it.",
                hint=f"{UNCHANGED} Read it again first.",
            )


def _shown(path: str, window: FileWindow, remarks: str, pages: str = "") -> str:
    """The lines below a header that says which they are, and above a note about the rest."""
    text = spelled_out(window.text)
    header = f"[{path}: lines {window.first}-{window.last} of {window.total}{remarks}]"
    more = window.total - window.last
    notes = [window.cut] if window.cut else []
    if more:
        same = f"pages={pages} and " if pages else ""
        notes.append(
            f"{more} more lines: read_file with {same}offset={window.last + 1}"
        )
    footer = f"[{'; '.join(notes)}]" if notes else ""
    ended = "" if text.endswith("\n") or not footer else "\n"
    return f"{header}\n{text}{ended}{footer}"


def _columns(file: Path, window: FileWindow) -> str:
    """The columns of a CSV file with their types, for the header of its first lines."""
    if window.first != 1 or file.suffix.lower() not in (".csv", ".tsv"):
        return ""
    from hermes.tools.documents.csv_columns import describe_columns

    return describe_columns(window.text)


def _remarks(text: str) -> str:
    """What a reader must know about the text but can't see in it."""
    remarks = ["not UTF-8, some bytes are shown as \ufffd"] if "\ufffd" in text else []
    if "\r\n" in text:
        remarks.append("CRLF line ends")
    if spelled_out(text) != text.replace("\r\n", "\n"):
        remarks.append("control characters are spelled out, like \\x1b")
    return "".join(f"; {remark}" for remark in remarks)


def _line_count(data: bytes) -> int:
    return data.count(b"\n") + (bool(data) and not data.endswith(b"\n"))

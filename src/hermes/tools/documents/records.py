"""Documents of the standard library's formats: e-mail, notebooks, archives."""

import email
import email.policy
import json
import tarfile
import zipfile
from collections.abc import Iterator
from email.message import EmailMessage
from io import BytesIO
from typing import IO, Any

from hermes.tools.documents.document import Document, DocumentPart
from hermes.tools.documents.limits import TimeBudget, TimedFile, TimeSpent
from hermes.tools.documents.pages import read_html

_HEADERS = ("From", "To", "Cc", "Date", "Subject")
_MAX_ENTRIES = 5_000
_MAX_OUTPUT_CHARACTERS = 4_000


def read_email(file: IO[bytes]) -> Document:
    """The headers that people read, the body, and the names of attachments. Messages that are attached are read too."""
    message = email.message_from_binary_file(file, policy=email.policy.default)
    messages = [message, *_attached_messages(message)]
    texts = [_message_text(one, messages) for one in messages]
    title = str(message["Subject"] or "").strip()
    if len(texts) == 1:
        return Document("email", (DocumentPart("message", texts[0]),), title)
    parts = tuple(
        DocumentPart(f"message {number}", text) for number, text in enumerate(texts, 1)
    )
    return Document("email", parts, title)


def _attached_messages(message: EmailMessage) -> Iterator[EmailMessage]:
    """The messages inside a message, at any depth."""
    for part in message.iter_attachments():
        if part.get_content_type() == "message/rfc822":
            inner = part.get_content()
            yield inner
            yield from _attached_messages(inner)


def _message_text(message: EmailMessage, messages: list[EmailMessage]) -> str:
    headers = [f"{name}: {message[name]}" for name in _HEADERS if message[name]]
    attachments = [
        _attachment_line(part, messages)
        for part in message.iter_attachments()
        if isinstance(part, EmailMessage)
    ]
    blocks = ["\n".join(headers), _body(message)]
    if attachments:
        blocks.append("Attachments:\n" + "\n".join(attachments))
    return "\n\n".join(blocks)


def _attachment_line(part: EmailMessage, messages: list[EmailMessage]) -> str:
    if part.get_content_type() == "message/rfc822":
        inner = part.get_content()
        number = next(n for n, one in enumerate(messages, 1) if one is inner)
        return f"- {inner['Subject'] or 'no subject'} (message {number})"
    name = part.get_filename() or "no name"
    return f"- {name} ({part.get_content_type()}, {len(_payload(part)):,} bytes)"


def _body(message: EmailMessage) -> str:
    body = message.get_body(preferencelist=("plain", "html"))
    if body is None:
        return "(no text)"
    data = _payload(body)
    if body.get_content_type() == "text/html":
        return read_html(BytesIO(data)).text()
    try:
        return data.decode(body.get_content_charset("utf-8"), "replace").strip()
    except LookupError:  # a charset that Python does not know
        return data.decode("utf-8", "replace").strip()


def _payload(part: Any) -> bytes:
    data = part.get_payload(decode=True)
    return data if isinstance(data, bytes) else b""


def read_notebook(file: IO[bytes]) -> Document:
    """The cells of a Jupyter notebook with the text of their outputs."""
    notebook = json.load(file)
    cells = notebook.get("cells") if isinstance(notebook, dict) else None
    if not isinstance(cells, list):
        raise ValueError("it has no cells")  # noqa: TRY004 - the content is wrong, not a type of ours
    language = notebook.get("metadata", {}).get("language_info", {}).get("name", "")
    parts = tuple(
        DocumentPart(
            f"cell {number} ({cell.get('cell_type', '?')})", _cell(cell, language)
        )
        for number, cell in enumerate(cells, 1)
    )
    return Document("notebook", parts)


def _cell(cell: dict[str, Any], language: str) -> str:
    source = _joined(cell.get("source"))
    if cell.get("cell_type") != "code":
        return source
    shown = [text for output in cell.get("outputs", ()) if (text := _output(output))]
    blocks = [f"```{language}\n{source}\n```"]
    blocks += [f"Output:\n{text[:_MAX_OUTPUT_CHARACTERS]}" for text in shown]
    return "\n".join(blocks)


def _output(output: dict[str, Any]) -> str:
    if output.get("output_type") == "error":
        return f"{output.get('ename')}: {output.get('evalue')}"
    data = output.get("data", {})
    text = _joined(output.get("text") or data.get("text/plain"))
    pictures = [kind for kind in data if kind.startswith("image/")]
    return "\n".join([text.rstrip(), *(f"[{kind}]" for kind in pictures)]).strip()


def _joined(source: Any) -> str:
    if isinstance(source, list):
        return "".join(map(str, source))
    return str(source or "")


def read_archive(file: IO[bytes], budget: TimeBudget) -> Document:
    """The names, sizes and dates of the files in a zip or tar archive. Archives in it are named, not opened."""
    if zipfile.is_zipfile(file):
        file.seek(0)
        entries = _zip_entries(file)
    else:
        file.seek(0)
        entries = _tar_entries(file, budget)
    lines: list[str] = []
    try:
        for line in entries:
            if len(lines) == _MAX_ENTRIES:
                lines.append(f"... only the first {_MAX_ENTRIES:,} entries are listed")
                break
            lines.append(line)
    except TimeSpent:
        lines.append("... reading stopped here: it took too long")
    return Document("archive", (DocumentPart("listing", "\n".join(lines)),))


def _zip_entries(file: IO[bytes]) -> Iterator[str]:
    with zipfile.ZipFile(file) as archive:
        for info in archive.infolist():
            year, month, day = info.date_time[:3]
            yield f"{info.file_size:>12,}  {year}-{month:02}-{day:02}  {info.filename}"


def _tar_entries(file: IO[bytes], budget: TimeBudget) -> Iterator[str]:
    from datetime import UTC, datetime

    timed: Any = TimedFile(file, budget)  # one entry may expand to terabytes
    with tarfile.open(fileobj=timed, mode="r|*") as archive:
        for info in archive:
            day = datetime.fromtimestamp(info.mtime, UTC).date()
            name = f"{info.name}/" if info.isdir() else info.name
            target = f" -> {info.linkname}" if info.issym() or info.islnk() else ""
            yield f"{info.size:>12,}  {day}  {name}{target}"

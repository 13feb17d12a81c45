"""Attachments of a message: the text of files named with `@`, and images. The same on every surface.

Of a document (PDF, Office, EPUB, e-mail) the text is attached; `@report.pdf#3-7` attaches only these pages. Of an
archive, the list of its files is attached; of a recording, its transcript; of a CSV file, also the types of its
columns. A long file, or one that may hold secrets, is only named; the model reads it with its tools, which ask. For a
person who is not at this machine, files outside the session's folder are only named too.
"""

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from hermes.errors import ToolFailed, UsageError, in_sentences, os_reason
from hermes.images.image_info import picture_type
from hermes.primitives.lazy_pattern import lazy_pattern
from hermes.schema.messages import Image
from hermes.settings.load import environment
from hermes.text.hidden_text import without_hidden
from hermes.text.translation import translator
from hermes.tools.documents.kinds import RECORDINGS, is_in_repository, is_web_page
from hermes.tools.sensitive import Guard, is_within

t = translator(__name__)


_MAX_INLINED_BYTES = 48 * 1024
_ALL_BYTES = 192 * 1024
_MAX_FOLDER_NAMES = 200
_CUT = "[cut here: read_file shows the rest]"
_NAMED = lazy_pattern(r"(?:^|(?<=\s))@(?:\"([^\"\n]+)\"|(\S+))")
_FILE = lazy_pattern(r"/|^[^@]*\.[A-Za-z0-9]{1,8}$")  # probably meant as a file
_PICTURES = frozenset(
    (
        ".png",
        ".jpg",
        ".jpeg",
        ".gif",
        ".webp",
        ".heic",
        ".heif",
        ".avif",
        ".tif",
        ".tiff",
        ".bmp",
    )
)
_TABLES = frozenset((".csv", ".tsv"))
_LONG_TABLE_LINES = 20
"""How many lines are attached of a table that is too long to be attached whole."""
_PAGES = lazy_pattern(
    r"(?<=\.pdf|doc[xm]|dotx|xls[xm]|ppt[xm]|ppsx|epub|pynb)#(\d+)(?:-(\d+))?$",
    re.IGNORECASE,
)
_SECRET = lazy_pattern(
    r"(^|[./_-])(env|secrets?|credentials?|id_[a-z0-9]+|netrc|pem|key|p12|pfx|kdbx)($|[./_-])",
    re.IGNORECASE,
)


class Attached(msgspec.Struct, frozen=True):
    """A message with its attachments. `left` says what was not attached, and why."""

    text: str
    images: tuple[Image, ...] = ()
    left: tuple[str, ...] = ()


class AttachmentFolder(msgspec.Struct, frozen=True):
    """Where names are looked up. `is_far` means that the writer is not at this machine, so only the folder counts."""

    folder: Path
    guard: Guard
    is_far: bool = False
    listen: "Callable[[Path], str] | None" = None
    """Transcribes a recording, or raises ToolFailed; without it, recordings are only named."""
    reads_documents: bool = True
    """Whether the text of documents is attached (`media.documents`)."""
    is_elsewhere: Callable[[str], bool] = lambda _: False
    """Whether a name means no file but something that is attached elsewhere, such as a resource of a server."""

    def place(self, name: str) -> Path:
        """The path of a file; `#3-7` after a document's name is not part of it."""
        return self.folder / Path(_PAGES.sub("", name)).expanduser()

    def has(self, name: str) -> bool:
        """Whether there is such a file. A person elsewhere learns nothing about files outside the folder."""
        try:
            return self._is_near(name) and self.place(name).exists()
        except (
            OSError,
            ValueError,
            RuntimeError,
        ):  # too long a name, one that no file can have, no such person
            return False

    def _is_near(self, name: str) -> bool:
        """Whether a file really lies inside the folder. A link may lead out of it."""
        return not self.is_far or is_within(
            self.place(name).resolve(), self.folder.resolve()
        )

    def reason(self, path: Path) -> str:
        """Why a file is only named; empty if it may be attached."""
        real = path.resolve()
        if self.guard.secret((path, real), self.folder):
            return t("it may hold secrets")
        if path.is_dir():
            return ""
        if _SECRET.search(path.name) or _SECRET.search(real.name):
            return t("it may hold secrets")
        if not path.is_file():
            return t("it is not a regular file")
        is_any_length = path.suffix.lower() in _PICTURES | RECORDINGS | _TABLES
        if is_any_length or is_web_page(path.name):
            return ""
        is_long = path.stat().st_size > _MAX_INLINED_BYTES
        return t("it is long") if is_long and not _is_document(path) else ""


def attach(text: str, shelf: AttachmentFolder) -> Attached:
    """Attaches what `@` names to the message. Reads files."""
    blocks: list[str] = []
    images: list[Image] = []
    left: list[str] = []
    room = _ALL_BYTES
    for name in dict.fromkeys(_names(text, shelf)):
        path = shelf.place(name)
        try:
            why = shelf.reason(path)
            block, picture = ("", ()) if why else _content(name, path, room, shelf)
        except (OSError, UsageError, ToolFailed) as error:
            left.append(
                t(
                    "Only the path of {name} is sent: {why}",
                    name=name,
                    why=_reason(error),
                )
            )
            continue
        room -= len(block)
        blocks += [block] if block else []
        images += picture
        if not block and not picture:
            why = why or t("it is not text, or there is too much already")
            left.append(
                t(
                    "Only the path of {name} is sent, not its content: {why}.",
                    name=name,
                    why=why,
                )
            )
    left += [
        t("There is no file {name} here; your message is sent unchanged.", name=name)
        for name in missing(text, shelf)
    ]
    return Attached(text + "".join(blocks), tuple(images), tuple(left))


def received_file(
    path: Path,
    *,
    alone: bool,
    listen: "Callable[[Path], str] | None" = None,
    reads_documents: bool = True,
) -> str:
    """What a message says about a file that came with it, on lines of their own: its text, if it is a document, a short
    text or, where somebody can listen, a recording; else its path. `alone`: nothing was written with it."""
    line = f"[file: {path}]"
    try:
        block = _received(path, listen, reads_documents=reads_documents)
    except (OSError, ToolFailed) as error:
        return f"{line}\n[its text can't be read: {_reason(error)}]"
    if not block:
        return line
    return line + block if alone else block.removeprefix("\n")


def may_name_recording(text: str) -> bool:
    """Whether a text, such as a message or a file's name, may name a recording."""
    low = text.lower()
    return any(suffix in low for suffix in RECORDINGS)


def uploaded_file(
    path: Path,
    *,
    listen: "Callable[[Path], str] | None" = None,
    reads_documents: bool = True,
) -> str:
    """The same as an attachment, which a page can fold away; for a file without text, its path."""
    try:
        block = _received(path, listen, reads_documents=reads_documents)
    except (OSError, ToolFailed) as error:
        return _block(str(path), f"[its text can't be read: {_reason(error)}]")
    size = path.stat().st_size
    return block or _block(str(path), f"[not text, {size:,} bytes, saved as {path}]")


def _received(
    path: Path, listen: "Callable[[Path], str] | None", *, reads_documents: bool
) -> str:
    """The block of a file that came with a message; empty if it is only named."""
    if not reads_documents:
        _require_no_document(path)
    block = _extracted(str(path), path, _MAX_INLINED_BYTES, listen, is_received=True)
    if block:
        return block
    data = path.read_bytes() if path.stat().st_size <= _MAX_INLINED_BYTES else b"\0"
    if b"\0" in data or _SECRET.search(path.name):
        return ""
    try:
        return _block(str(path), without_hidden(data.decode().rstrip("\n")))
    except UnicodeDecodeError:  # neither a document nor text
        return ""


def _reason(error: OSError | ToolFailed | UsageError) -> str:
    """Why a file was not read, and what to do."""
    if isinstance(error, OSError):
        return f"{os_reason(error)}."
    return in_sentences(error)


def missing(text: str, shelf: AttachmentFolder) -> list[str]:
    """The names after `@` that look like a file but are none."""
    found: list[str] = []
    for quoted, bare in _NAMED.findall(text):
        name = quoted or bare.rstrip(".,;:!?)]}'\"")
        if shelf.is_elsewhere(name):
            continue
        if (quoted or _FILE.search(name)) and not _names(f'@"{name}"', shelf):
            found.append(name)
    return list(dict.fromkeys(found))


def images_of(names: Sequence[str]) -> tuple[Image, ...]:
    """The images of those names. Raises UsageError for a file that is no image."""
    return tuple(_image(name) for name in names)


def _image(name: str) -> Image:
    path = Path(name).expanduser().absolute()
    try:
        with path.open("rb") as file:
            kind = picture_type(file.read(16))
    except OSError as error:
        raise UsageError(
            t.later(
                "The image can't be read: {path} ({error})",
                path=path,
                error=os_reason(error),
            )
        ) from error
    if not kind:
        raise UsageError(
            t.later("This is not an image: {path}", path=path),
            hint=t.later(
                "Hermes can send PNG, JPEG, GIF, WebP, HEIC, AVIF, TIFF and BMP images."
            ),
        )
    return Image(source=str(path), media_type=kind)


def _names(text: str, shelf: AttachmentFolder) -> list[str]:
    """The names after `@` that are files or folders. Punctuation at the end of a sentence may not be part of a name."""
    found: list[str] = []
    for quoted, bare in _NAMED.findall(text):
        for name in (quoted or bare, bare.rstrip(".,;:!?)]}'\"")):
            if name and shelf.has(name):
                found.append(name)
                break
    return found


def _content(
    name: str,
    path: Path,
    room: int,
    shelf: AttachmentFolder,
) -> tuple[str, tuple[Image, ...]]:
    """The block of a text file, or the image that a file is; neither if the file is only named."""
    if path.suffix.lower() in _PICTURES and not path.is_dir():
        return "", images_of([str(path)])
    if room <= 0:
        return "", ()
    if path.is_dir():
        names = sorted(
            f"{entry.name}/" if entry.is_dir() else entry.name
            for entry in path.iterdir()
        )
        more = (
            [f"... and {len(names) - _MAX_FOLDER_NAMES} more"]
            if len(names) > _MAX_FOLDER_NAMES
            else []
        )
        return _block(name, "\n".join(names[:_MAX_FOLDER_NAMES] + more)), ()
    if not shelf.reads_documents:
        _require_no_document(path)
    block = _extracted(name, path, min(room, _MAX_INLINED_BYTES), shelf.listen)
    if block:
        return block, ()
    data = path.read_bytes() if path.stat().st_size <= room else b"\0"
    if b"\0" in data:
        return "", ()
    return _block(
        name, without_hidden(data.decode("utf-8", "replace").rstrip("\n"))
    ), ()


def _extracted(
    name: str,
    path: Path,
    room: int,
    listen: "Callable[[Path], str] | None",
    *,
    is_received: bool = False,
) -> str:
    """The block of a recording, a document or a table; empty for any other file, and for a recording nobody listens to."""
    suffix = path.suffix.lower()
    if suffix in RECORDINGS:
        text = listen(path)[:room] if listen else ""
        return _block(name, f"[what is said in it]\n{text}") if text else ""
    is_page = _is_received_page(path) if is_received else _is_page_to_read(path)
    if is_page or _is_document(path):
        return _document(name, path, room)
    is_table = suffix in _TABLES and not _SECRET.search(path.name)
    return _table(name, path, room) if is_table else ""


def _require_no_document(path: Path) -> None:
    """Raises MediaError for a document, where they are not read."""
    from hermes.tools.documents.reader import documents_off

    if _is_document(path):
        raise documents_off()


def _is_document(path: Path) -> bool:
    from hermes.tools.documents.kinds import is_document

    return is_document(path)


def _is_received_page(path: Path) -> bool:
    """Whether a file is a web page that can be read. One that somebody sent is always attached as text."""
    from hermes.tools.documents.pages import can_read_html

    return is_web_page(path.name) and can_read_html()


def _is_page_to_read(path: Path) -> bool:
    """Whether a file of the user is a web page that is attached as text: any but the short source of a project."""
    if not _is_received_page(path):
        return False
    return path.stat().st_size > _MAX_INLINED_BYTES or not is_in_repository(path)


def _document(name: str, path: Path, room: int) -> str:
    """The block of a document: the pages that were asked for, or as many as there is room for."""
    from hermes.tools.documents.document import WHOLE, PageRange
    from hermes.tools.documents.reader import DocumentReader, read_pages

    found = _PAGES.search(name)
    wanted = PageRange(int(found[1]), int(found[2] or found[1])) if found else WHOLE
    kind = "html" if is_web_page(path.name) else None
    pages = read_pages(DocumentReader(environment()), path, wanted, kind)
    if pages is None:
        return ""
    text, label = without_hidden(pages.text), pages.label
    if kind:
        label = f"{label}; shown as text, read_file with raw=true shows the source"
    if len(text) > room:
        label = f"{label}; contents: {pages.contents}" if pages.contents else label
        text = f"{text[:room]}\n{_CUT}"
    return _block(name, f"[{label}]\n{text}")


def _table(name: str, path: Path, room: int) -> str:
    """The block of a CSV file: the types of its columns, then all of it or its first lines; empty if it is no text."""
    from hermes.tools.documents.csv_columns import describe_columns

    with path.open("rb") as file:
        data = file.read(room + 1)
    if b"\0" in data:
        return ""
    is_cut = len(data) > room
    whole_lines = data.rpartition(b"\n")[0] if is_cut else data.rstrip(b"\n")
    text = without_hidden(whole_lines.decode("utf-8", "replace"))
    columns = describe_columns(text).removeprefix("; ")
    if is_cut:
        text = "\n".join((*text.splitlines()[:_LONG_TABLE_LINES], _CUT))
    return _block(name, f"[{columns}]\n{text}" if columns else text)


def _block(name: str, text: str) -> str:
    """Escapes the content, so that nothing inside can end the block."""
    inside = text.replace("</attached", "<\\/attached")
    return f'\n\n<attached path="{name.replace(chr(34), "")}">\n{inside}\n</attached>'

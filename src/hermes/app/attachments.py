"""Attachments of a message: the text of files named with `@`, and images. The same on every surface.

A long file, or one that may hold secrets, is only named; the model reads it with its tools, which ask. For a person who
is not at this machine, files outside the session's folder are only named too.
"""

import re
from collections.abc import Sequence
from pathlib import Path

import msgspec

from hermes.errors import UsageError, os_reason
from hermes.images.image_info import media_type
from hermes.schema.messages import Image
from hermes.text.hidden_text import without_hidden
from hermes.tools.sensitive import Guard, is_within

_MAX_BYTES = 48 * 1024
_ALL_BYTES = 192 * 1024
_MAX_FOLDER_NAMES = 200
_NAMED = re.compile(r"(?:^|(?<=\s))@(?:\"([^\"\n]+)\"|(\S+))")
_FILE = re.compile(r"/|^[^@]*\.[A-Za-z0-9]{1,8}$")  # probably meant as a file
_BLOCK = re.compile(
    r"\n\n<(attached path|skill name|ran command|command name)=\"[^\n]*\">\n.*?\n</(?:attached|skill|ran|command)>",
    re.DOTALL,
)
_PICTURES = frozenset((".png", ".jpg", ".jpeg", ".gif", ".webp"))
_SECRET = re.compile(
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

    def place(self, name: str) -> Path:
        return self.folder / Path(name).expanduser()

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
            return "it may hold secrets"
        if path.is_dir():
            return ""
        if _SECRET.search(path.name) or _SECRET.search(real.name):
            return "it may hold secrets"
        if not path.is_file():
            return "it is not a regular file"
        is_long = (
            path.suffix.lower() not in _PICTURES and path.stat().st_size > _MAX_BYTES
        )
        return "it is long" if is_long else ""


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
            block, picture = ("", ()) if why else _content(name, path, room)
        except (OSError, UsageError) as error:
            left.append(
                f"Only the path of {name} is sent: {getattr(error, 'message', None) or error}"
            )
            continue
        room -= len(block)
        blocks += [block] if block else []
        images += picture
        if not block and not picture:
            why = why or "it is not text, or there is too much already"
            left.append(f"Only the path of {name} is sent, not its content: {why}.")
    left += [
        f"There is no file {name} here; your message is sent unchanged."
        for name in missing(text, shelf)
    ]
    return Attached(text + "".join(blocks), tuple(images), tuple(left))


def typed_part(text: str) -> str:
    """The part of a message that the person typed, without attachments."""
    return _BLOCK.sub("", text)


def missing(text: str, shelf: AttachmentFolder) -> list[str]:
    """The names after `@` that look like a file but are none."""
    found: list[str] = []
    for quoted, bare in _NAMED.findall(text):
        name = quoted or bare.rstrip(".,;:!?)]}'\"")
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
            kind = media_type(file.read(16))
    except OSError as error:
        raise UsageError(
            f"The image can't be read: {path} ({os_reason(error)})"
        ) from error
    if not kind:
        raise UsageError(
            f"This is not an image: {path}",
            hint="A model can see PNG, JPEG, GIF and WebP images.",
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


def _content(name: str, path: Path, room: int) -> tuple[str, tuple[Image, ...]]:
    """The block of a text file, or the image that a file is; neither if the file is only named."""
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
    if path.suffix.lower() in _PICTURES:
        return "", images_of([str(path)])
    data = path.read_bytes() if path.stat().st_size <= room else b"\0"
    if b"\0" in data:
        return "", ()
    return _block(
        name, without_hidden(data.decode("utf-8", "replace").rstrip("\n"))
    ), ()


def _block(name: str, text: str) -> str:
    """Escapes the content, so that nothing inside can end the block."""
    inside = text.replace("</attached", "<\\/attached")
    return f'\n\n<attached path="{name.replace(chr(34), "")}">\n{inside}\n</attached>'

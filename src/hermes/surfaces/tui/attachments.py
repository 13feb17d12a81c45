"""`@file` in a message: the file's text goes along with it, so that the model has it at once; a picture as a picture.

A long file, a folder or one that may hold secrets is only named: the model reads it with its tools, which ask.
"""

import re
from pathlib import Path

import msgspec

from hermes.errors import UsageError
from hermes.schema.messages import Image
from hermes.surfaces.terminal.images import images_of

_MAX_BYTES = 48 * 1024
_ALL_BYTES = 192 * 1024
_NAMES = 200
_NAMED = re.compile(r"(?:^|(?<=\s))@(?:\"([^\"\n]+)\"|(\S+))")
_FILE = re.compile(r"/|^[^@]*\.[A-Za-z0-9]{1,8}$")  # what is probably meant as one
_BLOCK = re.compile(r"\n\n<(attached path|skill name)=\"[^\n]*\">\n.*?\n</(?:attached|skill)>", re.DOTALL)
_SECRET = re.compile(
    r"(^|[./_-])(env|secrets?|credentials?|id_[a-z0-9]+|netrc|pem|key|p12|pfx|kdbx)($|[./_-])", re.IGNORECASE
)


class Attached(msgspec.Struct, frozen=True):
    """A message with what it names; `left` says what was not taken along, and why."""

    text: str
    images: tuple[Image, ...] = ()
    left: tuple[str, ...] = ()


def attach(text: str, folder: Path) -> Attached:
    """Adds what `@` names to the message. Reads files."""
    blocks: list[str] = []
    images: list[Image] = []
    left: list[str] = []
    used = 0
    for name in dict.fromkeys(_names(text, folder)):
        path = _place(name, folder)
        try:
            block, picture = _content(name, path, _ALL_BYTES - used)
        except (OSError, UsageError) as error:
            left.append(f"{name} is only named: {getattr(error, 'message', None) or error}")
            continue
        used += len(block)
        blocks += [block] if block else []
        images += picture
        if not block and not picture:
            left.append(f"{name} is only named, its content is not sent: {_reason(path)}.")
    left += [f"There is no {name} here; your words are sent as they are." for name in missing(text, folder)]
    return Attached(text + "".join(blocks), tuple(images), tuple(left))


def typed_part(text: str) -> str:
    """A message without what was attached to it: what the person typed."""
    return _BLOCK.sub("", text)


def missing(text: str, folder: Path) -> list[str]:
    """The names behind `@` that look like a file, and are none."""
    found: list[str] = []
    for quoted, bare in _NAMED.findall(text):
        name = quoted or bare.rstrip(".,;:!?)]}'\"")
        if (quoted or _FILE.search(name)) and not _names(f'@"{name}"', folder):
            found.append(name)
    return list(dict.fromkeys(found))


def _names(text: str, folder: Path) -> list[str]:
    """The names behind `@` that are files or folders; a sign at the end of a sentence may not belong to it."""
    found: list[str] = []
    for quoted, bare in _NAMED.findall(text):
        for name in (quoted or bare, bare.rstrip(".,;:!?)]}'\"")):
            if name and _exists(_place(name, folder)):
                found.append(name)
                break
    return found


def _place(name: str, folder: Path) -> Path:
    return folder / Path(name).expanduser()


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # too long a name
        return False


def _content(name: str, path: Path, room: int) -> tuple[str, tuple[Image, ...]]:
    """The block for a file and the picture it is; neither when it is only to be named."""
    if path.is_dir():
        names = sorted(f"{entry.name}/" if entry.is_dir() else entry.name for entry in path.iterdir())
        more = [f"... and {len(names) - _NAMES} more"] if len(names) > _NAMES else []
        return _block(name, "\n".join(names[:_NAMES] + more)), ()
    if path.suffix.lower() in {".png", ".jpg", ".jpeg", ".gif", ".webp"}:
        return "", images_of([str(path)])
    if _SECRET.search(path.name) or not path.is_file() or path.stat().st_size > min(_MAX_BYTES, room):
        return "", ()
    data = path.read_bytes()
    if b"\0" in data:
        return "", ()
    return _block(name, data.decode("utf-8", "replace").rstrip("\n")), ()


def _block(name: str, text: str) -> str:
    """Nothing inside can end the block."""
    inside = text.replace("</attached", "<\\/attached")
    return f'\n\n<attached path="{name.replace(chr(34), "")}">\n{inside}\n</attached>'


def _reason(path: Path) -> str:
    if _SECRET.search(path.name):
        return "it may hold secrets"
    if not path.is_file():
        return "it is no ordinary file"
    return "it is long" if path.stat().st_size > _MAX_BYTES else "it is not text, or there is too much already"

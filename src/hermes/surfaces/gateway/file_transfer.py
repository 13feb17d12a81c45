"""Files both ways. What comes in is kept in the session's folder under a name of ours; what goes out is what a reply
links to, if it lies in that folder, holds no secret and is not too large."""

import hashlib
import mimetypes
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

from hermes.core.image_info import media_type
from hermes.primitives.files import replace_file
from hermes.schema.messages import Image
from hermes.surfaces.gateway.adapter import Attachment, FileKind, OutgoingFile
from hermes.tools.sensitive import is_secret

_LINK = re.compile(
    r"!?\[[^\]\n]*\]\(\s*<?(?P<target>[^)>\n]+?)>?(?:\s+\"[^\"\n]*\")?\s*\)"
)
_MOST = 10  # files of one reply
_KINDS: dict[str, FileKind] = {"image": "image", "audio": "audio", "video": "video"}
_SHOWN = frozenset(("image/png", "image/jpeg", "image/gif", "image/webp"))
_UNSAFE = re.compile(r"[^\w.\-]+")


def keep_file(
    work: Path, attachment: Attachment, data: bytes
) -> tuple[Path, Image | None]:
    """Writes what came in below the session's folder; the picture, if it is one that a model can be shown."""
    folder = work / "inbox"
    folder.mkdir(parents=True, exist_ok=True)
    seen = media_type(data[:32])
    named = _UNSAFE.sub(
        "_", PurePosixPath(attachment.name.replace("\\", "/")).name
    ).strip("._")[-80:]
    ending = mimetypes.guess_extension(seen or attachment.media_type) or ""
    name = named or f"{attachment.kind}{ending}"
    path = folder / f"{hashlib.sha256(data).hexdigest()[:16]}-{name}"
    if not path.exists():
        replace_file(path, data, durable=False, alone=False)
    return path, Image(source=str(path), media_type=seen) if seen in _SHOWN else None


def outgoing_files(text: str, folder: Path, most: int) -> tuple[OutgoingFile, ...]:
    """The files that a reply links to and that may be sent."""
    if most <= 0 or "](" not in text:
        return ()
    found = dict.fromkeys(
        path
        for target in _targets(text)
        if (path := _inside(target, folder)) is not None
    )
    fits = [
        path
        for path in found
        if not is_secret(path) and 0 < path.stat().st_size <= most
    ]
    return tuple(_outgoing(path) for path in fits[:_MOST])


def _targets(text: str) -> Iterator[str]:
    for match in _LINK.finditer(text):
        target = match["target"].strip().removeprefix("file://")
        if "://" not in target and not target.startswith(("#", "mailto:")):
            yield unquote(target)


def _inside(target: str, folder: Path) -> Path | None:
    """The file, if it is a plain one inside the folder: links are followed first."""
    try:
        path = (folder / target).resolve(strict=True)
        return (
            path if path.is_file() and path.is_relative_to(folder.resolve()) else None
        )
    except (OSError, ValueError):
        return None


def _outgoing(path: Path) -> OutgoingFile:
    with path.open("rb") as file:
        seen = media_type(file.read(32))
    kind = seen or mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    return OutgoingFile(
        path, path.name, kind, _KINDS.get(kind.partition("/")[0], "file")
    )

"""Files of chats: attachments that came in, and files that a reply links to.

An attachment is stored in the session's folder. A linked file is sent if it lies in that
folder, holds no secret and is not too large.
"""

import hashlib
import mimetypes
import re
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

from hermes.images.image_info import media_type
from hermes.primitives.files import replace_file
from hermes.providers.http_client import Http, HttpTimeouts, TransportFailure
from hermes.schema.messages import Image
from hermes.surfaces.gateway.adapter import (
    Attachment,
    DeliveryRefused,
    OutgoingFile,
    Unreachable,
    file_kind,
)
from hermes.tools.sensitive import is_secret

_LINK = re.compile(
    r"!?\[[^\]\n]*\]\(\s*<?(?P<target>[^)>\n]+?)>?(?:\s+\"[^\"\n]*\")?\s*\)"
)
_MAX_FILES_PER_REPLY = 10
_MAX_FILE_NAME_CHARACTERS = 80
_IDLE_DOWNLOAD_TIMEOUT_S = 30.0
_IMAGES = frozenset(("image/png", "image/jpeg", "image/gif", "image/webp"))
_UNSAFE = re.compile(r"[^\w.\-]+")
_HEADERS = {"user-agent": "hermes", "accept": "*/*", "accept-encoding": "identity"}


async def download(
    http: Http, address: str, max_bytes: int, headers: Mapping[str, str] = {}
) -> bytes:
    """The content of an attachment. No error contains the address: it may hold a secret."""
    timeouts = HttpTimeouts(idle=_IDLE_DOWNLOAD_TIMEOUT_S)
    try:
        async with await http.send(
            "GET", address, {**_HEADERS, **headers}, b"", timeouts
        ) as reply:
            if reply.status != 200:
                raise DeliveryRefused(
                    f"The platform refused the download ({reply.status})."
                )
            data = await reply.read_all(max_bytes + 1)
    except TransportFailure as failure:
        raise Unreachable(f"It could not be downloaded ({failure.phase}).") from None
    if len(data) > max_bytes:
        raise DeliveryRefused(f"It has more than {max_bytes:,} bytes.")
    return data


def store_attachment(
    work: Path, attachment: Attachment, data: bytes
) -> tuple[Path, Image | None]:
    """Writes an attachment below the session's folder; also an image, if a model can see it."""
    folder = work / "inbox"
    folder.mkdir(parents=True, exist_ok=True)
    found_type = media_type(data[:32])
    given_name = PurePosixPath(attachment.name.replace("\\", "/")).name
    name = _UNSAFE.sub("_", given_name).strip("._")[-_MAX_FILE_NAME_CHARACTERS:]
    if not name:
        kind = found_type or attachment.media_type
        name = f"{attachment.kind}{mimetypes.guess_extension(kind) or ''}"
    path = folder / f"{hashlib.sha256(data).hexdigest()[:16]}-{name}"
    if not path.exists():
        replace_file(path, data, durable=False, alone=False)
    if found_type not in _IMAGES:
        return path, None
    return path, Image(source=str(path), media_type=found_type)


def linked_files(text: str, folder: Path, max_bytes: int) -> tuple[OutgoingFile, ...]:
    """The files that a reply links to and that may be sent."""
    if max_bytes <= 0 or "](" not in text:
        return ()
    paths = dict.fromkeys(
        path
        for target in _link_targets(text)
        if (path := _file_inside(target, folder)) is not None
    )
    sendable = [
        path
        for path in paths
        if not is_secret(path) and 0 < path.stat().st_size <= max_bytes
    ]
    return tuple(_outgoing(path) for path in sendable[:_MAX_FILES_PER_REPLY])


def _link_targets(text: str) -> Iterator[str]:
    for match in _LINK.finditer(text):
        target = match["target"].strip().removeprefix("file://")
        if "://" not in target and not target.startswith(("#", "mailto:")):
            yield unquote(target)


def _file_inside(target: str, folder: Path) -> Path | None:
    """The file, if it is a regular one inside the folder; symbolic links are followed first."""
    try:
        path = (folder / target).resolve(strict=True)
        is_inside = path.is_relative_to(folder.resolve())
        return path if is_inside and path.is_file() else None
    except (OSError, ValueError):
        return None


def _outgoing(path: Path) -> OutgoingFile:
    with path.open("rb") as file:
        found_type = media_type(file.read(32))
    guessed = mimetypes.guess_type(path.name)[0]
    kind = found_type or guessed or "application/octet-stream"
    return OutgoingFile(path, path.name, kind, file_kind(kind))

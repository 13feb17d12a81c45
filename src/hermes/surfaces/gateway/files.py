"""Files of chats: attachments that came in, files that a reply links to, and pictures that were made.

An attachment is stored in the session's folder. A linked file is sent if it lies in that
folder, holds no secret and is not too large.
"""

import hashlib
import mimetypes
import re
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

from hermes.images.image_info import media_type, picture_type
from hermes.primitives.files import replace_file
from hermes.providers.http_client import Http, HttpTimeouts, TransportFailure
from hermes.schema.messages import Image, ToolFinished
from hermes.surfaces.gateway.adapter import (
    Attachment,
    DeliveryRefused,
    OutgoingFile,
    Unreachable,
    file_kind,
)
from hermes.text.translation import translator
from hermes.tools.sensitive import is_secret

t = translator(__name__)

_LINK = re.compile(
    r"!?\[[^\]\n]*\]\(\s*<?(?P<target>[^)>\n]+?)>?(?:\s+\"[^\"\n]*\")?\s*\)"
)
_MAX_FILES_PER_REPLY = 10
_MAX_FILE_NAME_CHARACTERS = 80
_IDLE_DOWNLOAD_TIMEOUT_S = 30.0
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
                    t.logged(
                        "The platform refused the download ({status}).",
                        status=reply.status,
                    )
                )
            data = await reply.read_all(max_bytes + 1)
    except TransportFailure as failure:
        raise Unreachable(
            t.logged("It could not be downloaded ({reason}).", reason=failure.phase)
        ) from None
    if len(data) > max_bytes:
        raise DeliveryRefused(
            t.logged("It has more than {size} bytes.", size=f"{max_bytes:,}")
        )
    return data


def store_attachment(
    work: Path, attachment: Attachment, data: bytes
) -> tuple[Path, Image | None]:
    """Writes an attachment below the session's folder; also an image, if a model can see it."""
    folder = work / "inbox"
    folder.mkdir(parents=True, exist_ok=True)
    found_type = picture_type(data[:32])
    given_name = PurePosixPath(attachment.name.replace("\\", "/")).name
    name = _UNSAFE.sub("_", given_name).strip("._")[-_MAX_FILE_NAME_CHARACTERS:]
    if not name:
        kind = found_type or attachment.media_type
        name = f"{attachment.kind}{mimetypes.guess_extension(kind) or ''}"
    path = folder / f"{hashlib.sha256(data).hexdigest()[:16]}-{name}"
    if not path.exists():
        replace_file(path, data, durable=False, alone=False)
    if not found_type:
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
    return tuple(outgoing_file(path) for path in sendable[:_MAX_FILES_PER_REPLY])


def made_files(
    made: ToolFinished, folder: Path, max_bytes: int
) -> tuple[OutgoingFile, ...]:
    """The pictures that `image_generate` made, from the session's own folder for them."""
    paths = [
        path
        for image in made.images
        if (path := _file_inside(image.source, folder)) is not None
    ]
    return tuple(
        outgoing_file(path) for path in paths if 0 < path.stat().st_size <= max_bytes
    )


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


def outgoing_file(path: Path, name: str = "") -> OutgoingFile:
    """A file as a platform is given it. `name` is what it is called there."""
    name = name or path.name
    with path.open("rb") as file:
        found_type = media_type(file.read(32))
    guessed = mimetypes.guess_type(name)[0]
    kind = found_type or guessed or "application/octet-stream"
    return OutgoingFile(path, name, kind, file_kind(kind))

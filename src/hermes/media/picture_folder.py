"""Pictures that were shown or made: read within limits, converted if no model accepts their format, and stored.

A picture that was shown is stored as it was: if the file changes later, the earlier conversation must not change.
"""

import os
from pathlib import Path

import msgspec

from hermes.errors import MediaError, MediaErrorKind, os_reason
from hermes.images.image_info import convertible_type, media_type, pixel_size
from hermes.images.image_resize import ImageLimits, NotShrunk, converted, fits, shrunk
from hermes.primitives.files import make_private_folder, replace_file
from hermes.schema.messages import Image
from hermes.text.translation import translator
from hermes.tools.files.file_content import unreadable
from hermes.tools.files.read_window import open_regular

t = translator(__name__)

SENSE = "vision"
MAX_PICTURE_BYTES = 50_000_000
"""The maximum size of a picture that is read."""
KEPT = ImageLimits(5_000_000, 8_000)
"""The maximum size of a picture that is stored unchanged; larger ones are reduced."""
SUFFIXES = {
    "image/png": ".png",
    "image/jpeg": ".jpg",
    "image/gif": ".gif",
    "image/webp": ".webp",
}
_SHRINK = t.later(
    "Make a smaller copy first, for example: magick IN -resize 1600x1600 OUT.png"
)


class KeptPicture(msgspec.Struct, frozen=True):
    """A picture in the folder, and a description of the original: `png, 4 x 3, 70 bytes`."""

    image: Image
    label: str


class PictureFolder:
    """Stores pictures under names derived from their content. The folder is created on first use."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def keep(self, name: str, data: bytes) -> KeptPicture:
        """Stores a picture, reduced or converted if needed. Raises MediaError if it is not a picture."""
        if len(data) > MAX_PICTURE_BYTES:
            raise too_large(name, len(data))
        kind = media_type(data[:16])
        if not kind and convertible_type(data[:16]):
            return self._keep_converted(name, data)
        if not kind:
            raise MediaError(
                MediaErrorKind.NOT_SUPPORTED,
                t.later("{name} is not a picture that can be shown.", name=name),
                sense=SENSE,
                hint=t.later("Use PNG, JPEG, GIF, WebP, HEIC, AVIF, TIFF or BMP."),
            )
        size = pixel_size(data)
        if size is None:
            raise MediaError(
                MediaErrorKind.NOT_SUPPORTED,
                t.later(
                    "{name} is damaged: its size in pixels can't be read.", name=name
                ),
                sense=SENSE,
            )
        label = f"{_short(kind)}, {size.width} x {size.height}, {len(data):,} bytes"
        if not fits(data, KEPT):
            data = _shrunk(name, data)
            kind, small = media_type(data[:16]), pixel_size(data) or size
            label += f"; shown at {small.width} x {small.height}"
        return KeptPicture(self.write(data, kind), label)

    def _keep_converted(self, name: str, data: bytes) -> KeptPicture:
        original = _short(convertible_type(data[:16]))
        try:
            shown = converted(data, KEPT)
        except NotShrunk as error:
            raise MediaError(
                MediaErrorKind.NOT_SUPPORTED,
                f"{name}: {error.message}",
                sense=SENSE,
                hint=error.hint or t.later("Save a copy of it as PNG or JPEG."),
            ) from error
        kind, size = media_type(shown[:16]), pixel_size(shown)
        pixels = f", {size.width} x {size.height}" if size else ""
        label = f"{original}{pixels}, {len(data):,} bytes; shown as {_short(kind)}"  # not translated
        return KeptPicture(self.write(shown, kind), label)

    def write(self, data: bytes, kind: str, name: str = "") -> Image:
        """Writes a picture in a format that models accept, unchanged. The file's name begins with `name`."""
        import hashlib

        digest = hashlib.sha256(data).hexdigest()
        stem = f"{name}-{digest[:8]}" if name else digest[:32]
        path = self._path / f"{stem}{SUFFIXES[kind]}"
        try:
            if not path.exists():
                make_private_folder(self._path)
                replace_file(path, data, durable=True, alone=False)
        except OSError as error:
            raise MediaError(
                MediaErrorKind.REFUSED,
                t.later(
                    "The picture can't be saved in {path}: {os_reason}.",
                    path=self._path,
                    os_reason=os_reason(error),
                ),
                sense=SENSE,
            ) from error
        return Image(source=str(path), media_type=kind)


def read_picture(name: str, file: Path) -> bytes:
    """Returns the content of a picture file. Raises ToolFailed if it can't be read or is too large."""
    try:
        with open_regular(file) as handle:
            length = os.fstat(handle.fileno()).st_size
            if length > MAX_PICTURE_BYTES:
                raise too_large(name, length)
            return handle.read(MAX_PICTURE_BYTES + 1)
    except OSError as error:
        raise unreadable(name, file, error) from error


def too_large(name: str, size: int) -> MediaError:
    """Returns the error for a picture with too many bytes."""
    return MediaError(
        MediaErrorKind.TOO_LARGE,
        t.later(
            "{name} has {size:,} bytes; at most {max_picture_bytes:,} can be shown.",
            name=name,
            size=size,
            max_picture_bytes=MAX_PICTURE_BYTES,
        ),
        sense=SENSE,
        hint=_SHRINK,
    )


def _shrunk(name: str, data: bytes) -> bytes:
    try:
        return shrunk(data, KEPT)
    except NotShrunk as error:
        raise MediaError(
            MediaErrorKind.TOO_LARGE,
            f"{name}: {error.message}",
            sense=SENSE,
            hint=error.hint or _SHRINK,
        ) from error


def _short(kind: str) -> str:
    return kind.removeprefix("image/")

"""`view_image`: a picture from a file into the conversation.

A picture that was shown is kept as it was: a file that is drawn again later must not change what was said before.
"""

import os
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from hermes.core.ports import ToolContext
from hermes.errors import ToolFailed, os_reason
from hermes.images.image_info import Size, media_type, pixel_size
from hermes.images.image_resize import ImageLimits, NotShrunk, fits, shrunk
from hermes.primitives.files import make_private_folder, replace_file
from hermes.schema.messages import Image
from hermes.schema.tool_spec import ToolResult
from hermes.tools.files.file_content import unreadable
from hermes.tools.files.read_window import open_regular
from hermes.tools.tool import judged, tool

MAX_PICTURE_BYTES = 50_000_000
"""The largest picture that is read."""
KEPT = ImageLimits(5_000_000, 8_000)
"""The largest picture that is kept as it is; larger ones are made smaller."""
_SHRINK = "Make a smaller copy first, for example: magick IN -resize 1600x1600 OUT.png"
_ENDINGS = {
    "image/png": ".png",
    "image/jpeg": ".jpg",
    "image/gif": ".gif",
    "image/webp": ".webp",
}


class Pictures:
    """`view_image`, with the folder where shown pictures are kept. It is made on first use."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @tool("view_image", effect="read", paths=("path",))
    def view_image(
        self,
        context: ToolContext,
        path: Annotated[str, Meta(description="PNG, JPEG, GIF or WebP.")],
    ) -> ToolResult:
        """Shows you a picture from a file."""
        file = judged(path, context)
        try:
            with open_regular(file) as handle:
                length = os.fstat(handle.fileno()).st_size
                data = handle.read(MAX_PICTURE_BYTES + 1)
        except OSError as error:
            raise unreadable(path, file, error) from error
        kind = media_type(data[:16])
        if not kind:
            raise ToolFailed(
                f"{path} is not a picture that can be shown.",
                hint="Use PNG, JPEG, GIF or WebP.",
            )
        size = _checked(path, data, max(length, len(data)))
        what = f"{kind.removeprefix('image/')}, {size.width} x {size.height}, {len(data):,} bytes"
        if not fits(data, KEPT):
            data = _smaller(path, data)
            kind, small = media_type(data[:16]), pixel_size(data) or size
            what += f"; shown at {small.width} x {small.height}"
        image = Image(source=str(self._save_copy(data, kind)), media_type=kind)
        return ToolResult(text=f"[{path}: {what}]", images=(image,))

    def _save_copy(self, data: bytes, kind: str) -> Path:
        """A copy that stays as it is, named by its content."""
        import hashlib

        path = self._folder / f"{hashlib.sha256(data).hexdigest()[:32]}{_ENDINGS[kind]}"
        try:
            if not path.exists():
                make_private_folder(self._folder)
                replace_file(path, data, durable=False, alone=False)
        except OSError as error:
            reason = os_reason(error)
            raise ToolFailed(
                f"The picture can't be saved in {self._folder}: {reason}."
            ) from error
        return path


def _checked(path: str, data: bytes, length: int) -> Size:
    if length > MAX_PICTURE_BYTES:
        raise ToolFailed(
            f"{path} has {length:,} bytes; at most {MAX_PICTURE_BYTES:,} can be shown.",
            hint=_SHRINK,
        )
    size = pixel_size(data)
    if size is None:
        raise ToolFailed(f"{path} is damaged: its size in pixels can't be read.")
    return size


def _smaller(path: str, data: bytes) -> bytes:
    try:
        return shrunk(data, KEPT)
    except NotShrunk as error:
        raise ToolFailed(
            f"{path}: {error.message}", hint=error.hint or _SHRINK
        ) from error

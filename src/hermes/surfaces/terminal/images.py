"""Pictures named on the command line: checked before anything is asked."""

from collections.abc import Sequence
from pathlib import Path

from hermes.errors import UsageError
from hermes.schema.messages import Image

_KINDS = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
)


def images_of(names: Sequence[str]) -> tuple[Image, ...]:
    """The pictures by those names. Raises UsageError for a file that is none."""
    return tuple(_image(name) for name in names)


def _image(name: str) -> Image:
    path = Path(name).expanduser().absolute()
    try:
        with path.open("rb") as file:
            head = file.read(16)
    except OSError as error:
        raise UsageError(f"The picture can't be read: {path} ({(error.strerror or '').lower()})") from error
    kind = next((kind for magic, kind in _KINDS if head.startswith(magic)), "")
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        kind = "image/webp"
    if not kind:
        raise UsageError(f"That is no picture: {path}", hint="PNG, JPEG, GIF and WebP can be shown to a model.")
    return Image(source=str(path), media_type=kind)

"""Pictures that are too large for a provider are made smaller. The parts that decode them are optional: Pillow, and
pi-heif for the photos of phones (HEIC)."""

import io
import struct
import warnings
from typing import TYPE_CHECKING

import msgspec

from hermes.errors import HermesError
from hermes.images.image_info import convertible_type, media_type, pixel_size
from hermes.text.install_words import install_hint

if TYPE_CHECKING:
    from PIL.Image import Image

_MOST_PIXELS = 80_000_000  # more is not decoded: a small file can unfold to any size
_MAX_ROUNDS = 12


class NotShrunk(HermesError):
    """The picture is too large and can't be made smaller here."""


class ImageLimits(msgspec.Struct, frozen=True):
    """The largest picture that somebody takes: bytes, and pixels of the longest side."""

    bytes: int
    side: int


def fits(data: bytes, limits: ImageLimits) -> bool:
    """Whether a picture can be sent as it is. One whose size can't be read is judged by its bytes."""
    size = pixel_size(data)
    return len(data) <= limits.bytes and (
        size is None or max(size.width, size.height) <= limits.side
    )


def shrunk(data: bytes, limits: ImageLimits) -> bytes:
    """The picture as large as it may be: PNG stays PNG while that is small enough, else it becomes JPEG.

    The same picture always gives the same bytes. Raises NotShrunk.
    """
    size = pixel_size(data)
    if size is None:
        raise NotShrunk("the picture is damaged: its size in pixels can't be read.")
    what = f"the picture is too large ({len(data):,} bytes, {size.width} x {size.height} pixels)"  # not translated
    _require_few(size.width * size.height, what)
    as_png = media_type(data[:16]) == "image/png"
    broken = f"{what}, and can't be decoded"  # not translated
    return _encoded_within(data, limits, (what, broken), as_png=as_png)


def converted(data: bytes, limits: ImageLimits) -> bytes:
    """A picture in a format that providers don't take (TIFF, AVIF, BMP, HEIC) as PNG or JPEG.

    Raises NotShrunk.
    """
    kind = convertible_type(data[:16]).removeprefix("image/").upper()
    what = f"the picture is {kind}, which models don't take"  # not translated
    if kind == "HEIC":
        _require_heic(what)
    words = (
        f"the picture ({kind}) is too large",
        f"{what}, and can't be decoded",
    )  # not translated
    return _encoded_within(data, limits, words, as_png=kind != "HEIC")


def _require_heic(what: str) -> None:
    """Lets Pillow read HEIC. Raises NotShrunk where that library is not installed."""
    try:
        from pi_heif import register_heif_opener
    except ImportError as error:
        raise NotShrunk(
            f"{what}.",
            hint=f"Send it as JPEG, or let Hermes convert it. {install_hint('images')}",
        ) from error
    register_heif_opener()


def _encoded_within(
    data: bytes, limits: ImageLimits, words: tuple[str, str], *, as_png: bool
) -> bytes:
    """Decodes a picture and encodes it within the limits. `words` are for one too large and for one that is broken."""
    what, broken = words
    try:
        from PIL import Image as pillow  # noqa: N813
    except ImportError as error:
        raise NotShrunk(
            f"{what}.",
            hint=f"Make a smaller copy as PNG, or let Hermes do that. {install_hint('images')}",
        ) from error
    try:
        with (
            warnings.catch_warnings(action="ignore"),
            pillow.open(io.BytesIO(data)) as picture,
        ):
            _require_few(
                picture.width * picture.height, what
            )  # the frames of a GIF may be larger than it says
            picture.draft(
                "RGB", (limits.side, limits.side)
            )  # a JPEG is decoded at a fraction of its size
            return _fitted(_upright(picture), limits, as_png=as_png)
    except (OSError, ValueError, SyntaxError, pillow.DecompressionBombError) as error:
        reason = str(error).partition(" <_io")[0]  # Pillow names the object it read
        raise NotShrunk(f"{broken}: {reason}.") from error


def _require_few(pixels: int, what: str) -> None:
    if pixels > _MOST_PIXELS:
        raise NotShrunk(
            f"{what} to be made smaller here.", hint="Make a smaller copy of it first."
        )


def _upright(picture: "Image") -> "Image":
    """Turned as its notes say; as it is when those are damaged."""
    from PIL import ImageOps

    try:
        return ImageOps.exif_transpose(picture)
    except (struct.error, TypeError):
        return picture


def _fitted(picture: "Image", limits: ImageLimits, *, as_png: bool) -> bytes:
    picture = picture.convert(
        "RGBA" if "A" in picture.getbands() or "transparency" in picture.info else "RGB"
    )
    picture.thumbnail((limits.side, limits.side))
    if as_png and len(data := _encoded(picture, "PNG")) <= limits.bytes:
        return data
    plain = _on_white(picture)
    for _ in range(_MAX_ROUNDS):
        if len(data := _encoded(plain, "JPEG")) <= limits.bytes:
            return data
        plain = plain.resize(
            (max(1, plain.width * 3 // 4), max(1, plain.height * 3 // 4))
        )
    raise NotShrunk(
        "the picture can't be made small enough.",
        hint="Make a smaller copy of it first.",
    )


def _on_white(picture: "Image") -> "Image":
    """JPEG knows no transparency."""
    if picture.mode != "RGBA":
        return picture
    from PIL import Image as pillow  # noqa: N813

    paper = pillow.new("RGB", picture.size, "white")
    paper.paste(picture, mask=picture.getchannel("A"))
    return paper


def _encoded(picture: "Image", kind: str) -> bytes:
    place = io.BytesIO()
    picture.save(
        place, kind, **({"quality": 85} if kind == "JPEG" else {"compress_level": 6})
    )
    return place.getvalue()

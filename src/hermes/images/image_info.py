"""What is known of a picture from its first bytes: its kind, and its size in pixels. Pure."""

import struct

import msgspec

_SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)
_BRANDS = {
    b"avif": "image/avif",
    b"avis": "image/avif",
    b"heic": "image/heic",
    b"heix": "image/heic",
    b"heif": "image/heic",
    b"mif1": "image/heic",
}
_CONVERTIBLE = (
    (b"II*\0", "image/tiff"),
    (b"MM\0*", "image/tiff"),
    (b"BM", "image/bmp"),
)
_NO_FRAME = frozenset((0xC4, 0xC8, 0xCC))
"""JPEG markers between C0 and CF that do not begin a frame."""


class Size(msgspec.Struct, frozen=True):
    """Width and height in pixels."""

    width: int
    height: int


def media_type(head: bytes) -> str:
    """The kind of picture that begins with these bytes (16 are enough); empty for anything else."""
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    return next(
        (kind for signature, kind in _SIGNATURES if head.startswith(signature)), ""
    )


def convertible_type(head: bytes) -> str:
    """The kind of a picture that no provider takes but that can be converted (16 bytes are enough); else empty."""
    if head[4:8] == b"ftyp":
        return _BRANDS.get(head[8:12], "")
    return next(
        (kind for signature, kind in _CONVERTIBLE if head.startswith(signature)), ""
    )


def picture_type(head: bytes) -> str:
    """The kind of any picture that can be sent, as it is or converted (16 bytes are enough); else empty."""
    return media_type(head) or convertible_type(head)


def pixel_size(data: bytes) -> Size | None:
    """The size of a picture; None if it is damaged."""
    readers = {
        "image/png": _png,
        "image/gif": _gif,
        "image/jpeg": _jpeg,
        "image/webp": _webp,
    }
    reader = readers.get(media_type(data[:16]))
    try:
        size = reader(data) if reader else None
    except (struct.error, IndexError):  # it ends too early
        return None
    return size if size and size.width and size.height else None


def _png(data: bytes) -> Size | None:
    return (
        Size(*struct.unpack_from(">II", data, 16)) if data[12:16] == b"IHDR" else None
    )


def _gif(data: bytes) -> Size:
    return Size(*struct.unpack_from("<HH", data, 6))


def _jpeg(data: bytes) -> Size | None:
    place = 2
    while place < len(data):
        if data[place] != 0xFF:
            return None
        marker = data[place + 1]
        if marker == 0xFF:  # filling
            place += 1
        elif 0xC0 <= marker <= 0xCF and marker not in _NO_FRAME:
            height, width = struct.unpack_from(">HH", data, place + 5)
            return Size(width, height)
        else:
            place += 2 + int(struct.unpack_from(">H", data, place + 2)[0])
    return None


def _webp(data: bytes) -> Size | None:
    kind = data[12:16]
    if kind == b"VP8 ":
        width, height = struct.unpack_from("<HH", data, 26)
        return Size(width & 0x3FFF, height & 0x3FFF)
    if kind == b"VP8L":
        (bits,) = struct.unpack_from("<I", data, 21)
        return Size((bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1)
    if kind == b"VP8X":
        width, height = (
            int.from_bytes(data[place : place + 3], "little") + 1 for place in (24, 27)
        )
        return Size(width, height) if len(data) >= 30 else None
    return None

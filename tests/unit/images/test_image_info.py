"""What a picture's first bytes tell."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.images.image_info import Size, media_type, pixel_size

JPEG = (
    b"\xff\xd8\xff\xe0\x00\x04ab\xff\xff\xc4\x00\x02\xff\xc2\x00\x11\x08"
    + struct.pack(">HH", 30, 40)
    + bytes(12)
)
WEBP = b"RIFF\0\0\0\0WEBP"


@pytest.mark.parametrize(
    ("data", "kind", "size"),
    [
        (
            b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", 7, 8),
            "image/png",
            Size(7, 8),
        ),
        (b"GIF89a" + struct.pack("<HH", 5, 6), "image/gif", Size(5, 6)),
        (JPEG, "image/jpeg", Size(40, 30)),
        (
            WEBP + b"VP8 " + bytes(10) + struct.pack("<HH", 9, 10),
            "image/webp",
            Size(9, 10),
        ),
        (
            WEBP + b"VP8L" + bytes(4) + b"\x2f" + struct.pack("<I", 10 | 11 << 14),
            "image/webp",
            Size(11, 12),
        ),
        (WEBP + b"VP8X" + bytes(8) + b"\x0c\0\0\x0d\0\0", "image/webp", Size(13, 14)),
        (b"RIFF\0\0\0\0WAVE", "", None),
        (b"", "", None),
        (JPEG[:12], "image/jpeg", None),
    ],
)
def test_kind_and_size(data: bytes, kind: str, size: Size | None) -> None:
    assert (media_type(data[:16]), pixel_size(data)) == (kind, size)


@given(
    st.sampled_from([b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF89a", WEBP]),
    st.binary(max_size=60),
)
def test_nothing_breaks_it(head: bytes, rest: bytes) -> None:
    size = pixel_size(head + rest)
    assert size is None or size.width > 0 < size.height

"""Pictures that are too large become smaller, the same way each time, or it is said why not."""

import io
import random
import struct
import sys
from pathlib import Path

import pytest

from hermes.images.image_info import (
    Size,
    convertible_type,
    media_type,
    pixel_size,
)
from hermes.images.image_resize import ImageLimits, NotShrunk, converted, fits, shrunk
from hermes.text.install_words import install_hint

pillow = pytest.importorskip("PIL.Image")
HEIC = Path(__file__).parents[2] / "data" / "blue_and_red.heic"


def picture(
    width: int, height: int, kind: str = "PNG", mode: str = "RGB", *, noisy: bool = True
) -> bytes:
    bands = len(mode)
    pixels = (
        random.Random(7).randbytes(width * height * bands)
        if noisy
        else bytes(width * height * bands)
    )
    place = io.BytesIO()
    pillow.frombytes(mode, (width, height), pixels).save(place, kind)
    return place.getvalue()


def test_what_is_small_enough_is_left_as_it_is() -> None:
    assert fits(picture(40, 30), ImageLimits(10_000, 100))
    assert not fits(picture(40, 30), ImageLimits(1_000, 100))
    assert not fits(picture(200, 30, noisy=False), ImageLimits(10_000, 100))


def test_a_picture_with_too_many_pixels_keeps_its_kind_and_shape() -> None:
    small = shrunk(picture(400, 100, noisy=False), ImageLimits(100_000, 100))
    assert media_type(small[:16]) == "image/png"
    assert pixel_size(small) == Size(100, 25)


@pytest.mark.parametrize(
    ("kind", "mode"),
    [("PNG", "RGBA"), ("PNG", "RGB"), ("JPEG", "RGB"), ("WEBP", "RGB"), ("GIF", "L")],
)
def test_a_picture_with_too_many_bytes_becomes_a_smaller_jpeg(
    kind: str, mode: str
) -> None:
    data = picture(300, 200, kind, mode)
    small = shrunk(data, ImageLimits(20_000, 8_000))
    assert len(small) <= 20_000 < len(data)
    assert media_type(small[:16]) == "image/jpeg"
    assert small == shrunk(data, ImageLimits(20_000, 8_000))


def test_a_picture_taken_sideways_stays_upright() -> None:
    place = io.BytesIO()
    exif = pillow.Exif()
    exif[0x0112] = 6  # turned by a quarter
    pillow.new("RGB", (400, 200)).save(place, "JPEG", exif=exif)
    assert pixel_size(shrunk(place.getvalue(), ImageLimits(100_000, 100))) == Size(
        50, 100
    )


def test_a_small_file_that_would_unfold_to_a_huge_picture_is_not_unfolded() -> None:
    bomb = (
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"
        + struct.pack(">II", 60_000, 60_000)
        + bytes(40)
    )
    with pytest.raises(NotShrunk, match="60000 x 60000 pixels"):
        shrunk(bomb, ImageLimits(1_000_000, 8_000))


def test_a_damaged_picture_is_said_to_be_so() -> None:
    with pytest.raises(NotShrunk, match="and can't be decoded"):
        shrunk(picture(300, 200)[:5_000], ImageLimits(1_000, 8_000))


def test_without_the_part_that_decodes_it_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = picture(300, 200)
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(NotShrunk) as caught:
        shrunk(data, ImageLimits(1_000, 8_000))
    assert str(install_hint("images")) in caught.value.hint


def test_the_frames_of_a_gif_are_looked_at_and_not_only_what_it_says_of_itself() -> (
    None
):
    frame = b",\0\0\0\0" + struct.pack("<HH", 12_000, 12_000) + b"\0\2\2D\1\0;"
    bomb = b"GIF89a\1\0\1\0\x80\0\0\0\0\0\xff\xff\xff" + frame
    with pytest.raises(NotShrunk, match="to be made smaller here"):
        shrunk(bomb, ImageLimits(10, 8_000))


@pytest.mark.filterwarnings("ignore")
def test_damaged_notes_in_a_picture_do_not_keep_it_from_being_made_smaller() -> None:
    exif = pillow.Exif()
    exif[0x010E], exif[0x0112] = "hello", 6
    place = io.BytesIO()
    pillow.new("RGB", (400, 200)).save(place, "JPEG", exif=exif)
    data = bytearray(place.getvalue())
    data[data.index(b"Exif\0\0") + 17] = 0
    assert pixel_size(shrunk(bytes(data), ImageLimits(100_000, 100))) is not None


@pytest.mark.parametrize("kind", ["TIFF", "AVIF", "BMP"])
def test_a_picture_that_no_provider_takes_becomes_one_that_they_do(kind: str) -> None:
    place = io.BytesIO()
    pillow.new("RGB", (40, 30), "red").save(place, kind)
    data = place.getvalue()
    assert media_type(data[:16]) == ""
    assert convertible_type(data[:16]) == f"image/{kind.lower()}"
    png = converted(data, ImageLimits(100_000, 100))
    assert (media_type(png[:16]), pixel_size(png)) == ("image/png", Size(40, 30))


def test_the_photo_of_a_phone_becomes_a_jpeg() -> None:
    pytest.importorskip("pi_heif")
    jpeg = converted(HEIC.read_bytes(), ImageLimits(100_000, 100))
    assert (media_type(jpeg[:16]), pixel_size(jpeg)) == ("image/jpeg", Size(64, 48))
    with pillow.open(io.BytesIO(jpeg)) as picture:
        left, right = picture.getpixel((8, 8)), picture.getpixel((56, 8))
    assert isinstance(left, tuple)
    assert isinstance(right, tuple)
    assert left[2] > 150 > left[0]
    assert right[0] > 150 > right[2]


def test_a_format_that_can_not_be_decoded_here_is_named() -> None:
    heic = b"\0\0\0\x18ftypheic" + bytes(200)
    with pytest.raises(NotShrunk, match="the picture is HEIC, which models don't take"):
        converted(heic, ImageLimits(100_000, 100))

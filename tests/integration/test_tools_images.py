"""`vision_analyze` for a model that sees: pictures by their signature, kept as they were shown, with limits that are told."""

import base64
import struct
import zlib
from pathlib import Path

import pytest
from tests.fakes.web_server import Page, web_server

from hermes.app.picture_tools import NoPictureLooker
from hermes.core.ports import ToolContext
from hermes.errors import MediaError, MediaErrorKind, ToolFailed
from hermes.images.image_info import Size, pixel_size
from hermes.media.picture_folder import MAX_PICTURE_BYTES, PictureFolder
from hermes.media.vision import VisionAccess, VisionTool
from hermes.schema.tool_spec import ToolResult
from hermes.settings import Secrets
from hermes.settings.tools import WebSettings

GIF = base64.b64decode("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7")


def png(width: int, height: int, color: int = 0) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data))
            + kind
            + data
            + struct.pack(">I", zlib.crc32(kind + data))
        )

    rows = zlib.compress(bytes([0, *([color] * width)]) * height)
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", rows)
        + chunk(b"IEND", b"")
    )


async def view(folder: Path, image: str, web: WebSettings | None = None) -> ToolResult:
    context = ToolContext("c", "s", folder, lambda text: None)
    access = VisionAccess(web or WebSettings(), Secrets({}, {}), {})
    looking = VisionTool(PictureFolder(folder / "kept"), access, NoPictureLooker())
    return await looking.vision_analyze.run({"image": image}, context)


def kept(result: ToolResult) -> tuple[bytes, int]:
    path = Path(result.images[0].source)
    return path.read_bytes(), path.stat().st_mode & 0o777


async def test_a_picture_is_shown_as_it_was(tmp_path: Path) -> None:
    shot = tmp_path / "shot.png"
    shot.write_bytes(png(4, 3))
    first = await view(tmp_path, "shot.png")
    assert first.text == f"[shot.png: png, 4 x 3, {len(png(4, 3))} bytes]"
    assert first.images[0].media_type == "image/png"
    shot.write_bytes(png(4, 3, color=200))
    second = await view(tmp_path, "shot.png")
    assert kept(first) == (png(4, 3), 0o600)
    assert kept(second) == (png(4, 3, color=200), 0o600)
    assert await view(tmp_path, "shot.png") == second
    assert len(list((tmp_path / "kept").iterdir())) == 2


async def test_the_kind_is_told_by_the_content(tmp_path: Path) -> None:
    (tmp_path / "wrong.png").write_bytes(GIF)
    assert (await view(tmp_path, "wrong.png")).images[0].media_type == "image/gif"
    (tmp_path / "text.png").write_text("<svg/>")
    with pytest.raises(ToolFailed, match="not a picture that can be shown"):
        await view(tmp_path, "text.png")


async def test_a_picture_that_is_too_large_is_shown_smaller(tmp_path: Path) -> None:
    pytest.importorskip("PIL")
    (tmp_path / "wide.png").write_bytes(png(9000, 3))
    shown = await view(tmp_path, "wide.png")
    assert "9000 x 3" in shown.text
    assert shown.text.endswith("; shown at 8000 x 3]")
    assert pixel_size(kept(shown)[0]) == Size(8000, 3)


async def test_too_large_missing_and_damaged_pictures_are_refused(
    tmp_path: Path,
) -> None:
    with (tmp_path / "big.png").open("wb") as file:
        file.write(png(4, 3))
        file.truncate(MAX_PICTURE_BYTES + 70_000_000)
    with pytest.raises(
        ToolFailed, match="has 120,000,000 bytes; at most 50,000,000"
    ) as failed:
        await view(tmp_path, "big.png")
    assert "smaller copy" in failed.value.hint
    (tmp_path / "cut.png").write_bytes(png(4, 3)[:18])
    with pytest.raises(ToolFailed, match="damaged"):
        await view(tmp_path, "cut.png")
    with pytest.raises(ToolFailed, match="does not exist"):
        await view(tmp_path, "missing.png")


async def test_a_picture_from_the_web_follows_the_rules_of_web_fetch(
    tmp_path: Path,
) -> None:
    pages = {"/cat.png": Page(png(4, 3), headers={"Content-Type": "image/png"})}
    async with web_server(
        lambda asked: pages.get(asked.target, Page("", 404))
    ) as server:
        allowed = WebSettings(allow_hosts=(f"127.0.0.1:{server.port}",))
        shown = await view(tmp_path, f"{server.url}/cat.png", allowed)
        assert kept(shown)[0] == png(4, 3)
        with pytest.raises(MediaError, match="404") as missing:
            await view(tmp_path, f"{server.url}/dog.png", allowed)
        assert missing.value.kind is MediaErrorKind.REFUSED
        with pytest.raises(ToolFailed, match=r"127\.0\.0\.1"):  # a private address
            await view(tmp_path, f"{server.url}/cat.png")


async def test_a_tiff_is_shown_as_png(tmp_path: Path) -> None:
    from PIL import Image as pillow  # noqa: N813

    pillow.new("RGB", (4, 3), "red").save(tmp_path / "scan.tiff")
    shown = await view(tmp_path, "scan.tiff")
    assert shown.images[0].media_type == "image/png"
    assert shown.text.endswith("bytes; shown as png]")

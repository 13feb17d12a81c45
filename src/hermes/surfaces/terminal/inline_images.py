"""Pictures in a terminal that can show them: by kitty's or iTerm2's protocol, or as sixels.

The environment alone decides which one. An unknown terminal gets no picture, because it would print garbage.
"""

import base64
import io
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from PIL.Image import Image

GraphicsProtocol: TypeAlias = Literal["kitty", "iterm", "sixel", ""]

_MULTIPLEXERS = ("screen", "tmux", "dumb", "linux")
_BY_TERM: Mapping[str, GraphicsProtocol] = {
    "xterm-kitty": "kitty",
    "xterm-ghostty": "kitty",
    "foot": "sixel",
    "foot-extra": "sixel",
    "mlterm": "sixel",
    "contour": "sixel",
}
_MAX_SIDE_PIXELS = 800
_MAX_SIXEL_SIDE_PIXELS = 480
_SIXEL_COLOURS = 64
_MAX_CELLS = 60
"""Columns of the terminal that a picture takes."""
_KITTY_CHUNK_CHARACTERS = 4096


def graphics_protocol(environ: Mapping[str, str]) -> GraphicsProtocol:
    """How this terminal shows pictures; empty if it does not, or if something in between would break them."""
    term = environ.get("TERM", "")
    if environ.get("TMUX") or environ.get("STY") or term.startswith(_MULTIPLEXERS):
        return ""
    if term in _BY_TERM:
        return _BY_TERM[term]
    is_iterm = environ.get("TERM_PROGRAM") in ("iTerm.app", "WezTerm")
    return "iterm" if is_iterm or environ.get("LC_TERMINAL") == "iTerm2" else ""


def picture_sequence(path: Path, protocol: GraphicsProtocol, columns: int) -> str:
    """What shows the picture when it is printed; empty if it can't be read or Pillow is missing."""
    try:
        from PIL import Image as pillow  # noqa: N813
    except ImportError:
        return ""
    most = _MAX_SIXEL_SIDE_PIXELS if protocol == "sixel" else _MAX_SIDE_PIXELS
    try:
        with pillow.open(path) as opened:
            picture = opened.convert("RGB")
    except (OSError, ValueError, SyntaxError, pillow.DecompressionBombError):
        return ""
    picture.thumbnail((most, most))
    cells = max(1, min(_MAX_CELLS, columns - 2))
    if protocol == "kitty":
        return "".join(_kitty(_png(picture), cells))
    if protocol == "iterm":
        data = _png(picture)
        encoded = base64.b64encode(data).decode()
        return f"\x1b]1337;File=inline=1;size={len(data)};width={cells};preserveAspectRatio=1:{encoded}\a"
    return "".join(_sixel(picture)) if protocol == "sixel" else ""


def _png(picture: "Image") -> bytes:
    place = io.BytesIO()
    picture.save(place, "PNG")
    return place.getvalue()


def _kitty(data: bytes, cells: int) -> Iterator[str]:
    """The picture in chunks. `q=2`: the terminal answers nothing, which would look like typed keys."""
    encoded = base64.b64encode(data).decode()
    starts = range(0, len(encoded), _KITTY_CHUNK_CHARACTERS)
    for start in starts:
        chunk = encoded[start : start + _KITTY_CHUNK_CHARACTERS]
        more = int(start != starts[-1])
        head = f"a=T,f=100,q=2,c={cells}," if start == 0 else ""
        yield f"\x1b_G{head}m={more};{chunk}\x1b\\"


def _sixel(picture: "Image") -> Iterator[str]:
    """Bands of six rows; in each, one line per colour, whose bits say which of the six pixels have it."""
    indexed = picture.quantize(colors=_SIXEL_COLOURS)
    width, height = indexed.size
    palette = indexed.getpalette() or []
    pixels = indexed.tobytes()
    yield f'\x1bPq"1;1;{width};{height}'
    for colour in range(len(palette) // 3):
        red, green, blue = (
            round(one * 100 / 255) for one in palette[3 * colour : 3 * colour + 3]
        )
        yield f"#{colour};2;{red};{green};{blue}"
    for top in range(0, height, 6):
        lines: dict[int, bytearray] = {}
        for bit in range(min(6, height - top)):
            start = (top + bit) * width
            for column, colour in enumerate(pixels[start : start + width]):
                line = lines.get(colour)
                if line is None:
                    line = lines[colour] = bytearray(b"?" * width)
                line[column] += 1 << bit
        yield "$".join(
            f"#{colour}{line.decode('ascii')}" for colour, line in lines.items()
        )
        yield "-"
    yield "\x1b\\"

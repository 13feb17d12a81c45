"""Pictures in the terminal: only where it is known to show them, in a form that can be read back."""

import base64
import io
import re
from pathlib import Path

import pytest

from hermes.surfaces.terminal.inline_images import graphics_protocol, picture_sequence

pillow = pytest.importorskip("PIL.Image")


@pytest.mark.parametrize(
    ("environ", "protocol"),
    [
        ({"TERM": "xterm-kitty"}, "kitty"),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "iTerm.app"}, "iterm"),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "WezTerm"}, "iterm"),
        ({"TERM": "foot"}, "sixel"),
        ({"TERM": "xterm-256color"}, ""),
        ({"TERM": "xterm-256color", "KITTY_WINDOW_ID": "1"}, ""),  # started from kitty
        ({"TERM": "xterm-kitty", "TMUX": "/run/tmux,1,0"}, ""),
        ({"TERM": "screen-256color", "TERM_PROGRAM": "iTerm.app"}, ""),
        ({"TERM": "dumb", "LC_TERMINAL": "iTerm2"}, ""),
        ({}, ""),
    ],
)
def test_a_terminal_that_is_not_known_gets_no_picture(
    environ: dict[str, str], protocol: str
) -> None:
    assert graphics_protocol(environ) == protocol


@pytest.fixture
def red(tmp_path: Path) -> Path:
    """A picture, half red and half blue."""
    picture = pillow.new("RGB", (1600, 20), (255, 0, 0))
    picture.paste((0, 0, 255), (800, 0, 1600, 20))
    picture.save(tmp_path / "red.png")
    return tmp_path / "red.png"


def test_kitty_and_iterm_get_the_picture_made_smaller(red: Path) -> None:
    chunks = re.findall(
        r"\x1b_G([^;]*);([^\x1b]*)\x1b\\", picture_sequence(red, "kitty", 80)
    )
    assert chunks[0][0].startswith("a=T,f=100,q=2,c=60,")
    assert chunks[-1][0].endswith("m=0")
    assert all(len(data) <= 4096 for _, data in chunks)
    data = base64.b64decode("".join(data for _, data in chunks))
    assert pillow.open(io.BytesIO(data)).size == (800, 10)
    iterm = picture_sequence(red, "iterm", 30)
    head, _, encoded = iterm.removesuffix("\a").partition(":")
    assert head.startswith("\x1b]1337;File=inline=1;")
    assert "width=28;" in head
    assert base64.b64decode(encoded) == data


def test_sixels_say_every_pixel(red: Path) -> None:
    sixel = picture_sequence(red, "sixel", 80)
    head = re.match(r'\x1bPq"1;1;(\d+);(\d+)', sixel)
    assert head
    width, height = int(head[1]), int(head[2])
    assert (width, height) == (480, 6)
    colours = dict(re.findall(r"#(\d+);2;(\d+;\d+;\d+)", sixel))
    found = {
        colours[number]: pixels
        for number, pixels in re.findall(r"#(\d+)([?-~]+)", sixel)
        if len(pixels) == width
    }
    assert found["100;0;0"][0] == "~"  # all six rows are red
    assert found["100;0;0"][-1] == "?"  # none is
    assert found["0;0;100"][-1] == "~"


def test_a_file_that_is_no_picture_shows_nothing(tmp_path: Path) -> None:
    (tmp_path / "x.png").write_text("no")
    assert picture_sequence(tmp_path / "x.png", "kitty", 80) == ""
    assert picture_sequence(tmp_path / "gone.png", "sixel", 80) == ""

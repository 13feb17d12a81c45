"""What the policy says about calls of the tools for pictures and speech, and that codex is lent them."""

from pathlib import Path
from typing import Any

import pytest

from hermes.app.picture_tools import NoImageSpending, NoPictureLooker
from hermes.codex.tool_lending import lendable
from hermes.core.ports import Tool
from hermes.media.command_images import CommandImages
from hermes.media.image_generation import ImageGenerator, ImageTool
from hermes.media.picture_folder import PictureFolder
from hermes.media.speech_deps import SpeechDeps
from hermes.media.speech_tool import speech_tools
from hermes.media.vision import VisionAccess, VisionTool
from hermes.settings import Home, Secrets
from hermes.settings.media import MediaSettings
from hermes.settings.tools import WebSettings
from hermes.tools.files.file_tools import FileTools
from hermes.tools.policy import ApprovalPolicy, Circumstances, Mode

HOME = Path("/users-that-are-not/me")
OURS, CWD = HOME / ".hermes", HOME / "project"
LOOK: Tool = VisionTool(
    PictureFolder(OURS / "cache" / "pictures"),
    VisionAccess(WebSettings(), Secrets({}, {}), {}),
    NoPictureLooker(),
).vision_analyze
DRAW: Tool = ImageTool(
    ImageGenerator(
        CommandImages(("draw",), {}, OURS, 1.0), lambda _: OURS, NoImageSpending()
    )
).image_generate

MEDIA = SpeechDeps(MediaSettings(), Secrets({}, {}), Home(OURS), {})
(SPEAK,) = speech_tools(lambda: MEDIA)


@pytest.mark.parametrize(
    ("tool", "arguments", "mode", "strict", "verdict"),
    [
        (LOOK, {"image": "shot.png"}, "ask", False, "allow"),
        (LOOK, {"image": "shot.png"}, "ask", True, "allow"),  # a file is only read
        (LOOK, {"image": "https://x.example/a.png"}, "ask", False, "allow"),
        (LOOK, {"image": "https://x.example/a.png"}, "ask", True, "ask"),
        (LOOK, {"image": "~/.ssh/id_rsa"}, "full", False, "ask"),
        (LOOK, {"image": str(OURS / "media" / "s" / "cat.png")}, "ask", True, "allow"),
        (LOOK, {"image": str(OURS / "state.db")}, "ask", False, "ask"),
        (DRAW, {"prompt": "a cat"}, "ask", False, "allow"),
        (DRAW, {"prompt": "a cat"}, "ask", True, "ask"),
        (DRAW, {"prompt": "x", "images": [".env"]}, "full", False, "ask"),
        (DRAW, {"prompt": "a cat"}, "plan", False, "forbid"),
        (SPEAK, {"text": "hello"}, "ask", False, "ask"),  # it writes a file
        (SPEAK, {"text": "hello"}, "plan", False, "forbid"),
        (LOOK, {"image": "shot.png"}, "plan", False, "allow"),
    ],
)
def test_a_file_is_read_and_an_address_is_fetched(
    tool: Tool, arguments: dict[str, Any], mode: Mode, strict: bool, verdict: str
) -> None:
    policy = ApprovalPolicy(mode, Circumstances(OURS, HOME, False, strict))
    assert policy.judge(tool, arguments, CWD).verdict == verdict


def test_codex_is_lent_what_it_lacks_and_no_tool_that_changes_files() -> None:
    files = FileTools()
    tools = {one.spec.name: one for one in (LOOK, DRAW, files.read_file)}
    assert lendable(tools) == tools
    changing = (files.write_file, files.edit_file)
    assert not lendable({one.spec.name: one for one in changing})

"""The tool `text_to_speech`: where it writes, when it is offered, and that codex may use it."""

import asyncio
import sys
from pathlib import Path

import pytest
from tests.fakes.audio_server import OGG, AudioServer

from hermes.codex.tool_lending import lendable
from hermes.core.ports import ToolContext
from hermes.errors import ToolFailed
from hermes.media.speech_deps import SpeechDeps
from hermes.media.speech_tool import speech_tools
from hermes.settings import Home, Secrets
from hermes.settings.media import MediaSettings, SpeechSettings
from hermes.testing.installed import InstalledHermes
from hermes.tools.policy import ApprovalPolicy, Circumstances, Mode


async def _speak(folder: Path, **arguments: str) -> str:
    with AudioServer() as server:
        media = MediaSettings(speech=SpeechSettings(url=server.url))
        home = Home(folder.with_name("home"))
        deps = SpeechDeps(media, Secrets({}, {}), home, {})
        (tool,) = speech_tools(lambda: deps)
        assert list(lendable({tool.spec.name: tool})) == ["text_to_speech"]
        context = ToolContext("c", "s", folder, lambda text: None)
        return (await tool.run({"text": "Hello.", **arguments}, context)).text


async def test_speech_is_written_to_a_new_file(tmp_path: Path) -> None:
    (tmp_path / "speech.ogg").write_text("mine")
    assert await _speak(tmp_path) == "Wrote speech1.ogg."
    assert (tmp_path / "speech1.ogg").read_bytes() == OGG
    assert (tmp_path / "speech.ogg").read_text() == "mine"


@pytest.mark.parametrize(
    "path", ["../out.ogg", ".git/hooks/x.ogg", "/etc/out.ogg", "link/out.ogg"]
)
async def test_speech_is_written_only_into_the_working_directory(
    tmp_path: Path, path: str
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "link").symlink_to(tmp_path)
    with pytest.raises(ToolFailed, match="not a plain path"):
        await _speak(work, output_path=path)
    assert sorted(one.name for one in await asyncio.to_thread(work.iterdir)) == ["link"]


@pytest.mark.parametrize(
    ("mode", "verdict"), [("ask", "ask"), ("auto-edit", "ask"), ("plan", "forbid")]
)
def test_the_file_is_asked_about(tmp_path: Path, mode: Mode, verdict: str) -> None:
    deps = SpeechDeps(MediaSettings(), Secrets({}, {}), Home(tmp_path), {})
    (tool,) = speech_tools(lambda: deps)
    policy = ApprovalPolicy(mode, Circumstances(tmp_path / ".hermes", tmp_path))
    decision = policy.judge(tool, {"text": "Hello."}, tmp_path)
    assert decision.verdict == verdict
    assert tool.effect in ("files", "other"), "or undo would not keep the folder first"


@pytest.mark.parametrize("is_there", [True, False])
async def test_it_is_offered_only_where_something_can_speak(
    tmp_path: Path, is_there: bool
) -> None:
    hermes = InstalledHermes(tmp_path, "http://127.0.0.1:9/v1")
    hermes.home.mkdir()
    command = f"[{sys.executable}, '{{output}}']" if is_there else "[]"
    chosen = "auto" if is_there else "'off'"
    config = f"media:\n  speech_out: {chosen}\n  speech:\n    command: {command}\n"
    (hermes.home / "config.yaml").write_text(config)
    listed = await hermes.run("tools")
    assert ("text_to_speech" in listed.out) is is_there

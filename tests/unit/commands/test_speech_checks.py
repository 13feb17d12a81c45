"""What `hermes doctor` says about speech."""

from pathlib import Path

import pytest

from hermes.commands.doctor_checks import Site
from hermes.commands.engine_checks import check_speech
from hermes.settings import Home


@pytest.mark.parametrize(
    ("environ", "check", "mark", "words"),
    [
        ({"HERMES_MEDIA_SPEECH_IN": "off"}, "speech in", "ok", "off"),
        ({"HERMES_MEDIA_SPEECH_OUT": "off"}, "speech out", "ok", "off"),
        (
            {"HERMES_MEDIA_SPEECH_IN": "openai", "VOICE_API_KEY": "k"},
            "speech in",
            "ok",
            "openai",
        ),
        ({"HERMES_MEDIA_SPEECH_IN": "openai"}, "speech in", "warn", "key"),
        (
            {"HERMES_MEDIA_SPEECH_OUT": "piper"},
            "speech out",
            "warn",
            "piper is not installed",
        ),
        ({"HERMES_MEDIA_SPEECH_OUT": "parrot"}, "speech out", "warn", "parrot"),
        ({"PATH": "/nonexistent"}, "speech out", "ok", "not set up (optional)"),
    ],
)
def test_the_doctor_says_who_listens_and_who_speaks(
    tmp_path: Path, environ: dict[str, str], check: str, mark: str, words: str
) -> None:
    machine = {"HOME": "/nonexistent", "XDG_CACHE_HOME": str(tmp_path), **environ}
    site = Site(Home(Path("/nonexistent/home")), machine)
    found = {one.check: one for one in check_speech(site)}
    assert (found[check].mark, words in found[check].text) == (mark, True), found[check]

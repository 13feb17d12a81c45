"""Sound formats, and speech recognition on this machine with the real models."""

import asyncio
import os
from difflib import SequenceMatcher
from pathlib import Path

import pytest
from tests.fakes.audio_server import tone
from tests.integration.media.speech_models import (
    need_moonshine,
    need_piper,
    need_whisper,
    speech,
)
from tests.integration.test_tools_images import png

from hermes.core.ports import ToolContext
from hermes.errors import MediaError, MediaErrorKind
from hermes.media.audio import Audio, samples_of
from hermes.media.audio_conversion import converted, decoded
from hermes.media.speech_deps import SpeechDeps
from hermes.media.speech_in import find_transcriber, transcribe
from hermes.media.speech_out import speak
from hermes.settings import Home, Secrets
from hermes.settings.media import MediaSettings
from hermes.tools.files.file_tools import FileTools

FETCH_TIMEOUT_S = 900
"""The first run fetches some hundred megabytes."""
GERMAN_NOTE = Path(__file__).parents[2] / "data" / "german_note.ogg"
"""Spoken by a program: "Guten Morgen. Wir treffen uns am Donnerstag am Bahnhof. Bitte bring die Unterlagen mit." """


def test_a_voice_message_is_opus_and_becomes_wav_again(tmp_path: Path) -> None:
    voice = converted(Audio(tone(1.0), "wav"), "ogg", os.environ)
    path = tmp_path / "voice.ogg"
    path.write_bytes(voice.data)
    samples, rate = samples_of(decoded(path, os.environ))
    assert b"OpusHead" in voice.data[:100]
    assert abs(len(samples) / rate - 1.0) < 0.05
    assert max(samples) > 4000


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"OggS" + bytes(1000), "it is damaged, or not a sound file"),
        (png(8, 8), "there is no sound in it"),
    ],
    ids=["garbage", "picture"],
)
def test_a_file_that_is_no_sound_says_so_in_words(
    tmp_path: Path, data: bytes, why: str
) -> None:
    path = tmp_path / "note.ogg"
    path.write_bytes(data)
    with pytest.raises(MediaError) as failed:
        decoded(path, os.environ)
    assert failed.value.message.startswith(f"note.ogg can't be read: {why}")
    assert "Errno" not in failed.value.message
    assert "The file is unchanged." in failed.value.hint


def test_english_is_understood_without_a_network(tmp_path: Path) -> None:
    """The package brings its model and a recording of Beckett."""
    recording = need_moonshine() / "assets" / "beckett.wav"
    said = transcribe(speech(tmp_path, speech_in="moonshine"), recording)
    assert said.language == "en"
    assert "ever tried. ever failed. no matter. try again." in said.text.lower()


def test_another_language_is_never_passed_on_as_english(tmp_path: Path) -> None:
    need_moonshine()
    with pytest.raises(MediaError, match="does not sound like English") as failed:
        transcribe(speech(tmp_path, speech_in="moonshine"), GERMAN_NOTE)
    assert failed.value.kind is MediaErrorKind.NOT_SUPPORTED
    assert "hermes voice add whisper" in failed.value.hint


def test_somebody_who_says_that_they_speak_english_is_believed(tmp_path: Path) -> None:
    need_moonshine()
    deps = speech(tmp_path, speech_in="moonshine", language="en")
    assert transcribe(deps, GERMAN_NOTE).text


def test_english_sounds_like_english(tmp_path: Path) -> None:
    recording = need_moonshine() / "assets" / "endgame_nagg_nell.wav"
    assert transcribe(speech(tmp_path, speech_in="moonshine"), recording).text


def test_a_recording_is_read_as_what_is_said_in_it(tmp_path: Path) -> None:
    recording = need_moonshine() / "assets" / "beckett.wav"
    deps = speech(tmp_path, speech_in="moonshine")
    tools = FileTools(listen=lambda path: transcribe(deps, path).text)
    context = ToolContext("c", "s", tmp_path, lambda text: None)
    read = asyncio.run(tools.read_file.run({"path": str(recording)}, context))
    assert read.text.startswith(f"[{recording}: lines 1-1 of 1; what is said in it]")
    assert "ever tried" in read.text.lower()
    assert read.source == str(recording)


def test_a_recording_that_nobody_understands_says_what_is_missing(
    tmp_path: Path,
) -> None:
    recording = need_moonshine() / "assets" / "beckett.wav"
    deps = speech(tmp_path, speech_in="off")
    tools = FileTools(listen=lambda path: transcribe(deps, path).text)
    context = ToolContext("c", "s", tmp_path, lambda text: None)
    with pytest.raises(MediaError, match="turned off") as failed:
        asyncio.run(tools.read_file.run({"path": str(recording)}, context))
    assert failed.value.kind is MediaErrorKind.NOT_CONFIGURED


@pytest.mark.parametrize(
    ("locale", "language", "found"),
    [
        ("en_GB.UTF-8", "", "moonshine"),
        ("C.UTF-8", "", "moonshine"),
        ("de_DE.UTF-8", "", ""),
        ("de_DE.UTF-8", "en", "moonshine"),
        ("en_GB.UTF-8", "pl", ""),
    ],
)
def test_without_whisper_english_is_heard_only_where_it_is_spoken(
    tmp_path: Path, locale: str, language: str, found: str
) -> None:
    need_moonshine()
    environment = {"XDG_CACHE_HOME": str(tmp_path), "LANG": locale}
    media = MediaSettings(language=language)
    deps = SpeechDeps(media, Secrets({}, {}), Home(tmp_path), environment)
    if found:
        assert find_transcriber(deps).name == found
        return
    with pytest.raises(MediaError) as failed:
        find_transcriber(deps)
    assert failed.value.kind is MediaErrorKind.NOT_CONFIGURED
    assert "hermes voice add whisper" in failed.value.hint


@pytest.mark.timeout(FETCH_TIMEOUT_S)
def test_a_german_voice_note_is_understood_and_its_language_detected(
    tmp_path: Path,
) -> None:
    need_whisper()
    said = transcribe(speech(tmp_path), GERMAN_NOTE)
    assert (said.backend, said.language) == ("whisper", "de")
    assert "guten morgen" in said.text.lower()
    assert "am bahnhof" in said.text.lower()
    assert "die unterlagen mit" in said.text.lower()


@pytest.mark.timeout(FETCH_TIMEOUT_S)
def test_what_piper_says_is_understood_again(tmp_path: Path) -> None:
    need_piper()
    need_moonshine()
    text = "The meeting is moved to Thursday. Please bring the printed report and a copy of the contract."
    voice = speak(speech(tmp_path, speech_out="piper"), text, "ogg")
    assert b"OpusHead" in voice.data[:100]
    path = tmp_path / "voice.ogg"
    path.write_bytes(voice.data)
    said = transcribe(speech(tmp_path, speech_in="moonshine"), path)
    assert SequenceMatcher(None, _words(text), _words(said.text)).ratio() >= 0.9


def _words(text: str) -> list[str]:
    return text.lower().replace(".", " ").replace(",", " ").split()

"""Speech by services and by commands of the user's, against a server that speaks their protocols."""

import sys
from array import array
from pathlib import Path

import msgspec
import pytest
from tests.fakes.audio_server import KEY, MP3, OGG, AudioServer, tone

from hermes.errors import MediaError, MediaErrorKind
from hermes.media.audio import samples_of, wav_of
from hermes.media.speech_deps import SpeechDeps
from hermes.media.speech_in import find_transcriber, transcribe
from hermes.media.speech_out import find_speaker, speak
from hermes.settings import Home, Secrets
from hermes.settings.media import (
    MediaSettings,
    SpeechSettings,
    TranscriptionSettings,
)

_ENVIRONMENT = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"}
_SPEAK = """
import sys, wave
text, output, voice = sys.argv[1:]
with wave.open(output, "wb") as file:
    file.setparams((1, 2, 16000, 0, "NONE", ""))
    file.writeframes(bytes(2 * len(open(text).read())))
"""


def _deps(folder: Path, media: MediaSettings, **secrets: str) -> SpeechDeps:
    home = Home(folder / "home")
    return SpeechDeps(media, Secrets(secrets, {}), home, _ENVIRONMENT)


def _service(folder: Path, server: AudioServer, **more: str) -> SpeechDeps:
    media = MediaSettings(
        transcription=TranscriptionSettings(url=server.url),
        speech=SpeechSettings(url=server.url),
    )
    media = msgspec.structs.replace(media, **more)
    return _deps(folder, media, VOICE_API_KEY=KEY, ELEVENLABS_API_KEY=KEY)


def _recording(folder: Path, data: bytes) -> Path:
    path = folder / "note.wav"
    path.write_bytes(data)
    return path


def test_a_service_understands_a_recording(tmp_path: Path) -> None:
    with AudioServer() as server:
        deps = _service(tmp_path, server, language="de")
        found = transcribe(deps, _recording(tmp_path, tone()))
    (request,) = server.requests
    assert (found.text, found.backend) == ("buy some milk", "openai")
    assert request.fields == {"model": "whisper-1", "language": "de"}
    assert (request.key, request.file) == (KEY, tone())


def test_a_long_recording_is_sent_in_parts(tmp_path: Path) -> None:
    second = samples_of(tone(1.0))[0]
    long = second * 400 + array("h", bytes(2 * 16_000)) + second * 400
    with AudioServer("part") as server:
        deps = _service(tmp_path, server)
        found = transcribe(deps, _recording(tmp_path, wav_of(long)))
    assert found.text == "part part"
    samples = [samples_of(request.file)[0] for request in server.requests]
    assert sum(map(len, samples)) == 801 * 16_000
    assert 400 * 16_000 < len(samples[0]) < 401 * 16_000  # cut inside the pause


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (401, MediaErrorKind.REFUSED),
        (429, MediaErrorKind.REFUSED),
        (413, MediaErrorKind.TOO_LARGE),
        (404, MediaErrorKind.NOT_SUPPORTED),
        (503, MediaErrorKind.NETWORK),
    ],
)
def test_a_failure_says_what_stood_in_the_way(
    tmp_path: Path, status: int, kind: MediaErrorKind
) -> None:
    with AudioServer() as server:
        server.failure = status
        with pytest.raises(MediaError, match=r"not today|127") as failed:
            transcribe(_service(tmp_path, server), _recording(tmp_path, tone()))
    assert failed.value.kind is kind
    assert KEY not in str(failed.value)


def test_a_service_that_is_gone_is_a_network_error(tmp_path: Path) -> None:
    with AudioServer() as server:
        deps = _service(tmp_path, server)
    with pytest.raises(MediaError) as failed:
        speak(deps, "hello")
    assert failed.value.kind is MediaErrorKind.NETWORK


def test_silence_is_said_and_not_passed_on(tmp_path: Path) -> None:
    with AudioServer(heard=" ") as server, pytest.raises(MediaError, match="No words"):
        transcribe(_service(tmp_path, server), _recording(tmp_path, tone()))


def test_a_service_speaks_words_without_markdown(tmp_path: Path) -> None:
    with AudioServer() as server:
        audio = speak(_service(tmp_path, server), "# Hi\n**Bold** `x`", "ogg")
    assert (audio.data, audio.format) == (OGG, "ogg")
    assert server.requests[0].fields["input"] == "Hi. Bold x"
    assert server.requests[0].fields["response_format"] == "opus"


def test_elevenlabs_speaks_with_the_chosen_voice(tmp_path: Path) -> None:
    with AudioServer() as server:
        deps = _service(tmp_path, server, speech_out="elevenlabs", voice="anna/1")
        audio = find_speaker(deps).speak("Hello.", "mp3")
    assert audio.data == MP3
    assert server.requests[0].path.startswith("/v1/text-to-speech/anna%2F1?")
    assert server.requests[0].key == KEY


def test_a_command_speaks_and_another_understands(tmp_path: Path) -> None:
    media = MediaSettings(
        speech=SpeechSettings(
            command=(sys.executable, "-c", _SPEAK, "{text}", "{output}", "{voice}")
        ),
        transcription=TranscriptionSettings(
            command=("sh", "-c", "wc -c < {input}; echo {language}")
        ),
    )
    deps = _deps(tmp_path, media)
    audio = speak(deps, "Five.")
    found = transcribe(deps, _recording(tmp_path, audio.data))
    assert len(audio.data) == 44 + 2 * len("Five.")
    assert found.text.split() == [str(len(audio.data)), "auto"]


def test_a_command_that_fails_is_quoted(tmp_path: Path) -> None:
    command = ("sh", "-c", "echo no microphone; exit 3")
    media = MediaSettings(transcription=TranscriptionSettings(command=command))
    with pytest.raises(MediaError, match=r"exit code 3\. no microphone"):
        transcribe(_deps(tmp_path, media), _recording(tmp_path, tone()))


def test_a_command_can_not_pass_on_another_file(tmp_path: Path) -> None:
    command = ("sh", "-c", "ln -s /etc/hostname {output}")
    media = MediaSettings(speech=SpeechSettings(command=command))
    with pytest.raises(MediaError, match="wrote no WAV"):
        speak(_deps(tmp_path, media), "Hello.")


@pytest.mark.parametrize("wanted", ["off", "nonsense", "openai", "command"])
def test_what_is_not_set_up_says_what_to_do(tmp_path: Path, wanted: str) -> None:
    deps = _deps(tmp_path, MediaSettings(speech_in=wanted, speech_out=wanted))
    for find in (find_transcriber, find_speaker):
        with pytest.raises(MediaError) as failed:
            find(deps)
        assert failed.value.kind is MediaErrorKind.NOT_CONFIGURED
        assert failed.value.hint

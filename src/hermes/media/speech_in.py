"""Speech to text: the port, and which backend understands a recording."""

from pathlib import Path
from typing import Protocol

import msgspec

from hermes.media.media_error import MediaError, MediaErrorKind
from hermes.media.speech_deps import SpeechDeps, choose_backend, configured

SENSE = "speech recognition"
MAX_RECORDING_BYTES = 200 * 1024**2


class Transcript(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody said. `language` is empty where the backend does not tell."""

    text: str
    language: str = ""
    backend: str = ""


class Transcriber(Protocol):
    """A backend. It is made only where it is set up."""

    @property
    def name(self) -> str:
        """What the setting `media.speech_in` calls it."""
        ...

    @property
    def label(self) -> str:
        """What it is, for a person."""
        ...

    def transcribe(self, path: Path, language: str) -> Transcript:
        """Understands a recording; blocks. `language` is empty to detect it. Raises MediaError or OSError."""
        ...


def find_transcriber(deps: SpeechDeps) -> Transcriber:
    """The backend that the settings choose. Raises MediaError if it is not set up."""
    from hermes.media.audio_commands import CommandTranscriber
    from hermes.media.audio_services import OpenAITranscriber
    from hermes.media.offline_transcription import (
        MoonshineTranscriber,
        WhisperTranscriber,
    )

    settings = deps.settings
    offline = ("whisper", "moonshine")
    wanted = configured(settings.speech_in, settings.transcription)
    return choose_backend(
        wanted,
        "media.speech_in",
        SENSE,
        {
            "command": lambda: CommandTranscriber(deps),
            "openai": lambda: OpenAITranscriber(deps),
            "whisper": lambda: WhisperTranscriber(deps),
            "moonshine": lambda: MoonshineTranscriber(deps),
        },
        (
            *(offline[::-1] if settings.language == "en" else offline),
            *(("openai",) if deps.key("VOICE_API_KEY") else ()),
        ),
        _advice,
    )


def _advice() -> str:
    from hermes.installation import install_hint

    return f"{install_hint('voice')} (or use OpenAI: hermes config set VOICE_API_KEY)"


def transcribe(deps: SpeechDeps, path: Path) -> Transcript:
    """The text of a recording; blocks. Raises MediaError if it can't be understood."""
    transcriber = find_transcriber(deps)
    try:
        size = path.stat().st_size
        if size > MAX_RECORDING_BYTES:
            raise MediaError(
                MediaErrorKind.TOO_LARGE,
                f"The recording is larger than {MAX_RECORDING_BYTES // 1024**2} MB.",
                sense=SENSE,
                hint="Send it in shorter parts.",
            )
        found = transcriber.transcribe(path, deps.settings.language)
    except OSError as error:
        raise MediaError(
            MediaErrorKind.NOT_SUPPORTED,
            f"The recording can't be read: {error.strerror or error}.",
            sense=SENSE,
        ) from error
    if not found.text.strip():
        raise MediaError(
            MediaErrorKind.NOT_SUPPORTED,
            "No words were found in the recording.",
            sense=SENSE,
            hint="Speak closer to the microphone, or set media.language.",
        )
    return msgspec.structs.replace(
        found, text=found.text.strip(), backend=transcriber.name
    )

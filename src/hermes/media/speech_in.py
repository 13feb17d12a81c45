"""Speech to text: the port, and the choice of the backend."""

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import msgspec

from hermes.errors import MediaError, MediaErrorKind
from hermes.media.speech_deps import SpeechDeps, choose_backend, configured
from hermes.settings.load import system_locale
from hermes.text.translation import JoinedWords, LaterWords, translator

t = translator(__name__)

SENSE = "speech recognition"
MAX_RECORDING_BYTES = 200 * 1024**2


class Transcript(msgspec.Struct, frozen=True, kw_only=True):
    """The text of a recording. `language` is empty if the backend does not report it."""

    text: str
    language: str = ""
    backend: str = ""


class Transcriber(Protocol):
    """A backend. It is created only if it is set up."""

    @property
    def name(self) -> str:
        """The backend's name in the setting `media.speech_in`."""
        ...

    @property
    def label(self) -> str:
        """A description for a person."""
        ...

    def transcribe(self, path: Path, language: str) -> Transcript:
        """Transcribes a recording; blocks. `language` is empty to detect it. Raises MediaError or OSError."""
        ...


def find_transcriber(deps: SpeechDeps) -> Transcriber:
    """Returns the backend that the settings choose. Raises MediaError if it is not set up."""
    from hermes.media.audio_commands import CommandTranscriber
    from hermes.media.audio_services import OpenAITranscriber
    from hermes.media.offline_transcription import (
        MoonshineTranscriber,
        WhisperTranscriber,
    )

    settings = deps.settings
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
            *_offline(deps),
            *(("openai",) if deps.key("VOICE_API_KEY") else ()),
        ),
        _advice,
    )


def _offline(deps: SpeechDeps) -> tuple[str, ...]:
    """Returns the models on this machine, the preferred one first.

    Whisper detects languages. Moonshine hears English in everything, and turns other languages into fluent but wrong
    text. So without Whisper it is used only if the system's language is English, and it refuses speech that does not
    sound English.
    """
    if deps.settings.language == "en":
        return ("moonshine", "whisper")
    if deps.settings.language or not _is_english(deps.environment):
        return ("whisper",)
    return ("whisper", "moonshine")


def _is_english(environment: Mapping[str, str]) -> bool:
    """Returns whether the system's language is English or not set."""
    tag = system_locale(environment)
    return tag.partition(".")[0].partition("_")[0].lower() in ("", "c", "posix", "en")


def _advice() -> LaterWords:
    from importlib.util import find_spec

    from hermes.text.install_words import install_hint

    if find_spec("faster_whisper") is not None:
        return t.later(
            "Download Whisper: hermes voice add whisper (for English alone, set media.language to en)"
        )
    openai = t.later("Or use OpenAI: hermes config set VOICE_API_KEY")
    return JoinedWords(install_hint("voice"), openai)


def transcribe(deps: SpeechDeps, path: Path) -> Transcript:
    """Returns the text of a recording; blocks. Raises MediaError if it can't be transcribed."""
    transcriber = find_transcriber(deps)
    try:
        size = path.stat().st_size
        if size > MAX_RECORDING_BYTES:
            raise MediaError(
                MediaErrorKind.TOO_LARGE,
                t.later(
                    "The recording is larger than {megabytes} MB.",
                    megabytes=MAX_RECORDING_BYTES // 1024**2,
                ),
                sense=SENSE,
                hint=t.later("Send it in shorter parts."),
            )
        found = transcriber.transcribe(path, deps.settings.language)
    except OSError as error:
        raise MediaError(
            MediaErrorKind.NOT_SUPPORTED,
            t.later(
                "The recording can't be read: {reason}.", reason=error.strerror or error
            ),
            sense=SENSE,
        ) from error
    if not found.text.strip():
        raise MediaError(
            MediaErrorKind.NOT_SUPPORTED,
            t.later("No words were found in the recording."),
            sense=SENSE,
            hint=t.later("Speak closer to the microphone, or set media.language."),
        )
    return msgspec.structs.replace(
        found, text=found.text.strip(), backend=transcriber.name
    )

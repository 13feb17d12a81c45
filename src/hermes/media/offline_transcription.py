"""Offline speech recognition: Moonshine for English, with the model in its package, and Whisper for all languages."""

import threading
from importlib.util import find_spec
from pathlib import Path

from hermes.errors import MediaError, MediaErrorKind
from hermes.media.audio_child import ChildTranscript
from hermes.media.audio_conversion import run_audio_child
from hermes.media.speech_deps import SpeechDeps
from hermes.media.speech_in import SENSE, Transcript
from hermes.text.install_words import install_hint
from hermes.text.translation import to_translate, translator

t = translator(__name__)

_SLOTS = threading.BoundedSemaphore(2)
"""Each transcription needs a few hundred megabytes, so others wait."""


def _require(package: str, name: str) -> None:
    """Raises MediaError if a package of the extra `voice` is missing."""
    if find_spec(package) is None:
        raise MediaError(
            MediaErrorKind.NOT_CONFIGURED,
            t.later("{name} is not installed.", name=name),
            sense=SENSE,
            hint=install_hint("voice"),
        )


def _understood(
    deps: SpeechDeps, path: Path, task: tuple[str, ...], model: Path | None = None
) -> ChildTranscript:
    timeout_s = deps.settings.transcription.timeout
    with _SLOTS:
        result = run_audio_child(path, task, deps.environment, timeout_s, SENSE, model)
    if not isinstance(result, ChildTranscript):
        raise MediaError(
            MediaErrorKind.NOT_SUPPORTED,
            t.later("{name} can't be understood.", name=path.name),
            sense=SENSE,
        )
    return result


class MoonshineTranscriber:
    """Moonshine tiny: small and fast, English only."""

    name = "moonshine"
    label = to_translate("Moonshine tiny, English, on this machine")

    def __init__(self, deps: SpeechDeps) -> None:
        _require("moonshine_voice", "Moonshine")
        self._deps = deps

    def transcribe(self, path: Path, language: str) -> Transcript:
        if language not in ("", "en"):
            raise MediaError(
                MediaErrorKind.NOT_SUPPORTED,
                t.later(
                    "Moonshine understands English only, not {language!r}.",
                    language=language,
                ),
                sense=SENSE,
                hint=t.later("Add Whisper: hermes voice add whisper"),
            )
        task = ("moonshine", *((language,) if language else ()))
        found = _understood(self._deps, path, task)
        if found.is_doubtful:
            raise MediaError(
                MediaErrorKind.NOT_SUPPORTED,
                t.later(
                    "The recording does not sound like English, and only English can be understood here so far."
                ),
                sense=SENSE,
                hint=t.later(
                    "Add Whisper: hermes voice add whisper. If it is English, set media.language to en."
                ),
            )
        return Transcript(text=found.text, language=found.language)


class WhisperTranscriber:
    """Whisper base: about a hundred languages, which it detects."""

    name = "whisper"
    label = to_translate("Whisper base, any language, on this machine")

    def __init__(self, deps: SpeechDeps) -> None:
        from hermes.media.speech_models import WHISPER, model_path

        _require("faster_whisper", "Whisper")
        folder = model_path(WHISPER, deps.models)
        if folder is None:
            raise MediaError(
                MediaErrorKind.NOT_CONFIGURED,
                t.later("The model of Whisper is not downloaded."),
                sense=SENSE,
                hint=t.later("Download it with: hermes voice add whisper"),
            )
        self._deps = deps
        self._folder = folder

    def transcribe(self, path: Path, language: str) -> Transcript:
        task = ("whisper", str(self._folder), *((language,) if language else ()))
        found = _understood(self._deps, path, task, self._folder)
        return Transcript(text=found.text, language=found.language)

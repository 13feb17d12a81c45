"""Text to speech: the port, and the choice of the backend."""

from typing import Protocol

from hermes.errors import MediaError, MediaErrorKind
from hermes.media.audio import Audio, AudioFormat, join_audio
from hermes.media.speech_deps import SpeechDeps, choose_backend, configured
from hermes.media.spoken_text import sentences, spoken
from hermes.text.translation import translator

t = translator(__name__)

SENSE = "speech synthesis"
MAX_SPOKEN_CHARACTERS = 20_000


class Speaker(Protocol):
    """A backend. It is created only if it is set up."""

    @property
    def name(self) -> str:
        """The backend's name in the setting `media.speech_out`."""
        ...

    @property
    def label(self) -> str:
        """A description for a person."""
        ...

    @property
    def max_characters(self) -> int:
        """The maximum length of the text in one call."""
        ...

    def speak(self, text: str, wanted: AudioFormat) -> Audio:
        """Speaks plain text; blocks. Uses another format if it can't make the wanted one. Raises MediaError."""
        ...


def find_speaker(deps: SpeechDeps) -> Speaker:
    """Returns the backend that the settings choose. Raises MediaError if it is not set up."""
    from hermes.media.audio_commands import CommandSpeaker
    from hermes.media.audio_services import ElevenLabsSpeaker, OpenAISpeaker
    from hermes.media.speech_programs import EspeakSpeaker, FliteSpeaker, PiperSpeaker

    return choose_backend(
        configured(deps.settings.speech_out, deps.settings.speech),
        "media.speech_out",
        SENSE,
        {
            "command": lambda: CommandSpeaker(deps),
            "openai": lambda: OpenAISpeaker(deps),
            "elevenlabs": lambda: ElevenLabsSpeaker(deps),
            "piper": lambda: PiperSpeaker(deps),
            "espeak-ng": lambda: EspeakSpeaker(deps),
            "flite": lambda: FliteSpeaker(deps),
        },
        (
            "piper",
            "elevenlabs",
            *(("openai",) if deps.key("VOICE_API_KEY") else ()),
            "espeak-ng",
            "flite",
        ),
        lambda: t.later("Download a voice: hermes voice add piper"),
    )


def speak(
    deps: SpeechDeps,
    markdown: str,
    wanted: AudioFormat = "wav",
    *,
    converts: bool = True,
) -> Audio:
    """Speaks a text without its Markdown and code; blocks. Raises MediaError if it can't be spoken.

    The format is the wanted one if possible, otherwise the backend's. Without `converts`, no time is spent on
    conversion.
    """
    from hermes.media.audio_conversion import can_convert, converted

    speaker = find_speaker(deps)
    text = spoken(markdown)
    if not text:
        raise MediaError(
            MediaErrorKind.NOT_SUPPORTED,
            t.later("There is nothing to read aloud in this text."),
            sense=SENSE,
        )
    if len(text) > MAX_SPOKEN_CHARACTERS:
        raise MediaError(
            MediaErrorKind.TOO_LARGE,
            t.later(
                "The text has {count:,} characters; at most {max_spoken_characters:,} are read aloud.",
                count=len(text),
                max_spoken_characters=MAX_SPOKEN_CHARACTERS,
            ),
            sense=SENSE,
            hint=t.later("Speak a shorter part of it."),
        )
    parts = [speaker.speak(part, wanted) for part in _parts(text, speaker)]
    audio = join_audio(parts)
    if converts and audio.format != wanted and can_convert():
        return converted(audio, wanted, deps.environment)
    return audio


def _parts(text: str, speaker: Speaker) -> list[str]:
    """Splits the text between sentences, into as few parts as the backend allows."""
    parts: list[str] = []
    for sentence in sentences(text, speaker.max_characters):
        if parts and len(parts[-1]) + len(sentence) < speaker.max_characters:
            parts[-1] = f"{parts[-1]} {sentence}"
        else:
            parts.append(sentence)
    return parts

"""The settings of pictures and speech."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from hermes.settings.section import Section


class ImageGenerationSettings(Section, frozen=True):
    """Options of the backend that makes pictures (`media.image_generation`)."""

    model: Annotated[
        str, Meta(description="The model that makes pictures; empty for the backend's.")
    ] = ""
    command: Annotated[
        tuple[str, ...],
        Meta(
            description="For the backend `command`: program and arguments, run in the sandbox. `{prompt}`, `{output}`, "
            "`{width}`, `{height}` and `{references}` are filled in; it writes a PNG, JPEG or WebP to `{output}`."
        ),
    ] = ()
    timeout: Annotated[
        float, Meta(gt=0, le=3600, description="Seconds that one picture may take.")
    ] = 180.0
    price: Annotated[
        float,
        Meta(
            ge=0,
            description="US dollars per picture, for a backend that does not report its cost; 0 if unknown or free.",
        ),
    ] = 0.0


class TranscriptionSettings(Section, frozen=True):
    """Options of the backend that turns speech into text (`media.speech_in`)."""

    url: Annotated[
        str,
        Meta(
            description="Base URL of a service with OpenAI's `/audio/transcriptions`, ending in /v1; its key is VOICE_API_KEY. "
            "Empty for OpenAI's own, whose key may also be OPENAI_API_KEY.",
        ),
    ] = ""
    model: Annotated[
        str, Meta(description="The service's model; empty for `whisper-1`.")
    ] = ""
    command: Annotated[
        tuple[str, ...],
        Meta(
            description="For the backend `command`: program and arguments, run in the sandbox. `{input}` is a WAV file, "
            "`{language}` the language; it prints the text.",
        ),
    ] = ()
    timeout: Annotated[
        float, Meta(gt=0, le=3600, description="Seconds that one recording may take.")
    ] = 300.0


class SpeechSettings(Section, frozen=True):
    """Options of the backend that speaks (`media.speech_out`)."""

    url: Annotated[
        str,
        Meta(
            description="Base URL of a service with OpenAI's `/audio/speech`, ending in /v1; its key is VOICE_API_KEY. "
            "Empty for OpenAI's own, whose key may also be OPENAI_API_KEY.",
        ),
    ] = ""
    model: Annotated[
        str, Meta(description="The service's model; empty for the backend's.")
    ] = ""
    command: Annotated[
        tuple[str, ...],
        Meta(
            description="For the backend `command`: program and arguments, run in the sandbox. `{text}` is a text file, "
            "`{output}` the sound file to write (WAV, MP3 or OGG), `{voice}` and `{language}` the settings.",
        ),
    ] = ()
    timeout: Annotated[
        float, Meta(gt=0, le=3600, description="Seconds that one text may take.")
    ] = 120.0


class MediaSettings(Section, frozen=True):
    """Documents, pictures, speech: each sense is `auto`, `off` or a backend. `hermes doctor` shows what `auto` found."""

    documents: Annotated[
        Literal["auto", "off"],
        Meta(
            description="Whether the text of PDF, Office and other documents is read: `auto` with what is installed, or `off`."
        ),
    ] = "auto"
    vision: Annotated[
        str,
        Meta(
            min_length=1,
            description="How `vision_analyze` looks at pictures. `auto`: the model itself if it sees, else a model that "
            "describes them (`auxiliary.vision`), else OCR. Or `off`, `ocr`, or a model that answers: `provider:model`.",
        ),
    ] = "auto"
    image_generation: Annotated[
        str,
        Meta(
            min_length=1,
            description="What makes pictures: `openai`, `xai`, `fal`, `command`, or a name from `custom_providers` that has "
            "OpenAI's images API. `auto` takes `command` if there is one, else the first with a key; `off` for none.",
        ),
    ] = "auto"
    images: ImageGenerationSettings = ImageGenerationSettings()
    speech_in: Annotated[
        str,
        Meta(
            min_length=1,
            description="What understands voice notes and recordings: `moonshine` (English) or `whisper` on this machine, "
            "`openai` (any service with OpenAI's API) or `command`. `auto` takes what is set up; `off` for none.",
        ),
    ] = "auto"
    speech_out: Annotated[
        str,
        Meta(
            min_length=1,
            description="What speaks: `piper`, `espeak-ng` or `flite` on this machine, `openai`, `elevenlabs` or `command`. "
            "`auto` takes what is set up; `off` for none.",
        ),
    ] = "auto"
    language: Annotated[
        str,
        Meta(
            pattern=r"^$|^[a-z]{2,3}$",
            description="The language of recordings, such as `en` or `de`; empty to detect it.",
        ),
    ] = ""
    voice: Annotated[
        str,
        Meta(
            description="The voice: a name or id that the backend knows, or the path of a Piper voice; empty for its default."
        ),
    ] = ""
    spoken_replies: Annotated[
        Literal["off", "on", "tts"],
        Meta(
            description="Spoken replies where `/voice` said nothing: `on` speaks replies to voice notes, `tts` all of them."
        ),
    ] = "off"
    transcription: TranscriptionSettings = TranscriptionSettings()
    speech: SpeechSettings = SpeechSettings()

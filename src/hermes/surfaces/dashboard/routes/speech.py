"""Routes of speech: what is set up, a recording as text, and a text as sound."""

import tempfile
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from hermes.app.kept_recordings import KeptRecordings
from hermes.app.speech import can_listen, can_speak, speech_deps
from hermes.media.spoken_text import spoken
from hermes.surfaces.dashboard.dashboard import Dashboard
from hermes.surfaces.web.endpoint import Endpoint, EndpointCall

_MAX_RECORDING_BYTES = 40 * 1024 * 1024
_MAX_TEXT_CHARACTERS = 20_000


class SpeechState(msgspec.Struct, frozen=True):
    """What this dashboard can do: understand recordings, and speak."""

    listens: bool
    speaks: bool


class HeardText(msgspec.Struct, frozen=True):
    """What was said; `language` is empty where it is not known. A message names the `recording` that it was said in."""

    text: str
    language: str
    recording: str


class TextToSpeak(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    text: Annotated[
        str, Meta(max_length=_MAX_TEXT_CHARACTERS, description="May be Markdown.")
    ]


class SpokenAudio(msgspec.Struct, frozen=True):
    """A sound file; `data` is base64, and empty if there is nothing to read aloud."""

    media_type: str
    data: bytes


class SpeechRoutes:
    """Handlers over one dashboard."""

    def __init__(self, dashboard: Dashboard) -> None:
        self._app = dashboard.app
        self._queue = dashboard.speech

    def endpoints(self) -> list[Endpoint]:
        return [
            Endpoint("GET", "/api/speech", "observe", self.state, answer=SpeechState),
            Endpoint(
                "POST",
                "/api/speech",
                "chat",
                self.speak,
                body=TextToSpeak,
                answer=SpokenAudio,
            ),
            Endpoint(
                "POST",
                "/api/speech/transcriptions",
                "chat",
                self.transcribe,
                body=bytes,
                answer=HeardText,
                max_body_bytes=_MAX_RECORDING_BYTES,
            ),
        ]

    def state(self) -> SpeechState:
        """Whether recordings are understood here, and whether text can be spoken."""
        deps = speech_deps(self._app)
        return SpeechState(can_listen(deps), can_speak(deps))

    async def transcribe(self, call: EndpointCall) -> HeardText:
        """The text of a recording, which is kept until its message is sent. The body is the sound file itself."""
        return await self._queue.run(self._transcribe, call.body)

    async def speak(self, call: EndpointCall) -> SpokenAudio:
        """A text as sound, without Markdown and code."""
        return await self._queue.run(self._speak, call.body.text)

    def _transcribe(self, recording: bytes) -> HeardText:
        from hermes.media.speech_in import transcribe

        with tempfile.TemporaryDirectory(prefix="hermes-recording-") as folder:
            path = Path(folder) / "recording.wav"
            path.write_bytes(recording)
            found = transcribe(speech_deps(self._app), path)
        kept = KeptRecordings(self._app.home).keep(recording)
        return HeardText(found.text, found.language, kept)

    def _speak(self, text: str) -> SpokenAudio:
        from hermes.media.speech_out import speak

        if not spoken(text):
            return SpokenAudio("audio/wav", b"")
        audio = speak(speech_deps(self._app), text, converts=False)
        return SpokenAudio(audio.media_type, audio.data)

"""Speech over HTTP: OpenAI's `/audio/transcriptions` and `/audio/speech`, which many servers offer, and ElevenLabs."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

import msgspec

from hermes.errors import MediaError, MediaErrorKind
from hermes.media.audio import (
    Audio,
    AudioFormat,
    audio_format,
    cut_at_pauses,
    samples_of,
    wav_of,
)
from hermes.media.speech_deps import SpeechDeps
from hermes.media.speech_in import SENSE as SPEECH_IN
from hermes.media.speech_in import Transcript
from hermes.media.speech_out import SENSE as SPEECH_OUT
from hermes.text.translation import JoinedWords, LaterWords, translator

t = translator(__name__)

if TYPE_CHECKING:
    import httpx2

_OPENAI = "https://api.openai.com/v1"
_ELEVENLABS = "https://api.elevenlabs.io/v1"
_MAX_UPLOAD_BYTES = 24_000_000  # OpenAI accepts 25 MB
_MAX_PIECE_S = 600.0
_MAX_ANSWER_BYTES = 100 * 1024**2
_CONNECT_TIMEOUT_S = 15.0
_OPENAI_FORMATS: dict[AudioFormat, str] = {"wav": "wav", "mp3": "mp3", "ogg": "opus"}
_DEFAULT_ELEVENLABS_VOICE = "21m00Tcm4TlvDq8ikWAM"


class _TranscriptionAnswer(msgspec.Struct):
    text: str = ""
    language: str = ""


class AudioService:
    """One service: its address, its key, and the meaning of its errors."""

    def __init__(self, url: str, headers: Mapping[str, str], sense: str) -> None:
        self._url = url
        self._headers = headers
        self._sense = sense

    @property
    def host(self) -> str:
        return urlsplit(self._url).hostname or self._url

    def post(self, path: str, timeout_s: float, **content: Any) -> bytes:
        """Sends a request. Raises MediaError for every failure."""
        import httpx2  # imported only for a request: it takes longer than everything before it

        timeout = httpx2.Timeout(timeout_s, connect=_CONNECT_TIMEOUT_S)
        try:
            with (
                httpx2.Client(timeout=timeout, follow_redirects=False) as client,
                client.stream(
                    "POST", self._url + path, headers=self._headers, **content
                ) as answer,
            ):
                data = self._body(answer)
        except httpx2.TimeoutException as error:
            raise self._error(
                MediaErrorKind.NETWORK,
                t.later(
                    "{host} took longer than {timeout_s:g} s.",
                    host=self.host,
                    timeout_s=timeout_s,
                ),
            ) from error
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise self._error(
                MediaErrorKind.NETWORK,
                t.later(
                    "{host} can't be reached: {error}.", host=self.host, error=error
                ),
            ) from error
        if answer.status_code != 200:
            raise self._failure(answer.status_code, data)
        return data

    def _body(self, answer: "httpx2.Response") -> bytes:
        chunks: list[bytes] = []
        size = 0
        for chunk in answer.iter_bytes():
            size += len(chunk)
            if size > _MAX_ANSWER_BYTES:
                raise self._error(
                    MediaErrorKind.TOO_LARGE,
                    t.later(
                        "{host} sent more than {size} MB.",
                        host=self.host,
                        size=_MAX_ANSWER_BYTES // 1024**2,
                    ),
                )
            chunks.append(chunk)
        return b"".join(chunks)

    def _failure(self, status: int, data: bytes) -> MediaError:
        """Returns the error for an HTTP status, for the person and the model."""
        said = " ".join(data[:300].decode("utf-8", "replace").split())
        detail = t.later("It says: {said}", said=said) if said else ""
        host = self.host
        if status in (401, 403):
            kind, text = (
                MediaErrorKind.REFUSED,
                t.later(
                    "{host} rejected the key ({status}).", host=host, status=status
                ),
            )
        elif status in (402, 429):
            text = t.later(
                "{host} refused: too many requests, or no credit ({status}).",
                host=host,
                status=status,
            )
            kind = MediaErrorKind.REFUSED
        elif status == 413:
            kind, text = (
                MediaErrorKind.TOO_LARGE,
                t.later("It is too large for {host}.", host=host),
            )
        elif status == 404:
            text = t.later("{host} has no such address or model (404).", host=host)
            kind = MediaErrorKind.NOT_SUPPORTED
        elif status >= 500:
            kind, text = (
                MediaErrorKind.NETWORK,
                t.later("{host} failed ({status}).", host=host, status=status),
            )
        else:
            kind, text = (
                MediaErrorKind.REFUSED,
                t.later("{host} refused ({status}).", host=host, status=status),
            )
        return self._error(kind, JoinedWords(text, detail))

    def _error(self, kind: MediaErrorKind, text: str | LaterWords) -> MediaError:
        return MediaError(kind, text, sense=self._sense)


def _openai(deps: SpeechDeps, url: str, sense: str) -> AudioService:
    """Returns a service with OpenAI's API. A custom one may need no key, and never gets the key for OpenAI."""
    key = deps.key("VOICE_API_KEY", *(() if url else ("OPENAI_API_KEY",)))
    if not key and not url:
        raise MediaError(
            MediaErrorKind.NOT_CONFIGURED,
            t.later("OpenAI needs a key."),
            sense=sense,
            hint=t.later("Store it with: hermes config set VOICE_API_KEY"),
        )
    headers = {"authorization": f"Bearer {key}"} if key else {}
    return AudioService((url or _OPENAI).rstrip("/"), headers, sense)


class OpenAITranscriber:
    """Any service with OpenAI's `/audio/transcriptions`."""

    name = "openai"

    def __init__(self, deps: SpeechDeps) -> None:
        self._deps = deps
        self._options = deps.settings.transcription
        self._service = _openai(deps, self._options.url, SPEECH_IN)

    @property
    def label(self) -> str:
        return f"{self._options.model or 'whisper-1'} at {self._service.host}"

    def transcribe(self, path: Path, language: str) -> Transcript:
        """Sends the file as it is. A file that is too large is sent as WAV pieces, cut at pauses."""
        if path.stat().st_size <= _MAX_UPLOAD_BYTES:
            return self._one(path.name, path.read_bytes(), language)
        from hermes.media.audio_conversion import decoded

        samples, rate = samples_of(decoded(path, self._deps.environment))
        found = [
            self._one(f"part-{number}.wav", wav_of(piece, rate), language)
            for number, piece in enumerate(cut_at_pauses(samples, rate, _MAX_PIECE_S))
        ]
        text = " ".join(filter(None, (one.text.strip() for one in found)))
        return Transcript(text=text, language=found[0].language)

    def _one(self, name: str, data: bytes, language: str) -> Transcript:
        fields = {"model": self._options.model or "whisper-1"}
        if language:
            fields["language"] = language
        answer = self._service.post(
            "/audio/transcriptions",
            self._options.timeout,
            data=fields,
            files={"file": (name, data)},
        )
        try:
            read = msgspec.json.decode(answer, type=_TranscriptionAnswer)
        except msgspec.MsgspecError as error:
            raise MediaError(
                MediaErrorKind.NETWORK,
                t.later(
                    "{host} sent an answer that is not a transcript.",
                    host=self._service.host,
                ),
                sense=SPEECH_IN,
            ) from error
        return Transcript(text=read.text, language=read.language)


class OpenAISpeaker:
    """Any service with OpenAI's `/audio/speech`."""

    name = "openai"
    max_characters = 4_000

    def __init__(self, deps: SpeechDeps) -> None:
        self._options = deps.settings.speech
        self._voice = deps.settings.voice or "alloy"
        self._service = _openai(deps, self._options.url, SPEECH_OUT)

    @property
    def label(self) -> str:
        return f"{self._options.model or 'tts-1'} at {self._service.host}"

    def speak(self, text: str, wanted: AudioFormat) -> Audio:
        body = {
            "model": self._options.model or "tts-1",
            "input": text,
            "voice": self._voice,
            "response_format": _OPENAI_FORMATS[wanted],
        }
        data = self._service.post("/audio/speech", self._options.timeout, json=body)
        return _received(data, self._service.host)


class ElevenLabsSpeaker:
    """ElevenLabs. The voice is an id of its library."""

    name = "elevenlabs"
    max_characters = 2_500

    def __init__(self, deps: SpeechDeps) -> None:
        key = deps.key("ELEVENLABS_API_KEY")
        if not key:
            raise MediaError(
                MediaErrorKind.NOT_CONFIGURED,
                t.later("ElevenLabs needs a key."),
                sense=SPEECH_OUT,
                hint=t.later("Store it with: hermes config set ELEVENLABS_API_KEY"),
            )
        self._options = deps.settings.speech
        self._voice = deps.settings.voice or _DEFAULT_ELEVENLABS_VOICE
        # An address in the settings is for ElevenLabs' proxies; `auto` treats an address as OpenAI's API.
        url = self._options.url if deps.settings.speech_out == "elevenlabs" else ""
        self._service = AudioService(
            (url or _ELEVENLABS).rstrip("/"), {"xi-api-key": key}, SPEECH_OUT
        )

    @property
    def label(self) -> str:
        return f"voice {self._voice} at {self._service.host}"

    def speak(self, text: str, wanted: AudioFormat) -> Audio:  # noqa: ARG002 - MP3 is what every plan has
        body = {
            "text": text,
            "model_id": self._options.model or "eleven_multilingual_v2",
        }
        data = self._service.post(
            f"/text-to-speech/{quote(self._voice, safe='')}?output_format=mp3_44100_128",
            self._options.timeout,
            json=body,
        )
        return _received(data, self._service.host)


def _received(data: bytes, host: str) -> Audio:
    kind = audio_format(data)
    if kind is None:
        raise MediaError(
            MediaErrorKind.NOT_SUPPORTED,
            t.later("{host} sent a file that is not WAV, MP3 or OGG.", host=host),
            sense=SPEECH_OUT,
        )
    return Audio(data, kind)

"""Sound in memory: detecting formats, WAV files, and cutting long recordings."""

import array
import io
import sys
import wave
from collections.abc import Iterable, Sequence
from typing import Literal, TypeAlias

import msgspec

from hermes.text.translation import translator

t = translator(__name__)


AudioFormat: TypeAlias = Literal["wav", "mp3", "ogg"]

MEDIA_TYPES: dict[AudioFormat, str] = {
    "wav": "audio/wav",
    "mp3": "audio/mpeg",
    "ogg": "audio/ogg",
}
SPEECH_RATE_HZ = 16_000
"""The sample rate of speech recognition."""
_FRAME_S = 0.03
_SEARCHED_SHARE = 0.5  # of the longest piece, where a pause is searched


class Audio(msgspec.Struct, frozen=True):
    """A sound file in memory."""

    data: bytes
    format: AudioFormat

    @property
    def media_type(self) -> str:
        return MEDIA_TYPES[self.format]


def audio_format(data: bytes) -> AudioFormat | None:
    """Detects the format from the first bytes; None for an unknown format."""
    if data[:4] == b"RIFF" and data[8:12] == b"WAVE":
        return "wav"
    if data[:4] == b"OggS":
        return "ogg"
    is_frame = data[:1] == b"\xff" and len(data) > 1 and data[1] & 0xE0 == 0xE0
    return "mp3" if data[:3] == b"ID3" or is_frame else None


def sound_type(data: bytes) -> str:
    """Detects the media type of a sound file from its first bytes; empty if it is not one."""
    known = audio_format(data)
    if known:
        return MEDIA_TYPES[known]
    if data[:4] == b"fLaC":
        return "audio/flac"
    if data[4:8] == b"ftyp":
        return "audio/mp4"
    if data[:5] == b"#!AMR":
        return "audio/amr"
    return "audio/webm" if data[:4] == b"\x1aE\xdf\xa3" else ""


def join_audio(parts: Sequence[Audio]) -> Audio:
    """Joins files of the same format. MP3 frames and Ogg streams can be concatenated; WAV needs a single header."""
    first = parts[0]
    if len(parts) == 1:
        return first
    if first.format != "wav":
        return Audio(b"".join(part.data for part in parts), first.format)
    out = io.BytesIO()
    with wave.open(out, "wb") as writer:
        for number, part in enumerate(parts):
            with wave.open(io.BytesIO(part.data)) as reader:
                if not number:
                    writer.setparams(reader.getparams())
                writer.writeframes(reader.readframes(sys.maxsize // 4))
    return Audio(out.getvalue(), "wav")


def wav_of(samples: "array.array[int]", rate: int = SPEECH_RATE_HZ) -> bytes:
    """Returns a WAV file with one channel of 16-bit samples."""
    out = io.BytesIO()
    with wave.open(out, "wb") as writer:
        writer.setnchannels(1)
        writer.setsampwidth(2)
        writer.setframerate(rate)
        writer.writeframes(samples.tobytes())
    return out.getvalue()


def samples_of(wav: bytes) -> "tuple[array.array[int], int]":
    """Returns the samples and rate of a mono 16-bit WAV file. Raises wave.Error or ValueError for any other file."""
    with wave.open(io.BytesIO(wav)) as reader:
        if reader.getnchannels() != 1 or reader.getsampwidth() != 2:
            raise ValueError(t.logged("it has more than one channel, or not 16 bits"))
        samples = array.array("h")
        frames = reader.readframes(reader.getnframes())
        samples.frombytes(frames[: len(frames) // 2 * 2])
        return samples, reader.getframerate()


def cut_at_pauses(
    samples: "array.array[int]", rate: int, max_s: float
) -> Iterable["array.array[int]"]:
    """Yields pieces of at most `max_s` seconds, each cut at the quietest moment of its second half."""
    longest = max(1, int(max_s * rate))
    frame = max(1, int(_FRAME_S * rate))
    start = 0
    while len(samples) - start > longest:
        earliest = start + int(longest * _SEARCHED_SHARE)
        cut = min(
            range(earliest, start + longest, frame),
            key=lambda at: _loudness(samples[at : at + frame]),
        )
        cut = min(cut + frame // 2, start + longest)
        yield samples[start:cut]
        start = cut
    yield samples[start:]


def _loudness(samples: "array.array[int]") -> int:
    return sum(map(abs, samples))

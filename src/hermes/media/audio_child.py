"""The child program that processes an untrusted sound file: `audio_child TASK ...`, file on stdin, JSON on stdout.

It converts between formats with PyAV, and recognizes speech with Moonshine or Whisper. It runs in the sandbox and
limits itself, because a file may be crafted to exploit its reader.
"""

import array
import os
import resource
import sys
import wave
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from typing import IO, Any

import msgspec

from hermes.children.one_result import write_one_result
from hermes.media.audio import SPEECH_RATE_HZ, cut_at_pauses, samples_of, wav_of
from hermes.text.translation import translator

t = translator(__name__)


MAX_RECORDING_S = 2 * 3600
_MAX_CPU_S = 3 * 3600
_MAX_MEMORY_BYTES = 8 * 1024**3  # address space; the models reserve much of it
_MOONSHINE_PIECE_S = 45.0
_WHISPER_PIECE_S = 600.0
_MAX_THREADS = 4
_SPEECH_BITS_PER_S = 48_000  # enough for one voice
_CODECS = {"ogg": ("libopus", 48_000), "mp3": ("libmp3lame", 44_100)}


class _NotUsable(Exception):
    """A file that is intact, but can't be used here."""


class ChildAudio(msgspec.Struct, frozen=True, tag="audio"):
    """A converted file."""

    data: bytes


class ChildTranscript(msgspec.Struct, frozen=True, tag="transcript"):
    """The recognized text. `is_doubtful` means that the speech is probably in another language than assumed."""

    text: str
    language: str
    is_doubtful: bool = False


class ChildProblem(msgspec.Struct, frozen=True, tag="problem"):
    """Why the task failed. `package` is the missing package, if that is the reason."""

    message: str
    package: str = ""


def decode(file: IO[bytes]) -> "array.array[int]":
    """Returns the sound as one channel of 16-bit samples at 16,000 Hz. WAV files of that kind need no library."""
    plain = _plain_samples(file.read())
    if plain is not None:
        return plain
    file.seek(0)
    samples = array.array("h")
    for frame in _resampled(file, "s16", SPEECH_RATE_HZ):
        samples.frombytes(frame.to_ndarray().tobytes())
        if len(samples) > MAX_RECORDING_S * SPEECH_RATE_HZ:
            raise _NotUsable(
                t.logged(
                    "it is longer than {hours} hours",
                    hours=MAX_RECORDING_S // 3600,
                )
            )
    return samples


def _plain_samples(data: bytes) -> "array.array[int] | None":
    """Returns the samples of a WAV file that needs no conversion; None for any other file."""
    try:
        samples, rate = samples_of(data)
    except (wave.Error, ValueError, EOFError):
        return None
    return samples if rate == SPEECH_RATE_HZ else None


def _resampled(file: IO[bytes], sample_format: str, rate: int) -> Iterator[Any]:
    av: Any = import_module("av")
    resampler = av.AudioResampler(format=sample_format, layout="mono", rate=rate)
    with av.open(file) as container:
        if not container.streams.audio:
            raise _NotUsable(t.logged("there is no sound in it"))
        for frame in container.decode(audio=0):
            yield from resampler.resample(frame)
        yield from resampler.resample(None)


def encode(file: IO[bytes], wanted: str) -> bytes:
    """Returns the sound in another format: `wav`, `ogg` (Opus) or `mp3`."""
    import io

    av: Any = import_module("av")
    if wanted == "wav":
        return wav_of(decode(file))
    codec, rate = _CODECS[wanted]
    out = io.BytesIO()
    with av.open(out, "w", format=wanted) as container:
        stream = container.add_stream(codec, rate=rate, layout="mono")
        stream.bit_rate = _SPEECH_BITS_PER_S
        for frame in _resampled(file, stream.format.name, rate):
            frame.pts = None
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return out.getvalue()


def understand_english(
    samples: "array.array[int]", *, is_sure: bool
) -> ChildTranscript:
    """Transcribes with Moonshine, whose package includes its model. Unless `is_sure`, checks that it is English."""
    from pathlib import Path

    from hermes.media.english_check import is_english

    moonshine: Any = import_module("moonshine_voice")
    folder = Path(str(moonshine.get_assets_path())) / "tiny-en"
    lines: list[str] = []
    spoken: list[array.array[int]] = []
    with moonshine.Transcriber(str(folder), moonshine.ModelArch.TINY) as transcriber:
        for piece in cut_at_pauses(samples, SPEECH_RATE_HZ, _MOONSHINE_PIECE_S):
            for line in transcriber.transcribe_without_streaming(
                [sample / 32768 for sample in piece], SPEECH_RATE_HZ
            ).lines:
                begin = int(line.start_time * SPEECH_RATE_HZ)
                end = begin + int(line.duration * SPEECH_RATE_HZ)
                lines.append(line.text)
                spoken.append(piece[begin:end])
    is_doubtful = not is_sure and not is_english(spoken, folder)
    return ChildTranscript(_joined(lines), "en", is_doubtful)


def understand(
    samples: "array.array[int]", model: str, language: str
) -> ChildTranscript:
    """Transcribes with Whisper, in the given language or the one detected in the first piece."""
    # Threads that wait by spinning take a quarter more CPU time, and more if the cores are busy.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    np: Any = import_module("numpy")
    library: Any = import_module("faster_whisper")
    whisper = library.WhisperModel(
        model,
        device="cpu",
        compute_type="int8",
        cpu_threads=min(_MAX_THREADS, os.cpu_count() or 1),
        local_files_only=True,
    )
    whisper.encode = _EncodedOnce(whisper.encode)
    lines: list[str] = []
    for piece in cut_at_pauses(samples, SPEECH_RATE_HZ, _WHISPER_PIECE_S):
        sound = np.frombuffer(piece.tobytes(), np.int16).astype(np.float32) / 32768
        found, info = whisper.transcribe(
            sound, language=language or None, vad_filter=True, beam_size=1
        )
        lines += [segment.text for segment in found]
        language = language or info.language
    return ChildTranscript(_joined(lines), language)


class _EncodedOnce:
    """Caches Whisper's encoder, which does most of the work for a short recording.

    The library encodes the first 30 seconds twice: to detect the language, and for the text. The second time, the last
    frame of a short recording is missing, which is silence.
    """

    def __init__(self, encode: Callable[[Any], Any]) -> None:
        self._encode = encode
        self._features: Any = None
        self._encoded: Any = None

    def __call__(self, features: Any) -> Any:
        if self._features is None or not self._is_same(features):
            self._features, self._encoded = features, self._encode(features)
        return self._encoded

    def _is_same(self, features: Any) -> bool:
        if features.shape != self._features.shape:
            return False
        return (features != self._features).any(axis=-2).sum() <= 1


def _joined(lines: Iterable[str]) -> str:
    return " ".join(filter(None, (line.strip() for line in lines)))


def work(
    task: str, arguments: list[str], file: IO[bytes]
) -> ChildAudio | ChildTranscript | ChildProblem:
    """Runs the task. A broken file is reported as a problem, never raised."""
    try:
        return _done(task, arguments, file)
    except ImportError as error:
        return ChildProblem(
            t.logged("the package {name} is missing", name=error.name), error.name or ""
        )
    except MemoryError:
        return ChildProblem(t.logged("it needs too much memory"))
    except Exception as error:  # noqa: BLE001 - libraries raise anything for a broken file
        return ChildProblem(_reason(error))


def _reason(error: Exception) -> str:
    """Returns why a file can't be read. PyAV's errors have the readable text in `strerror`."""
    if isinstance(error, _NotUsable):
        return str(error)
    words = getattr(error, "strerror", None) or str(error)
    text = " ".join((words or type(error).__name__).split())[:300].rstrip(".")
    return t.logged("it is damaged, or not a sound file ({text})", text=text)


def _done(
    task: str, arguments: list[str], file: IO[bytes]
) -> ChildAudio | ChildTranscript:
    match task, arguments:
        case "convert", [wanted]:
            return ChildAudio(encode(file, wanted))
        case "moonshine", language:
            return understand_english(decode(file), is_sure=language == ["en"])
        case "whisper", [model, *language]:
            return understand(decode(file), model, "".join(language))
        case _:
            raise ValueError(f"there is no task {task}")  # not translated


def main() -> None:
    """Reads the file from stdin, and writes the result to stdout."""
    write_one_result(
        lambda file: msgspec.json.encode(work(sys.argv[1], sys.argv[2:], file)),
        {
            resource.RLIMIT_AS: _MAX_MEMORY_BYTES,
            resource.RLIMIT_CPU: _MAX_CPU_S,
        },
    )


if __name__ == "__main__":
    main()

"""Converts sound files and recognizes speech in a separate process (`audio_child`), in the sandbox and with limits."""

from collections.abc import Mapping
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from typing import BinaryIO

import msgspec

from hermes.children.own_python import module_command
from hermes.errors import MediaError, MediaErrorKind
from hermes.media.audio import Audio, AudioFormat, audio_format
from hermes.media.audio_child import ChildAudio, ChildProblem, ChildTranscript
from hermes.text.install_words import install_hint
from hermes.text.translation import translator
from hermes.tools.sandbox.confined_run import ConfinedProgram, run_confined
from hermes.tools.sandbox.session_tmp import TemporaryFolder

t = translator(__name__)

_MAX_OUTPUT_BYTES = 400 * 1024**2
_CONVERSION_TIMEOUT_S = 300.0
_SENSE = "sound conversion"
_UNREADABLE_HINT = t.later(
    "The file is unchanged. Record it again, or convert it to WAV, MP3 or OGG."
)
_RESULT = msgspec.json.Decoder(ChildAudio | ChildTranscript | ChildProblem)


def can_convert() -> bool:
    """Returns whether the library for sound formats is installed."""
    return find_spec("av") is not None


def converted(
    audio: Audio, wanted: AudioFormat, environment: Mapping[str, str]
) -> Audio:
    """Converts sound to another format. Raises MediaError if that is not possible."""
    with closing(TemporaryFolder()) as temporary:
        path = temporary.path() / "sound"
        path.write_bytes(audio.data)
        return Audio(_convert(path, wanted, environment), wanted)


def decoded(path: Path, environment: Mapping[str, str]) -> bytes:
    """Converts a recording to WAV: one channel, 16 bits, 16,000 samples per second. Raises MediaError or OSError."""
    return _convert(path, "wav", environment)


def _convert(path: Path, wanted: AudioFormat, environment: Mapping[str, str]) -> bytes:
    result = run_audio_child(
        path, ("convert", wanted), environment, _CONVERSION_TIMEOUT_S, _SENSE
    )
    if not isinstance(result, ChildAudio) or audio_format(result.data) != wanted:
        raise MediaError(
            MediaErrorKind.NOT_SUPPORTED,
            t.later("The sound can't be converted to {wanted}.", wanted=wanted),
            sense=_SENSE,
        )
    return result.data


def run_audio_child(
    path: Path,
    task: tuple[str, ...],
    environment: Mapping[str, str],
    timeout_s: float,
    sense: str,
    model: Path | None = None,
) -> ChildAudio | ChildTranscript:
    """Runs a task on a file, with a model in its folder.

    Raises MediaError if the task fails, or OSError if the file can't be read.
    """
    program = ConfinedProgram(
        argv=module_command("hermes.media.audio_child", *task),
        environment=environment,
        timeout_s=timeout_s,
        max_output_bytes=_MAX_OUTPUT_BYTES,
        readable=(model,) if model else (),
    )
    with path.open("rb") as file, closing(TemporaryFolder()) as temporary:
        data = _run(program, file, temporary.path(), sense)
    try:
        result = _RESULT.decode(data)
    except msgspec.MsgspecError:
        raise MediaError(
            MediaErrorKind.NOT_SUPPORTED,
            t.later("{name} can't be read: its reader stopped.", name=path.name),
            sense=sense,
            hint=t.later("The recording is too long, or damaged."),
        ) from None
    if isinstance(result, ChildProblem):
        kind = (
            MediaErrorKind.NOT_CONFIGURED
            if result.package
            else MediaErrorKind.NOT_SUPPORTED
        )
        raise MediaError(
            kind,
            t.later(
                "{name} can't be read: {message}.",
                name=path.name,
                message=result.message,
            ),
            sense=sense,
            hint=install_hint("voice") if result.package else _UNREADABLE_HINT,
        )
    return result


def _run(program: ConfinedProgram, file: BinaryIO, folder: Path, sense: str) -> bytes:
    try:
        return run_confined(program, folder, file.fileno()).data
    except OSError as error:
        raise MediaError(
            MediaErrorKind.NOT_SUPPORTED,
            t.later("The audio converter could not start: {error}.", error=error),
            sense=sense,
        ) from error

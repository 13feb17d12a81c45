"""Voices on this machine, each a separate program: Piper (natural, GPL), espeak-ng and flite (robotic, tiny).

They run in the sandbox without a network, read the text from a file and write a WAV file.
"""

from contextlib import closing
from pathlib import Path

from hermes.children.helper_programs import find_program
from hermes.errors import MediaError, MediaErrorKind
from hermes.media.audio import Audio, AudioFormat, audio_format
from hermes.media.audio_commands import written_file
from hermes.media.speech_deps import SpeechDeps
from hermes.media.speech_models import PIPER, model_path, piper_program
from hermes.media.speech_out import SENSE
from hermes.text.translation import LaterWords, LoggedWords, translator
from hermes.tools.sandbox.confined_run import ConfinedProgram, run_confined
from hermes.tools.sandbox.session_tmp import TemporaryFolder

t = translator(__name__)

_MAX_ERROR_BYTES = 100_000


class SpeechProgram:
    """A program that speaks. Raises MediaError if it is not installed."""

    name = ""
    max_characters = 5_000

    def __init__(self, deps: SpeechDeps) -> None:
        self._deps = deps
        self._program = self._find(deps)

    @property
    def label(self) -> str:
        return t.logged("{name} on this machine", name=self.name)

    def speak(self, text: str, wanted: AudioFormat) -> Audio:  # noqa: ARG002 - these programs make WAV
        """Speaks a text. Raises MediaError if the program fails."""
        with closing(TemporaryFolder()) as temporary:
            folder = temporary.path()
            words, output = folder / "text.txt", folder / "output.wav"
            words.write_text(text)
            program = ConfinedProgram(
                argv=(self._program, *self._arguments(words, output)),
                environment=self._deps.environment,
                timeout_s=self._deps.settings.speech.timeout,
                max_output_bytes=_MAX_ERROR_BYTES,
                readable=self._readable(),
            )
            try:
                said = run_confined(program, folder)
            except OSError as error:
                raise self._failed(str(error)) from error
            data = written_file(output)
        if said.exit_code or audio_format(data) != "wav":
            raise self._failed(said.data.decode("utf-8", "replace").strip()[-300:])
        return Audio(data, "wav")

    def _readable(self) -> tuple[Path, ...]:
        """Returns the folders that the program needs, wherever they are."""
        return ()

    def _find(self, deps: SpeechDeps) -> str:
        program = find_program(self.name, deps.environment)
        if program is None:
            raise self._missing(
                t.later("Install the package {name} of your system.", name=self.name)
            )
        return program

    def _arguments(self, words: Path, output: Path) -> tuple[str, ...]:
        raise NotImplementedError

    def _missing(self, hint: LaterWords) -> MediaError:
        return MediaError(
            MediaErrorKind.NOT_CONFIGURED,
            t.later("{name} is not installed.", name=self.name),
            sense=SENSE,
            hint=hint,
        )

    def _failed(self, why: str) -> MediaError:
        return MediaError(
            MediaErrorKind.NOT_SUPPORTED,
            t.later(
                "{name} could not speak this: {reason}.",
                name=self.name,
                reason=LoggedWords(why) if why else t.later("it took too long"),
            ),
            sense=SENSE,
        )


class PiperSpeaker(SpeechProgram):
    """Piper, with the downloaded voice or one of the user's own (`media.voice`)."""

    name = "piper"

    def __init__(self, deps: SpeechDeps) -> None:
        own = Path(deps.settings.voice).expanduser() if deps.settings.voice else None
        if own is not None and own.suffix == ".onnx":
            self._voice = own
            if not own.is_file():
                raise self._missing(
                    t.later("There is no voice {own} (media.voice).", own=own)
                )
        else:
            folder = model_path(PIPER, deps.models)
            if folder is None:
                raise self._missing(t.later("Download it with: hermes voice add piper"))
            self._voice = folder / PIPER.files[0].name
        super().__init__(deps)

    def _find(self, deps: SpeechDeps) -> str:  # pyrefly: ignore[missing-override-decorator]
        own = piper_program(deps.models)
        program = str(own) if own else find_program(self.name, deps.environment)
        if program is None:
            raise self._missing(t.later("Download it with: hermes voice add piper"))
        return program

    def _readable(self) -> tuple[Path, ...]:  # pyrefly: ignore[missing-override-decorator]
        own = piper_program(self._deps.models)
        return (self._voice.parent, *((own.parents[1],) if own else ()))

    def _arguments(self, words: Path, output: Path) -> tuple[str, ...]:  # pyrefly: ignore[missing-override-decorator]
        return ("-m", str(self._voice), "-i", str(words), "-f", str(output))


class EspeakSpeaker(SpeechProgram):
    """espeak-ng: many languages."""

    name = "espeak-ng"

    def _arguments(self, words: Path, output: Path) -> tuple[str, ...]:  # pyrefly: ignore[missing-override-decorator]
        settings = self._deps.settings
        voice = settings.voice or settings.language or "en"
        return ("-v", voice, "-f", str(words), "-w", str(output))


class FliteSpeaker(SpeechProgram):
    """flite: English."""

    name = "flite"

    def _arguments(self, words: Path, output: Path) -> tuple[str, ...]:  # pyrefly: ignore[missing-override-decorator]
        voice = self._deps.settings.voice
        chosen = ("-voice", voice) if voice else ()
        return (*chosen, "-f", str(words), "-o", str(output))

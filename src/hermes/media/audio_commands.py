"""Speech by a command of the user: program and arguments from the settings, run in the sandbox.

The command may use the network, but write only to its temporary folder. Hermes' home is hidden from it.
"""

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from hermes.children.helper_programs import find_program
from hermes.errors import MediaError, MediaErrorKind
from hermes.media.audio import Audio, AudioFormat, audio_format
from hermes.media.speech_deps import SpeechDeps
from hermes.media.speech_in import SENSE as SPEECH_IN
from hermes.media.speech_in import Transcript
from hermes.media.speech_out import SENSE as SPEECH_OUT
from hermes.text.translation import JoinedWords, LaterWords, translator
from hermes.tools.sandbox.confined_run import (
    ConfinedOutput,
    ConfinedProgram,
    run_confined,
)
from hermes.tools.sandbox.session_tmp import TemporaryFolder

t = translator(__name__)


_MAX_TEXT_BYTES = 2_000_000


class SpeechCommand:
    """A command with its placeholders. Raises MediaError if none is set or its program is missing."""

    def __init__(
        self, deps: SpeechDeps, command: tuple[str, ...], setting: str, sense: str
    ) -> None:
        self.sense = sense
        self._deps = deps
        if not command:
            raise self.error(
                MediaErrorKind.NOT_CONFIGURED,
                t.later("There is no command."),
                hint=t.later("Set one: hermes config set {setting}", setting=setting),
            )
        program = find_program(command[0], deps.environment)
        if program is None:
            raise self.error(
                MediaErrorKind.NOT_CONFIGURED,
                t.later("There is no program {command}.", command=command[0]),
                hint=t.later("Install it, or change {setting}.", setting=setting),
            )
        self.program = program
        self._arguments = command[1:]

    def run(
        self, folder: Path, values: Mapping[str, str], timeout_s: float
    ) -> ConfinedOutput:
        """Runs the command with its placeholders filled in. Raises MediaError if it fails."""
        arguments = [_filled(one, values) for one in self._arguments]
        program = ConfinedProgram(
            argv=(self.program, *arguments),
            environment=self._deps.environment,
            timeout_s=timeout_s,
            max_output_bytes=_MAX_TEXT_BYTES,
            reach="network",
            hermes_home=self._deps.home.root,
        )
        name = Path(self.program).name
        try:
            output = run_confined(program, folder)
        except OSError as error:
            raise self.error(
                MediaErrorKind.NOT_SUPPORTED,
                t.later("{name} can't be started: {error}.", name=name, error=error),
            ) from error
        if output.exit_code is None:
            raise self.error(
                MediaErrorKind.NETWORK,
                t.later(
                    "{name} took longer than {timeout_s:g} s.",
                    name=name,
                    timeout_s=timeout_s,
                ),
            )
        if output.exit_code:
            said = " ".join(output.data.decode("utf-8", "replace").split())[-300:]
            raise self.error(
                MediaErrorKind.REFUSED,
                JoinedWords(
                    t.later(
                        "{name} failed with exit code {code}.",
                        name=name,
                        code=output.exit_code,
                    ),
                    said,
                ),
            )
        return output

    def error(
        self, kind: MediaErrorKind, text: str | LaterWords, hint: str | LaterWords = ""
    ) -> MediaError:
        return MediaError(kind, text, sense=self.sense, hint=hint)


def _filled(argument: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        argument = argument.replace(f"{{{name}}}", value)
    return argument


def written_file(path: Path) -> bytes:
    """Returns what the command wrote; empty if it is not a regular file in the folder, for example a link."""
    if path.is_symlink() or not path.is_file():
        return b""
    return path.read_bytes()


class CommandTranscriber:
    """Transcribes with the user's command, which gets a file and prints the text."""

    name = "command"

    def __init__(self, deps: SpeechDeps) -> None:
        self._options = deps.settings.transcription
        self._command = SpeechCommand(
            deps, self._options.command, "media.transcription.command", SPEECH_IN
        )
        self._environment = deps.environment

    @property
    def label(self) -> str:
        return self._command.program

    def transcribe(self, path: Path, language: str) -> Transcript:
        """Transcribes a recording. The command gets it as WAV if Hermes can convert it, otherwise as it is."""
        from hermes.media.audio_conversion import can_convert, decoded

        with closing(TemporaryFolder()) as temporary:
            folder = temporary.path()
            copy = folder / f"input{path.suffix}"
            data = path.read_bytes()
            if audio_format(data) != "wav" and can_convert():
                copy, data = folder / "input.wav", decoded(path, self._environment)
            copy.write_bytes(data)
            output = self._command.run(
                folder,
                {"input": str(copy), "language": language or "auto"},
                self._options.timeout,
            )
        return Transcript(
            text=output.data.decode("utf-8", "replace"), language=language
        )


class CommandSpeaker:
    """Speaks with the user's command, which gets a text file and writes a sound file."""

    name = "command"
    max_characters = 20_000

    def __init__(self, deps: SpeechDeps) -> None:
        self._settings = deps.settings
        self._command = SpeechCommand(
            deps, deps.settings.speech.command, "media.speech.command", SPEECH_OUT
        )

    @property
    def label(self) -> str:
        return self._command.program

    def speak(self, text: str, wanted: AudioFormat) -> Audio:
        with closing(TemporaryFolder()) as temporary:
            folder = temporary.path()
            words, output = folder / "text.txt", folder / f"output.{wanted}"
            words.write_text(text)
            values = {
                "text": str(words),
                "output": str(output),
                "voice": self._settings.voice,
                "language": self._settings.language or "en",
            }
            self._command.run(folder, values, self._settings.speech.timeout)
            data = written_file(output)
        kind = audio_format(data)
        if kind is None:
            raise self._command.error(
                MediaErrorKind.NOT_SUPPORTED,
                t.later(
                    "{name} wrote no WAV, MP3 or OGG file to {{output}}.",
                    name=Path(self._command.program).name,
                ),
            )
        return Audio(data, kind)

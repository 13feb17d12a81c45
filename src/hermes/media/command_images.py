"""A program of the user that makes pictures: it runs in the sandbox and writes a file."""

import asyncio
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from hermes.children.helper_programs import find_program
from hermes.errors import MediaError, MediaErrorKind
from hermes.media.image_generation import SENSE, ImageRequest, MadeImage
from hermes.media.picture_folder import MAX_PICTURE_BYTES, SUFFIXES
from hermes.text.translation import JoinedWords, LaterWords, translator
from hermes.tools.sandbox.confined_run import ConfinedProgram, run_confined
from hermes.tools.sandbox.session_tmp import TemporaryFolder

t = translator(__name__)

_MAX_OUTPUT_BYTES = 1_000_000


class CommandImages:
    """`media.images.command`. It may use the network and write only to its temporary folder; Hermes' home is hidden."""

    name = "command"

    def __init__(
        self,
        command: tuple[str, ...],
        environment: Mapping[str, str],
        hermes_home: Path,
        timeout_s: float,
    ) -> None:
        self._command = command
        self._environment = environment
        self._hermes_home = hermes_home
        self._timeout_s = timeout_s

    @property
    def model(self) -> str:
        """The name of the program."""
        if self._command:
            return Path(self._command[0]).name
        return ""

    async def make(self, request: ImageRequest) -> MadeImage:
        """Runs the program. Raises MediaError if it fails or writes no picture."""
        return await asyncio.to_thread(self._run, request)

    def _run(self, request: ImageRequest) -> MadeImage:
        program = (
            find_program(self._command[0], self._environment) if self._command else None
        )
        if program is None:
            raise MediaError(
                MediaErrorKind.NOT_CONFIGURED,
                t.later(
                    "There is no program {program}.",
                    program=self.model or "in media.images.command",
                ),
                sense=SENSE,
                hint=t.later("The user can change media.images.command."),
            )
        with closing(TemporaryFolder()) as temporary:
            folder = temporary.path()
            output = folder / "output.png"
            arguments = self._arguments(request, folder, output)
            self._start((program, *arguments), folder)
            return MadeImage(self._written(output))

    def _arguments(
        self, request: ImageRequest, folder: Path, output: Path
    ) -> list[str]:
        """Returns the arguments with each `{...}` filled in; `{references}` becomes one argument per picture."""
        references: list[str] = []
        for number, one in enumerate(request.references, 1):
            path = folder / f"reference-{number}{SUFFIXES[one.media_type]}"
            path.write_bytes(one.data)
            references.append(str(path))
        values = {
            "{output}": str(output),
            "{width}": str(request.size.width),
            "{height}": str(request.size.height),
            "{prompt}": _no_option(request.prompt),
        }
        arguments: list[str] = []
        for argument in self._command[1:]:
            if argument == "{references}":
                arguments += references
            else:
                arguments.append(_filled(argument, values))
        return arguments

    def _start(self, argv: tuple[str, ...], folder: Path) -> None:
        program = ConfinedProgram(
            argv=argv,
            environment=self._environment,
            timeout_s=self._timeout_s,
            max_output_bytes=_MAX_OUTPUT_BYTES,
            reach="network",
            hermes_home=self._hermes_home,
        )
        try:
            done = run_confined(program, folder)
        except OSError as error:
            raise self._failed(
                t.later("can't be started: {error}", error=error)
            ) from error
        said = " ".join(done.data.decode("utf-8", "replace").split())[-300:]
        if done.exit_code is None:
            raise self._failed(
                t.later("was stopped after {seconds:g} s", seconds=self._timeout_s),
                said,
            )
        if done.exit_code:
            raise self._failed(
                t.later("ended with exit code {code}", code=done.exit_code), said
            )

    def _written(self, output: Path) -> bytes:
        if output.is_symlink() or not output.is_file():
            raise self._failed(t.later("wrote no picture to {output}"))
        if output.stat().st_size > MAX_PICTURE_BYTES:
            raise self._failed(t.later("wrote a file that is too large"))
        return output.read_bytes()

    def _failed(self, what: LaterWords, said: str = "") -> MediaError:
        text = t.later("{name} {what}.", name=self.model, what=what)
        return MediaError(MediaErrorKind.REFUSED, JoinedWords(text, said), sense=SENSE)


def _no_option(prompt: str) -> str:
    """Returns a prompt that no program can mistake for an option: the model writes the prompt, the user the options."""
    return f" {prompt}" if prompt.startswith("-") else prompt


def _filled(argument: str, values: Mapping[str, str]) -> str:
    """Fills placeholders in one pass, so that a prompt that contains `{output}` stays as it is."""
    for name, value in values.items():
        before, found, after = argument.partition(name)
        if found:
            return _filled(before, values) + value + _filled(after, values)
    return argument

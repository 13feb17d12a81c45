"""The speakers and the microphone of this machine, through programs that play and record sound."""

import asyncio
import os
import signal
from collections.abc import Mapping
from pathlib import Path

from hermes.children.helper_programs import find_program
from hermes.children.piped_child import PipedChild
from hermes.errors import MediaError, MediaErrorKind
from hermes.text.translation import translator

t = translator(__name__)

_PLAYERS: tuple[tuple[str, ...], ...] = (
    ("pw-play", "{file}"),
    ("paplay", "{file}"),
    ("aplay", "-q", "{file}"),
    ("afplay", "{file}"),
    ("ffplay", "-nodisp", "-autoexit", "-loglevel", "error", "{file}"),
    ("play", "-q", "{file}"),
)
_RECORDERS: tuple[tuple[str, ...], ...] = (
    ("pw-record", "--rate", "16000", "--channels", "1", "{file}"),
    ("parecord", "--rate=16000", "--channels=1", "--file-format=wav", "{file}"),
    ("arecord", "-q", "-f", "S16_LE", "-r", "16000", "-c", "1", "{file}"),
    ("rec", "-q", "-r", "16000", "-c", "1", "{file}"),
)
_END_TIMEOUT_S = 5.0
_MAX_REASON_CHARACTERS = 200


class SoundProgram:
    """A program that plays or records one file at a time. It ends with Hermes, even if Hermes is killed."""

    def __init__(
        self, command: tuple[str, ...], sense: str, environment: Mapping[str, str]
    ) -> None:
        self._command = command
        self._sense = sense
        self._environment = environment
        self._child: PipedChild | None = None
        self._is_stopped = False

    @property
    def name(self) -> str:
        """The program's name."""
        return Path(self._command[0]).name

    async def start(self, file: Path) -> None:
        """Starts to play or record a file. Raises MediaError."""
        self._is_stopped = False
        place = os.path.abspath(file)  # noqa: ASYNC240, PTH100 - touches no disk
        command = [one.replace("{file}", place) for one in self._command]
        try:
            self._child = await PipedChild.start(
                command, cwd=file.parent, environment=self._environment
            )
        except OSError as error:
            raise self._failed(error.strerror or str(error)) from error

    async def wait(self) -> None:
        """Waits for the end of the program. Raises MediaError if it failed before anybody stopped it."""
        child = self._child
        if child is None:
            return
        try:
            await child.stderr.closed.wait()
            while (code := await child.wait(_END_TIMEOUT_S)) is None:
                pass  # it closed its stderr but still runs
        finally:
            self._child = None
            await child.stop(grace=0)
        if code and not self._is_stopped:
            raise self._failed(child.stderr.text())

    def stop(self) -> None:
        """Stops the program at once; `wait` then returns."""
        self._is_stopped = True
        if self._child is not None:
            self._child.end()

    async def finish(self) -> None:
        """Stops the program as Ctrl-C does, so that a recording is complete, and waits for its end.

        Raises MediaError if it had failed before.
        """
        child = self._child
        if child is None:
            return
        if child.return_code is None:
            self._is_stopped = True
            if not child.send_signal(signal.SIGINT):  # no process is visible
                child.end()
        try:
            async with asyncio.timeout(_END_TIMEOUT_S):
                await self.wait()
        except TimeoutError:  # `wait` has ended it
            return

    def _failed(self, written: str) -> MediaError:
        reason = " ".join(written.split())
        return MediaError(
            MediaErrorKind.NOT_SUPPORTED,
            t.later(
                "{program} failed: {reason}",
                program=self.name,
                reason=reason[:_MAX_REASON_CHARACTERS] or "-",
            ),
            sense=self._sense,
        )


def find_player(environment: Mapping[str, str]) -> SoundProgram:
    """Returns a program that plays sound. Raises MediaError if there is none."""
    found = _find(_PLAYERS, environment)
    if found is None:
        raise MediaError(
            MediaErrorKind.NOT_CONFIGURED,
            t.later("Nothing here plays sound."),
            sense="speech out",
            hint=t.later("Install one of: {programs}.", programs=_names(_PLAYERS)),
        )
    return SoundProgram(found, "speech out", environment)


def find_recorder(environment: Mapping[str, str]) -> SoundProgram:
    """Returns a program that records from the microphone. Raises MediaError if there is none."""
    found = _find(_RECORDERS, environment)
    if found is None:
        raise MediaError(
            MediaErrorKind.NOT_CONFIGURED,
            t.later("Nothing here records from a microphone."),
            sense="speech in",
            hint=t.later("Install one of: {programs}.", programs=_names(_RECORDERS)),
        )
    return SoundProgram(found, "speech in", environment)


def _find(
    commands: tuple[tuple[str, ...], ...], environment: Mapping[str, str]
) -> tuple[str, ...] | None:
    for name, *arguments in commands:
        program = find_program(name, environment)
        if program is not None and os.access(program, os.X_OK):
            return (program, *arguments)
    return None


def _names(commands: tuple[tuple[str, ...], ...]) -> str:
    return ", ".join(command[0] for command in commands)

"""The tool `text_to_speech`: writes a sound file into the working directory. It never replaces a file."""

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from hermes.core.ports import Tool, ToolContext
from hermes.errors import ToolFailed, UsageError
from hermes.media.speech_deps import SpeechDeps
from hermes.text.translation import translator
from hermes.tools.tool import resolved, tool

t = translator(__name__)

if TYPE_CHECKING:
    from hermes.media.audio import Audio, AudioFormat

_MAX_NAMES = 1000


class SpeechTool:
    """The tool of one session."""

    def __init__(self, deps: Callable[[], SpeechDeps]) -> None:
        self._deps = deps

    # Not `network`: the tool creates a file, so it needs approval, and undo removes the file.
    @tool("text_to_speech", effect="other")
    def text_to_speech(
        self,
        context: ToolContext,
        text: str,
        output_path: Annotated[
            str, Meta(description=".ogg, .mp3 or .wav, in the working directory.")
        ] = "speech.ogg",
    ) -> str:
        """Speaks a text into a new sound file. To send it in a chat, link to the file."""
        from hermes.media.speech_out import speak

        path = _inside(output_path, context)
        audio = speak(self._deps(), text, format_of(path))
        written = write_new(path, audio)
        return f"Wrote {written.relative_to(context.cwd.resolve())}."


def speech_tools(deps: Callable[[], SpeechDeps]) -> tuple[Tool, ...]:
    """Returns the tool of a session."""
    return (SpeechTool(deps).text_to_speech,)


def format_of(path: Path) -> "AudioFormat":
    """Returns the format for a file's name. Raises UsageError for any other suffix."""
    from hermes.media.audio import MEDIA_TYPES

    for known in MEDIA_TYPES:
        if path.suffix.lower() == f".{known}":
            return known
    raise UsageError(
        t.later("{name} is not a .wav, .mp3 or .ogg file.", name=path.name),
        hint=t.later("Nothing was written."),
    )


def write_new(path: Path, audio: "Audio") -> Path:
    """Writes a new file with the format's suffix, and a number if the name is taken. Returns its path."""
    suffix = f".{audio.format}"
    names = (f"{path.stem}{n or ''}{suffix}" for n in itertools.count(0))
    for name in itertools.islice(names, _MAX_NAMES):
        free = path.with_name(name)
        try:
            with free.open("xb") as file:
                file.write(audio.data)
        except FileExistsError:
            continue
        except OSError as error:
            raise ToolFailed(f"{free} can't be written: {error.strerror}.") from error
        return free
    raise ToolFailed(f"There are too many files like {path.name}.")


def _inside(name: str, context: ToolContext) -> Path:
    """Returns a path in the working directory, links resolved, not in a hidden folder. Raises ToolFailed otherwise."""
    path, folder = resolved(name, context.cwd), context.cwd.resolve()
    is_inside = path.is_relative_to(folder)
    if not is_inside or any(
        part.startswith(".") for part in path.relative_to(folder).parts
    ):
        raise ToolFailed(
            f"{name} is not a plain path in the working directory.",
            hint="Nothing was written.",
        )
    return path

"""Commands about speech: show what is set up, download models, and try speech out."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import msgspec

from hermes.app.speech import speech_deps
from hermes.commands.command import Arg, command
from hermes.commands.context import CommandContext
from hermes.commands.views import (
    OK,
    WARN,
    Block,
    Look,
    TextResult,
    line,
    message,
    table,
)
from hermes.errors import MediaError, NotFound
from hermes.media.speech_deps import SpeechDeps
from hermes.text.translation import shown_reason, to_translate, translator

t = translator(__name__)


EXAMPLES = to_translate("""\
examples:
  hermes voice                             what is set up, and what can be downloaded
  hermes voice add whisper                 download a model that understands any language
  hermes voice add piper                   download a natural English voice
  hermes voice transcribe note.ogg
  hermes voice say "The build is done." --output done.ogg
In a chat, /voice on speaks replies to voice notes, /voice tts all replies, /voice off none.
""")
_LOOKS: dict[str, Look] = {OK: "good", WARN: "warn"}


class SenseHealth(msgspec.Struct, frozen=True):
    """Whether one direction of speech works, and with which backend."""

    sense: str
    status: str
    text: str
    to_do: str = ""


class VoiceStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Both directions of speech, and what can be downloaded for them."""

    senses: tuple[SenseHealth, ...]
    models: tuple[tuple[str, str, str], ...]

    def view(self, _now: float) -> Iterable[Block]:
        for one in self.senses:
            yield line(f"{one.sense}: {one.text}", _LOOKS[one.status], fit="wrap")
            if one.to_do:
                yield line(f"  -> {one.to_do}", "dim", fit="wrap")
        yield line("")
        yield table((t("NAME"), t("STATE"), t("WHAT IT IS")), self.models)


def sense_health(deps: SpeechDeps) -> tuple[SenseHealth, SenseHealth]:
    """Whether speech is understood and spoken here, and by which backend. Nothing is asked of a service."""
    from hermes.media.speech_in import find_transcriber
    from hermes.media.speech_out import find_speaker

    found: list[SenseHealth] = []
    for sense, find in (("speech in", find_transcriber), ("speech out", find_speaker)):
        try:
            backend = find(deps)
            found.append(
                SenseHealth(
                    sense, OK, f"{backend.name} ({shown_reason(backend.label)})"
                )
            )
        except MediaError as error:
            text = error.message.removesuffix(".")
            found.append(SenseHealth(sense, WARN, text, error.hint))
    return found[0], found[1]


@command("voice status", scope="observe", group="Tools and agents")
def show_voice(context: CommandContext) -> VoiceStatus:
    """Show what is set up for speech, and what can be downloaded."""
    from hermes.media.speech_models import SPEECH_MODELS, model_path
    from hermes.providers.embedded.weights import size_text

    deps = speech_deps(context.app, context.secrets)
    models = tuple(
        (
            one.name,
            t("ready") if model_path(one, deps.models) else size_text(one.size),
            f"{shown_reason(one.description)} ({shown_reason(one.licence)})",
        )
        for one in SPEECH_MODELS.values()
    )
    return VoiceStatus(senses=sense_health(deps), models=models)


@command("voice add", group="Tools and agents")
def add_speech_model(
    context: CommandContext,
    name: Annotated[str, Arg("whisper or piper", metavar="NAME")],
) -> TextResult:
    """Download a model for speech, checked by its hash."""
    from hermes.media.speech_downloads import fetch_model
    from hermes.media.speech_models import SPEECH_MODELS
    from hermes.providers.embedded.catalogue import model_hub
    from hermes.providers.embedded.weights import size_text

    model = SPEECH_MODELS.get(name)
    if model is None:
        known = ", ".join(SPEECH_MODELS)
        raise NotFound(
            t("There is no speech model {name!r}.", name=name),
            hint=t("There are: {known}.", known=known),
        )
    deps = speech_deps(context.app, context.secrets)
    context.surface.tell(
        line(f"{shown_reason(model.description)} ({size_text(model.size)})")
    )
    shown = ""
    for step in fetch_model(model, deps.models, model_hub(context.environment)):
        if (step.notice or step.source) != shown:
            shown = step.notice or step.source
            context.surface.tell(line(f"  {shown_reason(shown)}", "dim", fit="wrap"))
    health = sense_health(deps)[1 if model.needs_piper else 0]
    if health.status == OK:
        return message(
            t(
                "Ready. {sense}: {text}.",
                sense=health.sense.capitalize(),
                text=health.text,
            )
        )
    return message(
        t("Downloaded. {text}. {to_do}", text=health.text, to_do=health.to_do).rstrip()
    )


@command("voice transcribe", group="Tools and agents")
def transcribe_file(
    context: CommandContext,
    file: Annotated[str, Arg("a sound file", metavar="FILE")],
) -> TextResult:
    """Transcribe a recording."""
    from hermes.media.speech_in import transcribe

    path = Path(file).expanduser()
    if not path.is_file():
        raise NotFound(t("There is no file {file}.", file=file))
    deps = speech_deps(context.app, context.secrets)
    return message(transcribe(deps, path).text)


@command("voice say", group="Tools and agents")
def say_text(
    context: CommandContext,
    text: Annotated[tuple[str, ...], Arg("what to say", metavar="TEXT")],
    *,
    output: Annotated[
        str, Arg("the file to write: .wav, .mp3 or .ogg", metavar="FILE")
    ] = "speech.wav",
) -> TextResult:
    """Speak a text into a sound file."""
    from hermes.media.speech_out import speak
    from hermes.media.speech_tool import format_of, write_new

    path = Path(output).expanduser()
    deps = speech_deps(context.app, context.secrets)
    audio = speak(deps, " ".join(text), format_of(path))
    return message(t("Wrote {write_new}.", write_new=write_new(path, audio)))

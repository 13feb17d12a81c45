"""Speech for the surfaces: recordings in messages, and whether a session's replies are spoken."""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec, TypeVar

from hermes.app.app import App
from hermes.children.helper_programs import find_program
from hermes.errors import MediaError, in_sentences
from hermes.media.speech_deps import SpeechDeps, configured
from hermes.schema.events import SpokenReplies, SpokenRepliesSet
from hermes.settings import Secrets
from hermes.settings.load import environment, load_secrets
from hermes.text.translation import translator

t = translator(__name__)


log = logging.getLogger("hermes.app")

P = ParamSpec("P")
T = TypeVar("T")
MAX_SPEECH_AT_ONCE = 2

VOICE_NOTE = "[voice note]"
"""Before the words of a voice note in a message."""


class SpeechQueue:
    """Transcribes and speaks for one process, a few at a time: a recording takes minutes, and the threads that wait for
    it are those that write messages to disk.
    """

    def __init__(self) -> None:
        self._free = asyncio.Semaphore(MAX_SPEECH_AT_ONCE)

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Does work that blocks, in a thread, when it is its turn."""
        async with self._free:
            return await asyncio.to_thread(work, *args, **kwargs)


def speech_deps(app: App, secrets: Secrets | None = None) -> SpeechDeps:
    """What the backends of speech are built from."""
    known = secrets or load_secrets(home=app.home)
    return SpeechDeps(app.settings.media, known, app.home, environment())


def can_listen(deps: SpeechDeps) -> bool:
    """Whether recordings can be transcribed here."""
    from hermes.media.speech_in import find_transcriber

    return _is_set_up(lambda: find_transcriber(deps))


def sends_recordings(app: App) -> bool:
    """Whether a recording would be transcribed by a service, not on this machine."""
    from hermes.media.audio_services import OpenAITranscriber
    from hermes.media.speech_in import find_transcriber

    return isinstance(find_transcriber(speech_deps(app)), OpenAITranscriber)


def can_speak(deps: SpeechDeps) -> bool:
    """Whether text can be spoken here."""
    settings = deps.settings
    if (
        configured(settings.speech_out, settings.speech) == "auto"
        and not settings.voice
    ):
        return _has_speaker(deps)
    from hermes.media.speech_out import find_speaker

    return _is_set_up(lambda: find_speaker(deps))


def _has_speaker(deps: SpeechDeps) -> bool:
    """Whether `auto` finds a backend. Every session asks this, so it loads none of them."""
    from hermes.media.speech_models import PIPER, model_path, piper_program

    def has_program(name: str) -> bool:
        return find_program(name, deps.environment) is not None

    has_piper = model_path(PIPER, deps.models) is not None and (
        piper_program(deps.models) is not None or has_program("piper")
    )
    return (
        has_piper
        or bool(deps.key("ELEVENLABS_API_KEY", "VOICE_API_KEY"))
        or has_program("espeak-ng")
        or has_program("flite")
    )


def _is_set_up(find: Callable[[], object]) -> bool:
    try:
        find()
    except MediaError:
        return False
    return True


def spoken_replies(app: App, session: str) -> SpokenReplies:
    """Whether the replies of a session are spoken: as the user said there, else as the settings say."""
    chosen = app.store.log.latest(session, SpokenRepliesSet.topic)
    if isinstance(chosen, SpokenRepliesSet):
        return chosen.mode
    return app.settings.media.spoken_replies


def listener(app: App) -> Callable[[Path], str]:
    """Transcribes the recordings that a message names with `@`. Raises MediaError for one that it can't."""

    def listen(path: Path) -> str:
        from hermes.media.speech_in import transcribe

        return transcribe(speech_deps(app), path).text

    return listen


def transcribed_line(deps: SpeechDeps, path: Path, kind: str) -> tuple[str, str]:
    """A recording as a line of a message, and what to tell the sender if it was not understood. Blocks.

    The file stays where it is; the line names it if its words are missing.
    """
    from hermes.media.speech_in import transcribe

    try:
        text = transcribe(deps, path).text
    except MediaError as error:
        reason = in_sentences(error)
        log.warning("a recording was not understood (%s): %s", path.name, reason)
        line = f"[{kind}: {path}] (not transcribed: {reason})"
        if kind == "voice":
            told = t.logged(
                "I couldn't understand the voice note. {reason} The file is kept.",
                reason=reason,
            )
        else:
            told = t.logged(
                "I couldn't understand the recording. {reason} The file is kept.",
                reason=reason,
            )
        return line, told
    if kind == "voice":
        return f"{VOICE_NOTE} {text}", ""
    return f"[{kind}: {path}] It says: {text}", ""

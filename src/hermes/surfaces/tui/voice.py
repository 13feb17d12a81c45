"""Voice in the terminal: replies read aloud while they are written (`/voice`), and dictation (`/dictate`)."""

import asyncio
import contextlib
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from hermes.errors import MediaError, for_reader
from hermes.media.sound_programs import SoundProgram, find_player, find_recorder
from hermes.media.speech_deps import SpeechDeps
from hermes.media.speech_in import find_transcriber, transcribe
from hermes.media.speech_out import find_speaker, speak
from hermes.media.spoken_text import SpokenStream
from hermes.primitives.files import make_private_folder
from hermes.primitives.tasks import BackgroundTasks
from hermes.text.translation import translator

t = translator(__name__)

_AHEAD = 2  # sentences that are made while another one is played
_MAX_DICTATION_S = 600.0


class ReplyReader:
    """Reads the replies of the chat's session aloud, sentence by sentence while they are written."""

    def __init__(
        self,
        deps: SpeechDeps,
        session: Callable[[], str],
        say: Callable[[str], object],
        player: SoundProgram | None = None,
    ) -> None:
        """`say` shows a notice. Raises MediaError if nothing speaks or plays sound."""
        find_speaker(deps)
        self._player = player or find_player(deps.environment)
        self._deps = deps
        self._session = session
        self._say = say
        self._stream = SpokenStream()
        self._has_text = False
        self._sentences: asyncio.Queue[str] = asyncio.Queue()
        self._sounds: asyncio.Queue[tuple[int, Path]] = asyncio.Queue(_AHEAD)
        """Each with the `_dropped` of its beginning."""
        self._folder = tempfile.TemporaryDirectory(prefix="hermes-voice-")
        self._made = 0
        self._dropped = 0
        """How often the rest was dropped; a sound that was begun before is not played."""
        self._tasks = BackgroundTasks("reading a reply aloud")

    def start(self) -> None:
        """Begins to wait for replies."""
        self._tasks.start(self._make_sounds())
        self._tasks.start(self._play_sounds())

    def on_event(self, event: Mapping[str, Any]) -> None:
        """Handles an event of the chat."""
        if event.get("session_id") != self._session():
            return
        match event["type"]:
            case "agent.message.delta":
                self._has_text = True
                self._put(self._stream.feed(event["text"]))
            case "agent.message.assistant":
                if not self._has_text:  # a reply that did not stream
                    self._put(self._stream.feed(event.get("text") or ""))
                self._put(self._stream.finish())
                self._has_text = False
            case "agent.turn.started":
                self.hush()
            case "agent.turn.ended" if event["reason"] != "done":
                self.hush()
            case _:
                pass

    def hush(self) -> None:
        """Stops speaking: what was not spoken yet is dropped."""
        self._stream = SpokenStream()
        self._has_text = False
        self._drop_rest()
        self._player.stop()

    async def close(self) -> None:
        """Stops speaking for good."""
        self._player.stop()
        await self._tasks.close()
        self._folder.cleanup()

    def _drop_rest(self) -> None:
        self._dropped += 1  # the player skips the sounds
        while not self._sentences.empty():
            self._sentences.get_nowait()

    def _put(self, sentences: list[str]) -> None:
        for sentence in sentences:
            self._sentences.put_nowait(sentence)

    async def _make_sounds(self) -> None:
        while True:
            sentence = await self._sentences.get()
            dropped = self._dropped
            try:
                path = await asyncio.to_thread(self._make, sentence)
            except (MediaError, OSError) as error:
                self._report(error, dropped)
            else:
                await self._sounds.put((dropped, path))

    def _make(self, sentence: str) -> Path:
        """Speaks a sentence into a file."""
        audio = speak(self._deps, sentence)
        self._made += 1
        path = Path(self._folder.name) / f"{self._made}.{audio.format}"
        path.write_bytes(audio.data)
        return path

    async def _play_sounds(self) -> None:
        while True:
            dropped, path = await self._sounds.get()
            try:
                await self._play(path, dropped)
            except (MediaError, OSError) as error:
                self._report(error, dropped)

    async def _play(self, path: Path, dropped: int) -> None:
        try:
            if dropped != self._dropped:
                return
            await self._player.start(path)
            if dropped != self._dropped:
                self._player.stop()
            await self._player.wait()
        finally:
            await asyncio.to_thread(path.unlink, missing_ok=True)

    def _report(self, error: MediaError | OSError, dropped: int) -> None:
        """Says why a reply is not spoken, and drops the rest of it."""
        if dropped != self._dropped:  # nobody waits for it any more
            return
        self._drop_rest()
        is_ours = isinstance(error, MediaError)
        reason = for_reader(error) if is_ours else error.strerror or str(error)
        self._say(t("This reply is not spoken. {error}", error=reason))


class Dictation:
    """A recording from the microphone, and what is said in it. Its file is kept."""

    def __init__(
        self,
        deps: SpeechDeps,
        file: Path,
        when_full: Callable[[], object],
        max_s: float = _MAX_DICTATION_S,
    ) -> None:
        """`when_full` is called after `max_s` seconds, and must finish it. Raises MediaError if nothing understands
        speech or records sound.
        """
        find_transcriber(deps)
        self._recorder = find_recorder(deps.environment)
        self._deps = deps
        self._when_full = when_full
        self._max_s = max_s
        self._timer: asyncio.TimerHandle | None = None
        self.file = file

    async def start(self) -> None:
        """Begins to record."""
        await asyncio.to_thread(make_private_folder, self.file.parent)
        await self._recorder.start(self.file)
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(self._max_s, self._when_full)

    async def finish(self) -> str:
        """Ends the recording. Returns the words in it. Raises MediaError."""
        await self._end()
        return (await asyncio.to_thread(transcribe, self._deps, self.file)).text

    async def stop(self) -> None:
        """Ends the recording without transcribing it."""
        with contextlib.suppress(MediaError):
            await self._end()

    async def _end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        await self._recorder.finish()

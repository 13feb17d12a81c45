"""Voice in the terminal: replies read aloud while they are written (`/voice`), and dictation (`/dictate`)."""

import asyncio
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from hermes.errors import MediaError, for_reader
from hermes.media.sound_programs import find_player, find_recorder
from hermes.media.speech_deps import SpeechDeps
from hermes.media.speech_in import find_transcriber, transcribe
from hermes.media.speech_out import find_speaker, speak
from hermes.media.spoken_text import SpokenStream
from hermes.primitives.files import make_private_folder
from hermes.primitives.tasks import BackgroundTasks
from hermes.text.translation import translator

t = translator(__name__)

_AHEAD = 2  # sentences that are made while another one is played


class ReplyReader:
    """Reads the replies of the chat's session aloud, sentence by sentence while they are written."""

    def __init__(
        self,
        deps: SpeechDeps,
        session: Callable[[], str],
        say: Callable[[str], object],
    ) -> None:
        """`say` shows a notice. Raises MediaError if nothing speaks or plays sound."""
        find_speaker(deps)
        self._player = find_player(deps.environment)
        self._deps = deps
        self._session = session
        self._say = say
        self._stream = SpokenStream()
        self._has_text = False
        self._sentences: asyncio.Queue[str] = asyncio.Queue()
        self._sounds: asyncio.Queue[Path] = asyncio.Queue(_AHEAD)
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
        """Takes an event of the chat."""
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
        self._dropped += 1
        _empty(self._sentences)
        _empty(self._sounds)

    def _put(self, sentences: list[str]) -> None:
        for sentence in sentences:
            self._sentences.put_nowait(sentence)

    async def _make_sounds(self) -> None:
        while True:
            sentence = await self._sentences.get()
            dropped = self._dropped
            try:
                audio = await asyncio.to_thread(speak, self._deps, sentence)
            except MediaError as error:
                self._report(error)
                continue
            if dropped != self._dropped:
                continue
            self._made += 1
            path = Path(self._folder.name) / f"{self._made}.{audio.format}"
            await asyncio.to_thread(path.write_bytes, audio.data)
            await self._sounds.put(path)

    async def _play_sounds(self) -> None:
        while True:
            path = await self._sounds.get()
            try:
                await self._player.start(path)
                await self._player.wait()
            except MediaError as error:
                self._report(error)
            await asyncio.to_thread(path.unlink)

    def _report(self, error: MediaError) -> None:
        """Says why a reply is not spoken, and drops the rest of it."""
        self._drop_rest()
        self._say(t("This reply is not spoken. {error}", error=for_reader(error)))


class Dictation:
    """A recording from the microphone, and what is said in it. Its file is kept."""

    def __init__(self, deps: SpeechDeps, file: Path) -> None:
        """Raises MediaError if nothing understands speech or records sound."""
        find_transcriber(deps)
        self._recorder = find_recorder(deps.environment)
        self._deps = deps
        self.file = file

    async def start(self) -> None:
        """Begins to record."""
        await asyncio.to_thread(make_private_folder, self.file.parent)
        await self._recorder.start(self.file)

    async def finish(self) -> str:
        """Ends the recording. Returns the words in it. Raises MediaError."""
        await self._recorder.finish()
        return (await asyncio.to_thread(transcribe, self._deps, self.file)).text

    def stop(self) -> None:
        """Ends the recording, whose words nobody wants any more."""
        self._recorder.stop()


def _empty(queue: "asyncio.Queue[Any]") -> None:
    while not queue.empty():
        queue.get_nowait()

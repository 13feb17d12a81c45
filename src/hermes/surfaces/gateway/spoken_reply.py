"""Spoken replies in a chat (`/voice`): the reply of a turn as a sound file, in the format of the platform."""

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.app.speech import VOICE_NOTE
from hermes.errors import MediaError, for_reader
from hermes.media.audio import Audio, AudioFormat
from hermes.media.spoken_text import spoken
from hermes.schema.events import TurnStarted
from hermes.schema.messages import UserMessage
from hermes.surfaces.gateway.adapter import FileKind, Outbound, OutgoingFile
from hermes.text.translation import translator

if TYPE_CHECKING:
    from hermes.surfaces.gateway.deliveries import Deliveries

t = translator(__name__)


_KINDS: dict[str, FileKind] = {"ogg": "voice", "mp3": "audio", "wav": "file"}


class SpokenReply:
    """The spoken reply of one session's turns. `text` is the last reply of the running turn."""

    def __init__(self, deliveries: "Deliveries", session: str) -> None:
        self._deliveries = deliveries
        self._session = session
        self._inputs: tuple[int, ...] = ()
        self.text = ""

    def begin(self, started: TurnStarted) -> None:
        """A turn has started."""
        self.text = ""
        self._inputs = started.inputs

    @asynccontextmanager
    async def message(
        self, wanted: AudioFormat, max_bytes: int
    ) -> AsyncIterator[Outbound | None]:
        """The message with the sound, whose file exists until it is sent; None if nothing is to be spoken."""
        text, self.text = self.text, ""
        is_wanted = await asyncio.to_thread(self._is_wanted)
        if not is_wanted or not spoken(text):
            yield None
            return
        try:
            audio = await asyncio.to_thread(self._speak, text, wanted)
        except MediaError as error:
            yield Outbound(
                text=t("⚠️ This reply is not spoken. {error}", error=for_reader(error))
            )
            return
        if len(audio.data) > max_bytes:
            yield Outbound(text=t("⚠️ This reply is too long to be sent as sound."))
            return
        with tempfile.TemporaryDirectory(prefix="hermes-speech-") as folder:
            path = Path(folder) / f"reply.{audio.format}"
            await asyncio.to_thread(path.write_bytes, audio.data)
            kind = _KINDS[audio.format]
            file = OutgoingFile(path, path.name, audio.media_type, kind)
            yield Outbound(text="", files=(file,))

    def _speak(self, text: str, wanted: AudioFormat) -> Audio:
        from hermes.media.speech_out import speak

        return speak(self._deliveries.speech(), text, wanted)

    def _is_wanted(self) -> bool:
        mode = self._deliveries.spoken_replies(self._session)
        return mode == "tts" or (mode == "on" and self._answers_voice())

    def _answers_voice(self) -> bool:
        """Whether a voice note is among the messages that the turn answers."""
        log = self._deliveries.log
        rows = (
            row
            for seq in self._inputs
            for row in log.events(self._session, after=seq - 1, limit=1)
        )
        return any(
            isinstance(row.event, UserMessage) and VOICE_NOTE in row.event.text
            for row in rows
        )

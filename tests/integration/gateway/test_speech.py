"""Voice notes in a chat, and spoken replies."""

import asyncio
from pathlib import Path

from tests.fakes.audio_server import OGG, AudioServer
from tests.fakes.telegram_server import TelegramServer
from tests.integration.gateway.harness import Harness, opened

from hermes.schema.messages import UserMessage
from hermes.settings.media import (
    MediaSettings,
    SpeechSettings,
    TranscriptionSettings,
)
from hermes.testing.model_server import ModelServer

_NOTE = {"file_id": "note", "mime_type": "audio/ogg", "file_size": 12}


def _media(server: AudioServer) -> MediaSettings:
    return MediaSettings(
        transcription=TranscriptionSettings(url=server.url),
        speech=SpeechSettings(url=server.url),
    )


def _send_note(telegram: TelegramServer) -> None:
    telegram.files["note"] = b"OggS-a-voice"
    telegram.say("", voice=_NOTE)


def _named_file(line: str) -> bytes:
    return Path(line.partition(" ")[2].partition("]")[0]).read_bytes()


def _said(harness: Harness) -> str:
    return harness.app.store.log.messages(harness.session)[0].text


async def test_a_voice_note_is_transcribed(tmp_path: Path) -> None:
    with AudioServer() as speech:
        async with (
            TelegramServer() as telegram,
            ModelServer("noted") as model,
            opened(tmp_path, model, telegram, media=_media(speech)) as harness,
        ):
            _send_note(telegram)
            await telegram.sees("noted")
            said = harness.app.store.log.messages(harness.session)[0]
            assert said.text == "[voice note] buy some milk"
            assert isinstance(said, UserMessage)
            original = await asyncio.to_thread(Path(said.recordings[0]).read_bytes)
            assert original == b"OggS-a-voice"
    assert speech.requests[0].file == b"OggS-a-voice"


async def test_a_recording_that_is_sent_as_a_file_is_transcribed_too(
    tmp_path: Path,
) -> None:
    file = {"file_id": "memo", "file_name": "memo.m4a", "mime_type": "audio/mp4"}
    with AudioServer() as speech:
        async with (
            TelegramServer() as telegram,
            ModelServer("noted") as model,
            opened(tmp_path, model, telegram, media=_media(speech)) as harness,
        ):
            telegram.files["memo"] = b"a recording"
            telegram.say("", document=file)
            await telegram.sees("noted")
            said = _said(harness)
    assert said.startswith("[audio: ")
    assert said.endswith("It says: buy some milk")


async def test_a_voice_note_that_is_not_understood_is_kept_and_said(
    tmp_path: Path,
) -> None:
    with AudioServer() as speech:
        speech.failure = 401
        async with (
            TelegramServer() as telegram,
            ModelServer("what is it?") as model,
            opened(tmp_path, model, telegram, media=_media(speech)) as harness,
        ):
            _send_note(telegram)
            await telegram.sees("what is it?")
            told = telegram.texts()[0]
            said = _said(harness)
            kept = await asyncio.to_thread(_named_file, said)
    assert told.startswith("I couldn't understand the voice note. ")
    assert "rejected the key" in told
    assert said.startswith("[voice: ")
    assert "rejected the key" in said
    assert kept == b"OggS-a-voice"


async def test_voice_on_speaks_replies_to_voice_notes_only(tmp_path: Path) -> None:
    with AudioServer() as speech:
        async with (
            TelegramServer() as telegram,
            ModelServer("**bought**", "typed") as model,
            opened(tmp_path, model, telegram, media=_media(speech)),
        ):
            telegram.say("/voice on")
            await telegram.sees("Replies to voice notes are spoken.")
            _send_note(telegram)
            await telegram.until(
                lambda server: any(one.kind == "voice" for one in server.messages)
            )
            telegram.say("and now?")
            await telegram.sees("typed")
            telegram.say("/voice")  # answered after the turn
            await telegram.sees("Change it with")
            voices = [one for one in telegram.messages if one.kind == "voice"]
    assert [one.file for one in voices] == [OGG]
    assert speech.requests[-1].fields["input"] == "bought"


async def test_a_reply_that_can_not_be_spoken_says_so(tmp_path: Path) -> None:
    with AudioServer() as speech:
        media = _media(speech)
        async with (
            TelegramServer() as telegram,
            ModelServer("hello") as model,
            opened(tmp_path, model, telegram, media=media),
        ):
            telegram.say("/voice tts")
            await telegram.sees("All replies are spoken.")
            speech.failure = 503
            telegram.say("hi")
            await telegram.sees("This reply is not spoken.")

"""Recordings over HTTP: few at a time, so that everything else goes on."""

import asyncio
import base64
import os
import threading
from pathlib import Path
from typing import Any

from tests.fakes.audio_server import AudioRequest, AudioServer, tone
from tests.integration.dashboard.harness import opened
from tests.integration.gateway.harness import until
from typing_extensions import override

from hermes.app.kept_recordings import KeptRecordings
from hermes.app.speech import MAX_SPEECH_AT_ONCE
from hermes.schema.events import SessionCreated
from hermes.settings import Home, Settings
from hermes.settings.media import MediaSettings, TranscriptionSettings


class SlowAudioServer(AudioServer):
    """Answers when it is `let_go`."""

    def __init__(self) -> None:
        super().__init__()
        self.let_go = threading.Event()

    @override
    def answer(self, request: AudioRequest) -> tuple[int, str, bytes]:
        found = super().answer(request)
        assert self.let_go.wait(30.0)
        return found


async def test_recordings_in_messages_leave_threads_too(tmp_path: Path) -> None:
    with SlowAudioServer() as server:
        hearing = TranscriptionSettings(url=server.url)
        settings = Settings(media=MediaSettings(transcription=hearing))
        async with opened(tmp_path, settings) as harness:
            (tmp_path / "note.wav").write_bytes(tone())
            begun = SessionCreated(surface="dashboard", cwd=str(tmp_path))
            session = harness.app.begin(begun).session
            encoded = base64.b64encode(tone()).decode()
            bodies = [
                {"text": "@note.wav"},
                {"text": "Hi.", "files": [{"name": "note.wav", "data": encoded}]},
            ]

            async def send(body: dict[str, Any]) -> Any:
                path = f"/api/sessions/{session}/messages"
                return await harness.call("POST", path, body, scope="chat")

            sending = [asyncio.ensure_future(send(body)) for body in bodies * 10]
            async with asyncio.timeout(30.0):
                await until(lambda: len(server.requests) >= MAX_SPEECH_AT_ONCE)
                await harness.call("GET", "/api/sessions", scope="observe")
            assert len(server.requests) == MAX_SPEECH_AT_ONCE
            server.let_go.set()
            await asyncio.gather(*sending)


async def test_many_recordings_leave_threads_for_everything_else(
    tmp_path: Path,
) -> None:
    with SlowAudioServer() as server:
        hearing = TranscriptionSettings(url=server.url)
        settings = Settings(media=MediaSettings(transcription=hearing))
        async with opened(tmp_path, settings) as harness:

            async def listen() -> Any:
                path, headers = "/api/speech/transcriptions", harness.bearer("chat")
                return await harness.client.post(path, content=tone(), headers=headers)

            listening = [asyncio.ensure_future(listen()) for _ in range(20)]
            async with asyncio.timeout(20.0):
                await until(lambda: len(server.requests) >= MAX_SPEECH_AT_ONCE)
                await harness.call("GET", "/api/sessions", scope="observe")
            assert len(server.requests) == MAX_SPEECH_AT_ONCE
            server.let_go.set()
            answers = await asyncio.gather(*listening)
    assert [one.json()["text"] for one in answers] == ["buy some milk"] * 20


async def test_the_recording_of_a_message_is_kept_with_its_session(
    tmp_path: Path,
) -> None:
    with AudioServer() as server:
        hearing = TranscriptionSettings(url=server.url)
        settings = Settings(media=MediaSettings(transcription=hearing))
        async with opened(tmp_path, settings) as harness:
            begun = SessionCreated(surface="dashboard", cwd=str(tmp_path))
            session = harness.app.begin(begun).session
            path, headers = "/api/speech/transcriptions", harness.bearer("chat")
            heard = await harness.client.post(path, content=tone(), headers=headers)
            name = heard.json()["recording"]
            body = {"text": "Hi.", "recordings": [name, "../../.env", "0" * 32]}
            sent = await harness.call(
                "POST", f"/api/sessions/{session}/messages", body, scope="chat"
            )
            row = f"/api/sessions/{session}/recordings/{sent['seq']}"
            first = await harness.client.get(
                f"{row}/0", headers=harness.bearer("observe")
            )
            second = await harness.client.get(
                f"{row}/1", headers=harness.bearer("observe")
            )
            media = harness.app.home.media
            assert not list((media / "unsent").iterdir())
            assert [one.read_bytes() for one in (media / session).iterdir()] == [tone()]
    assert (first.content, first.headers["content-type"]) == (tone(), "audio/wav")
    assert second.status_code == 404


async def test_a_recording_whose_message_was_never_sent_is_deleted_later(
    tmp_path: Path,
) -> None:
    kept = KeptRecordings(Home(tmp_path))
    old = tmp_path / "media" / "unsent" / kept.keep(b"old")
    os.utime(old, (0, 0))
    new = kept.keep(b"new")
    assert [one.name for one in old.parent.iterdir()] == [new]

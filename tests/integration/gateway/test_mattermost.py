"""Mattermost in and out, against a server that speaks its REST API and its WebSocket."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.fakes.audio_server import AudioServer
from tests.fakes.chat_server import Failure
from tests.fakes.mattermost_server import CHANNEL, TOKEN, MattermostServer
from tests.integration.gateway.harness import NO_OCR, until
from tests.integration.gateway.platforms import PNG, Running, asks_to_write, running

from hermes.app.outgoing import MessageOutbox
from hermes.schema.messages import UserMessage
from hermes.settings.chat_platforms import MattermostSettings
from hermes.settings.gateway import GatewaySettings
from hermes.settings.media import (
    MediaSettings,
    SpeechSettings,
    TranscriptionSettings,
)
from hermes.testing.model_server import ModelServer, Recorded
from hermes.testing.scripted_responses import ScriptedResponse


@asynccontextmanager
async def opened(
    folder: Path,
    model: ModelServer,
    server: MattermostServer,
    *,
    token: str = TOKEN,
    **more: Any,
) -> AsyncIterator[Running]:
    section = MattermostSettings(url=server.url, channels=more.pop("channels", ()))
    settings = GatewaySettings(
        platforms=("mattermost",), owners=("mattermost:U1",), mattermost=section
    )
    media = more.pop("media", NO_OCR)
    settings = msgspec.structs.replace(settings, **more)
    secrets = {"MATTERMOST_TOKEN": token}
    async with running(folder, model, secrets, settings, media) as harness:
        if token == TOKEN:
            await until(lambda: harness.status.state == "connected")
        yield harness


async def test_a_message_is_answered_once_and_nothing_secret_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    async with MattermostServer() as server, ModelServer("Hello @all **you**") as model:
        async with opened(tmp_path, model, server) as harness:
            post = server.say("hi")
            shown = await server.sees("**you**", "D1")
            assert shown.text == "Hello @\u200ball **you**"
            server.again(post)
            await until(lambda: harness.counters.repeated == 1)
            said = [message.text for message in harness.said("mattermost/D1")]
            assert said == ["hi", "Hello @all **you**"]
            assert harness.status.identity.startswith("@hermes on 127.0.0.1")
        assert len(model.posts) == 1
        assert server.texts("D1") == ["Hello @\u200ball **you**"]
    assert "mattermost is connected" in caplog.text
    assert TOKEN not in caplog.text


async def test_a_long_reply_streams_by_changing_and_is_split(tmp_path: Path) -> None:
    text = "word " * 4000
    async with (
        MattermostServer() as server,
        ModelServer(ScriptedResponse(text=text, chunk=4000, delay=0.3)) as model,
    ):
        async with opened(tmp_path, model, server):
            server.say("tell me")
            await server.until(
                lambda: (
                    len(server.texts("D1")) == 2
                    and "▌" not in "".join(server.texts("D1"))
                )
            )
        assert "".join("".join(server.texts("D1")).split()) == "word" * 4000
        assert any(one.changes for one in server.messages)
        assert ("typing", {"channel_id": "D1", "parent_id": ""}) in server.calls


async def test_rate_limits_are_waited_out_and_a_repeated_post_is_dropped(
    tmp_path: Path,
) -> None:
    async with MattermostServer() as server, ModelServer("the answer") as model:
        server.failures["post"] = [
            Failure(429, "limit exceeded", 1),
            Failure(503, "gone", effect=True),
        ]
        async with opened(tmp_path, model, server) as harness:
            server.say("hi")
            await until(lambda: harness.counters.sent == 1)
            assert (harness.counters.slowed, harness.counters.retried) == (1, 1)
        assert server.texts("D1") == ["the answer"]


async def test_a_mention_begins_a_thread_that_is_one_conversation(
    tmp_path: Path,
) -> None:
    async with (
        MattermostServer() as server,
        ModelServer("in the thread", "still there", "at once") as model,
        opened(
            tmp_path, model, server, allow=("mattermost:U2",), channels=("chosen",)
        ) as harness,
    ):
        server.say("just chatting", channel=CHANNEL)
        begun = server.say("@hermes hello", channel=CHANNEL)
        assert (await server.sees("in the thread", CHANNEL)).thread == begun
        server.say("and I?", sender="U2", channel=CHANNEL, root_id=begun)
        assert (await server.sees("still there", CHANNEL)).thread == begun
        said = [one.text for one in harness.said(f"mattermost/{CHANNEL}/{begun}")]
        assert said == [
            "[person1] hello",
            "in the thread",
            "[person2] and I?",
            "still there",
        ]
        server.say("nobody need be mentioned here", channel="chosen")
        await server.sees("at once", "chosen")


async def test_bots_and_strangers_are_not_listened_to(tmp_path: Path) -> None:
    async with MattermostServer() as server, ModelServer("for the owner") as model:
        async with opened(tmp_path, model, server) as harness:
            server.say("I am a bot", props={"from_bot": "true"})
            server.say("joined the channel", type="system_join_channel")
            server.say("who are you?", sender="U4")
            await server.sees("hermes gateway pair approve", "D4")
            server.say("hi")
            await server.sees("for the owner", "D1")
            assert (harness.counters.received, harness.counters.strangers) == (1, 1)
        assert len(model.posts) == 1


@pytest.mark.parametrize("answer", ["number", "reaction"])
async def test_an_approval_is_answered_by_its_number_or_by_a_thumb(
    tmp_path: Path, answer: str
) -> None:
    async with (
        MattermostServer() as server,
        ModelServer(respond=asks_to_write) as model,
        opened(tmp_path, model, server),
    ):
        server.say("write it")
        asked = await server.sees("Approval needed", "D1")
        assert "!approve" in asked.text
        number = asked.text.split("!deny ")[1].split(",")[0]
        if answer == "number":
            server.say(f"!deny {number} not now")
        else:
            server.react(asked.id, "tada")
            server.react(asked.id, "-1", sender="U9")
            server.react(asked.id, "-1")
        await server.sees("Denied", "D1")
        await server.sees("written", "D1")


async def test_files_come_in_and_go_out_and_a_voice_note_is_audio(
    tmp_path: Path,
) -> None:
    def respond(request: Recorded) -> ScriptedResponse:
        (tmp_path / "work" / "report.txt").write_text("a report")
        return ScriptedResponse(text="Here: [it](report.txt)")

    async with MattermostServer() as server, ModelServer(respond=respond) as model:
        async with opened(tmp_path, model, server) as harness:
            server.say("look", metadata=server.attach("pic.png", PNG, "image/png"))
            await server.until(lambda: any(one.file for one in server.messages))
            said = harness.said("mattermost/D1")[0]
            assert isinstance(said, UserMessage)
            assert Path(said.images[0].source).read_bytes() == PNG  # noqa: ASYNC240 - nothing else waits
            server.say(
                "", metadata=server.attach("note.ogg", b"OggS-voice", "audio/ogg")
            )
            await until(lambda: len(harness.said("mattermost/D1")) == 4)
            assert harness.said("mattermost/D1")[2].text.startswith("[voice: ")
        sent = [(one.name, one.file) for one in server.messages if one.file]
        assert sent[0] == ("report.txt", b"a report")


async def test_a_voice_note_is_answered_by_voice(tmp_path: Path) -> None:
    with AudioServer() as speech:
        media = MediaSettings(
            spoken_replies="on",
            transcription=TranscriptionSettings(url=speech.url),
            speech=SpeechSettings(url=speech.url),
        )
        async with MattermostServer() as server, ModelServer("Bought.") as model:
            async with opened(tmp_path, model, server, media=media) as harness:
                note = server.attach("note.ogg", b"OggS-voice", "audio/ogg")
                server.say("", metadata=note)
                await server.until(lambda: any(one.file for one in server.messages))
                said = harness.said("mattermost/D1")[0].text
            (sent,) = (one for one in server.messages if one.file)
    assert said == "[voice note] buy some milk"
    assert sent.name == "reply.mp3"
    assert speech.requests[-1].fields["input"] == "Bought."


async def test_what_was_said_while_the_connection_was_lost_is_answered(
    tmp_path: Path,
) -> None:
    async with MattermostServer() as server, ModelServer("one", "two") as model:
        async with opened(tmp_path, model, server, allow=("mattermost:*",)) as harness:
            server.say("first")
            await server.sees("one", "D1")
            await server.cut()
            await until(lambda: harness.status.state == "retrying")
            server.say("meanwhile", sender="U2")
            await server.sees("two", "D2")
        assert len(model.posts) == 2


async def test_a_wrong_token_is_said_and_not_hammered(tmp_path: Path) -> None:
    wrong = "mmwrongtoken00000000000000"
    async with (
        MattermostServer() as server,
        ModelServer() as model,
        opened(tmp_path, model, server, token=wrong) as harness,
    ):
        await until(lambda: harness.status.state == "failed")
        assert "hermes config set MATTERMOST_TOKEN" in harness.status.error
        assert wrong not in harness.status.error


async def test_a_text_is_sent_to_a_person_by_their_name(tmp_path: Path) -> None:
    async with MattermostServer() as server, ModelServer() as model:
        async with opened(tmp_path, model, server) as harness:
            outbox = MessageOutbox(harness.app)
            target = outbox.resolve("mattermost:@person3")
            sent = await outbox.send(target, "the backup is done", (), 20.0)
            assert sent.state == "sent"
            refused = await outbox.send("mattermost:@nobody", "hello?", (), 20.0)
            assert "Unable to find an existing account" in refused.reason
        assert server.texts("D3") == ["the backup is done"]


async def test_commands_begin_with_an_exclamation_mark(tmp_path: Path) -> None:
    async with (
        MattermostServer() as server,
        ModelServer("one") as model,
        opened(tmp_path, model, server, allow=("mattermost:U2",)) as harness,
    ):
        server.say("hi")
        await server.sees("one", "D1")
        binding = harness.app.store.chats.find("mattermost/D1")
        assert binding is not None
        await harness.gateway.agent.service.idle(binding.session)
        for command, answer in (
            ("!branch", "a copy of"),
            ("!goal", "This session has no goal."),
            ("!model", "fake-1"),
            ("!codex-runtime status", "Engine of new sessions: Hermes"),
        ):
            server.say(command)
            await server.sees(answer, "D1")
        server.say("!branch", sender="U2")
        await server.sees("Only an owner can use /branch.", "D2")

"""Matrix in and out, against a homeserver that speaks the client-server API."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import msgspec
import pytest
from tests.fakes.chat_server import Failure
from tests.fakes.first_use import OnFirstUse
from tests.fakes.matrix_server import BOT, TOKEN, MatrixServer, user
from tests.integration.gateway.harness import until
from tests.integration.gateway.platforms import PNG, Running, asks_to_write, running

from hermes.app.outgoing import MessageOutbox
from hermes.schema.messages import UserMessage
from hermes.settings.chat_platforms import MatrixSettings
from hermes.settings.gateway import GatewaySettings
from hermes.testing.model_server import ModelServer, Recorded
from hermes.testing.scripted_responses import ScriptedResponse

if TYPE_CHECKING:
    import nio
    from nio.crypto import attachments
else:
    nio = OnFirstUse("nio")
    attachments = OnFirstUse("nio.crypto.attachments")


@asynccontextmanager
async def opened(
    folder: Path,
    model: ModelServer,
    server: MatrixServer,
    *,
    token: str = TOKEN,
    **more: Any,
) -> AsyncIterator[Running]:
    section = MatrixSettings(url=server.url, rooms=more.pop("rooms", ()))
    settings = GatewaySettings(
        platforms=("matrix",), owners=(f"matrix:{user(1)}",), matrix=section
    )
    settings = msgspec.structs.replace(settings, **more)
    secrets = {"MATRIX_ACCESS_TOKEN": token}
    async with running(folder, model, secrets, settings) as harness:
        if token == TOKEN:
            await until(lambda: harness.status.state == "connected")
        yield harness


async def test_a_message_is_answered_and_nothing_secret_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    async with MatrixServer() as server, ModelServer("Hello **you**\n& me") as model:
        room = server.direct()
        server.say(room, "before Hermes ever connected")
        server.age(3600)
        async with opened(tmp_path, model, server) as harness:
            server.say(room, "hi")
            shown = await server.sees("Hello", room)
            assert shown.raw["formatted_body"] == "Hello <b>you</b><br/>&amp; me"
            assert shown.raw["m.mentions"] == {}
            assert harness.status.identity == BOT
            said = [one.text for one in harness.said(f"matrix/{room}")]
            assert said == ["hi", "Hello **you**\n& me"]
        assert len(model.posts) == 1
    assert "matrix is connected" in caplog.text
    assert TOKEN not in caplog.text


async def test_what_was_said_just_before_the_first_connection_is_answered(
    tmp_path: Path,
) -> None:
    async with MatrixServer() as server, ModelServer("Here I am.") as model:
        room = server.direct()
        server.say(room, "long ago")
        server.age(3600)
        server.say(room, "answered by another program")
        own = {"msgtype": "m.text", "body": "that was me"}
        server.add(room, BOT, "m.room.message", own)
        server.say(room, "are you there?")
        async with opened(tmp_path, model, server) as harness:
            await server.sees("Here I am.", room)
            said = [one.text for one in harness.said(f"matrix/{room}")]
    assert said == ["are you there?", "Here I am."]


async def test_what_was_said_while_hermes_was_away_is_taken_once(
    tmp_path: Path,
) -> None:
    async with MatrixServer() as server, ModelServer("one", "two", "three") as model:
        room = server.direct()
        async with opened(tmp_path, model, server):
            server.say(room, "first")
            await server.sees("one", room)
        server.say(room, "while away")
        async with opened(tmp_path, model, server) as harness:
            await server.sees("two", room)
            server.gone = True
            await until(lambda: harness.status.state == "retrying")
            server.say(room, "during the outage")
            server.gone = False
            await server.sees("three", room)
            said = [
                one.text
                for one in harness.said(f"matrix/{room}")
                if isinstance(one, UserMessage)
            ]
        assert said == ["first", "while away", "during the outage"]
        assert len(model.posts) == 3


async def test_a_long_reply_streams_by_changing_and_is_split(tmp_path: Path) -> None:
    text = "word " * 3000
    slow = ScriptedResponse(text=text, chunk=3000, delay=0.3)
    async with MatrixServer() as server, ModelServer(slow) as model:
        room = server.direct()
        async with opened(tmp_path, model, server):
            server.say(room, "tell me")
            await server.until(
                lambda: (
                    len(server.texts(room)) == 2
                    and "▌" not in "".join(server.texts(room))
                )
            )
        assert "".join("".join(server.texts(room)).split()) == "word" * 3000
        assert any(one.changes for one in server.messages)
        assert any(name == "typing" for name, _ in server.calls)


async def test_rate_limits_are_waited_out_and_a_repeated_event_is_dropped(
    tmp_path: Path,
) -> None:
    async with MatrixServer() as server, ModelServer("the answer") as model:
        room = server.direct()
        server.failures["send"] = [
            Failure(429, "M_LIMIT_EXCEEDED", 1),
            Failure(502, "M_UNKNOWN", effect=True),
        ]
        async with opened(tmp_path, model, server) as harness:
            server.say(room, "hi")
            await until(lambda: harness.counters.sent == 1)
            assert (harness.counters.slowed, harness.counters.retried) == (1, 1)
        assert server.texts(room) == ["the answer"]


async def test_in_a_room_hermes_answers_mentions_replies_and_its_threads(
    tmp_path: Path,
) -> None:
    async with (
        MatrixServer() as server,
        ModelServer("one", "two", "three", "four") as model,
    ):
        room = server.room(user(1), user(2), BOT)
        async with opened(
            tmp_path, model, server, allow=(f"matrix:{user(2)}",)
        ) as harness:
            server.say(room, "just chatting about hermes the god")
            server.say(
                room, "a bot", msgtype="m.notice", **{"m.mentions": {"user_ids": [BOT]}}
            )
            server.say(room, "hermes: hello")
            one = await server.sees("one", room)
            fallback = f"> <{BOT}> one\n\nand this?"
            reply = {"m.in_reply_to": {"event_id": one.id}}
            server.say(room, fallback, **{"m.relates_to": reply})
            await server.sees("two", room)
            root = server.say(room, "a topic", sender=2)
            thread = {"rel_type": "m.thread", "event_id": root}
            mention = {"m.mentions": {"user_ids": [BOT]}}
            server.say(
                room,
                "Hermes what of it?",
                sender=2,
                **mention,
                **{"m.relates_to": thread},
            )
            assert (await server.sees("three", room)).thread == root
            server.say(room, "and I?", **{"m.relates_to": thread})
            assert (await server.sees("four", room)).thread == root
            said = [one.text for one in harness.said(f"matrix/{room}/{root}")]
            assert said == [
                "[person2] what of it?",
                "three",
                "[person1] and I?",
                "four",
            ]
            mine = harness.said(f"matrix/{room}//@{user(1)}")
            assert [one.text for one in mine][::2] == [
                "[person1] hello",
                "[person1] and this?",
            ]


@pytest.mark.parametrize("answer", ["number", "reaction"])
async def test_an_approval_is_answered_by_its_number_or_by_a_thumb(
    tmp_path: Path, answer: str
) -> None:
    async with MatrixServer() as server, ModelServer(respond=asks_to_write) as model:
        room = server.direct()
        async with opened(tmp_path, model, server):
            server.say(room, "write it")
            asked = await server.sees("Approval needed", room)
            number = asked.text.split("!deny ")[1].split(",")[0]
            if answer == "number":
                server.say(room, f"!deny {number}")
            else:
                server.react(room, asked.id, "👎️")
            await server.sees("Denied", room)
            await server.sees("written", room)


async def test_files_come_in_and_go_out_and_a_voice_message_is_audio(
    tmp_path: Path,
) -> None:
    def respond(request: Recorded) -> ScriptedResponse:
        (tmp_path / "work" / "report.txt").write_text("a report")
        return ScriptedResponse(text="Here: [it](report.txt)")

    async with MatrixServer() as server, ModelServer(respond=respond) as model:
        room = server.direct()
        key = f"matrix/{room}"
        async with opened(tmp_path, model, server) as harness:
            image = server.attach(PNG, "image/png", "pic.png")
            server.say(room, "look", msgtype="m.image", **image)
            await server.until(lambda: any(one.file for one in server.messages))
            said = harness.said(key)[0]
            assert isinstance(said, UserMessage)
            assert said.text.startswith("look")
            assert Path(said.images[0].source).read_bytes() == PNG  # noqa: ASYNC240 - nothing else waits
            note = server.attach(b"OggS", "audio/ogg", "Voice message.ogg")
            voice = {"org.matrix.msc3245.voice": dict[str, Any](), "msgtype": "m.audio"}
            server.say(room, "Voice message.ogg", **note, **voice)
            await until(lambda: len(harness.said(key)) == 4)
            assert harness.said(key)[2].text.startswith("[voice: ")
        sent = [(one.name, one.file) for one in server.messages if one.file]
        assert sent[0] == ("report.txt", b"a report")


@pytest.mark.parametrize(
    "address",
    ["mxc://../../../v3/account/whoami", "mxc://test/..%2f..", "http://test/x"],
)
async def test_an_attachment_is_only_ever_read_from_the_media_of_the_homeserver(
    tmp_path: Path, address: str
) -> None:
    """The bot's token is sent with it: another path would answer with what other people wrote to the bot."""
    async with MatrixServer() as server, ModelServer("ok") as model:
        room = server.direct()
        async with opened(tmp_path, model, server) as harness:
            server.say(room, "a.txt", msgtype="m.file", url=address)
            await server.sees("ok", room)
            said = harness.said(f"matrix/{room}")[0]
            assert said.text.startswith("[A file did not arrive: a.txt.")


_ODD = [
    {"m.relates_to": "x"},
    {"m.relates_to": {"m.in_reply_to": [1]}},
    {"m.mentions": ["x"]},
    {"m.mentions": {"user_ids": 7}},
    {"msgtype": "m.image", "url": "mxc://test/a", "info": "x"},
    {"msgtype": "m.image", "url": "mxc://test/a", "info": {"size": "many"}},
    {"msgtype": "m.image", "file": "x", "url": ["x"]},
    {"msgtype": "m.image", "url": "mxc://[/a"},
]


async def test_a_message_of_an_odd_shape_does_not_stop_the_others(
    tmp_path: Path,
) -> None:
    async with MatrixServer() as server, ModelServer("still here") as model:
        room = server.room(user(1), user(2), BOT)
        mine = server.direct()
        async with opened(tmp_path, model, server) as harness:
            for content in _ODD:
                server.say(room, "x", sender=2, **content)
            server.say(mine, "hello")
            await server.sees("still here", mine)
            assert harness.status.state == "connected"


async def test_a_thumb_counts_only_in_the_room_of_the_request(tmp_path: Path) -> None:
    async with MatrixServer() as server, ModelServer(respond=asks_to_write) as model:
        room = server.direct()
        other = server.room(user(1), user(2), BOT, name="!other")
        async with opened(tmp_path, model, server) as harness:
            server.say(room, "write it")
            asked = await server.sees("Approval needed", room)
            server.react(other, asked.id, "👎️")
            server.say(room, "!status")
            await server.sees("You are", room)
            assert harness.counters.received == 2
            server.react(room, asked.id, "👎️")
            await server.sees("written", room)


async def test_an_invitation_is_accepted_and_a_stranger_is_paired(
    tmp_path: Path,
) -> None:
    async with MatrixServer() as server, ModelServer() as model:
        async with opened(tmp_path, model, server) as harness:
            room = server.room(user(4))
            server.say(room, "hermes: an old message", sender=4)
            server.member(room, BOT, "invite", by=user(4))
            server.say(room, "who are you?", sender=4)
            await server.sees("hermes gateway pair approve", room)
            assert server.rooms[room][BOT] == "join"
            assert (harness.counters.received, harness.counters.strangers) == (0, 1)
        assert model.posts == []


async def test_a_wrong_token_is_said_and_not_hammered(tmp_path: Path) -> None:
    wrong = "syt_wrong"
    async with (
        MatrixServer() as server,
        ModelServer() as model,
        opened(tmp_path, model, server, token=wrong) as harness,
    ):
        await until(lambda: harness.status.state == "failed")
        assert "hermes config set MATRIX_ACCESS_TOKEN" in harness.status.error
        assert wrong not in harness.status.error


async def test_a_text_is_sent_to_a_person_an_alias_and_nowhere(tmp_path: Path) -> None:
    async with MatrixServer() as server, ModelServer() as model:
        room = server.room(user(1), user(2), BOT)
        server.aliases["#ops:test"] = room
        async with opened(tmp_path, model, server) as harness:
            outbox = MessageOutbox(harness.app)
            for target in ("#ops:test", user(3)):
                sent = await outbox.send(f"matrix:{target}", "done", (), 20.0)
                assert sent.state == "sent", sent.reason
            failed = await outbox.send("matrix:!elsewhere:test", "done", (), 20.0)
            assert "not invited" in failed.reason
        made = next(one for one in server.rooms if one.startswith("!made"))
        assert server.rooms[made] == {BOT: "join", user(3): "invite"}
        assert server.texts(room) == server.texts(made) == ["done"]


class EncryptedPerson:
    """A person whose app encrypts."""

    def __init__(self, server: MatrixServer, folder: Path) -> None:
        server.tokens["syt_person"] = (user(1), "PHONE")
        folder.mkdir()
        self._server = server
        self.client: Any = nio.AsyncClient(server.url, store_path=str(folder))
        self.client.restore_login(user(1), "PHONE", "syt_person")
        self.events: list[nio.Event] = []

    async def __aenter__(self) -> Self:
        await self.client.keys_upload()
        await self.sync()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.client.close()
        assert self.client.store is not None
        self.client.store.database.close()

    async def sync(self) -> None:
        response = await self.client.sync(1000, full_state=not self.events)
        assert isinstance(response, nio.SyncResponse)
        if self.client.should_query_keys:
            await self.client.keys_query()
        for info in response.rooms.join.values():
            self.events += info.timeline.events

    async def send(self, room: str, content: dict[str, Any]) -> None:
        sent = await self.client.room_send(
            room, "m.room.message", content, ignore_unverified_devices=True
        )
        assert isinstance(sent, nio.RoomSendResponse)

    async def reads(self, text: str, kind: type | None = None) -> Any:
        """Waits for a message of the bot that this device can decrypt."""
        for _ in range(20):
            for event in self.events:
                is_it = (
                    isinstance(event, kind or nio.RoomMessageText)
                    and event.sender == BOT
                )
                if is_it and text in event.source["content"]["body"]:
                    return event
            await self.sync()
        raise AssertionError(f"never read {text!r} in {self.events}")


def encrypted_picture(server: MatrixServer) -> dict[str, Any]:
    """A message with a picture whose content only its readers can decrypt."""
    server.files["pic"], keys = attachments.encrypt_attachment(PNG)
    return {
        "msgtype": "m.image",
        "body": "look",
        "filename": "pic.png",
        "file": keys | {"url": "mxc://test/pic"},
        "info": {"mimetype": "image/png"},
    }


async def test_an_encrypted_room_is_read_and_answered_with_files_after_a_restart_too(
    tmp_path: Path,
) -> None:
    def respond(request: Recorded) -> ScriptedResponse:
        (tmp_path / "work" / "report.txt").write_text("a report")
        is_second = b"once more" in request.body
        answer = "the second secret" if is_second else "secret: [it](report.txt)"
        return ScriptedResponse(text=answer)

    async with MatrixServer() as server, ModelServer(respond=respond) as model:
        room = server.direct(encrypted=True)
        async with EncryptedPerson(server, tmp_path / "phone") as person:
            async with opened(tmp_path, model, server) as harness:
                await server.until(lambda: BOT in server.device_keys)
                await person.sync()
                await person.send(room, encrypted_picture(server))
                await person.reads("secret: [it]")
                sent = await person.reads("report.txt", nio.RoomEncryptedFile)
                stored = server.files[sent.url.rpartition("/")[2]]
                keys = (sent.key["k"], sent.hashes["sha256"], sent.iv)
                assert attachments.decrypt_attachment(stored, *keys) == b"a report"
                said = harness.said(f"matrix/{room}")[0]
                assert isinstance(said, UserMessage)
                assert Path(said.images[0].source).read_bytes() == PNG  # noqa: ASYNC240 - nothing else waits
            async with opened(tmp_path, model, server):
                await person.send(room, {"msgtype": "m.text", "body": "once more"})
                await person.reads("the second secret")
        raw = msgspec.json.encode([content for _, content in server.calls])
        assert b"secret" not in raw
        assert b"once more" not in raw


async def test_a_message_that_can_not_be_decrypted_is_said_once(tmp_path: Path) -> None:
    async with MatrixServer() as server, ModelServer() as model:
        room = server.direct(encrypted=True)
        content = {
            "algorithm": "m.megolm.v1.aes-sha2",
            "ciphertext": "AwgAEoABzL1JYhqhjW9jXrlT3M6H8mJ4qffYtOQOnPuAPNxsuG20oiD",
            "device_id": "PHONE",
            "sender_key": "y3wTJGmKDmBPaSrHV3NV8gbBgPvEFkGxl3vAnV8Yr2Y",
            "session_id": "IcZnIqTR3pSmYUDTFlOnQ0fl7yfOSKtMCEkCPAb9MbQ",
        }
        server.tokens[TOKEN] = (BOT, "")  # a token without a device can't encrypt
        async with opened(tmp_path, model, server) as harness:
            for _ in range(2):
                server.add(room, user(1), "m.room.encrypted", content)
            await server.sees("I can't read encrypted messages here", room)
            outbox = MessageOutbox(harness.app)
            failed = await outbox.send(f"matrix:{room}", "secret", (), 20.0)
            assert "the room is encrypted" in failed.reason
        assert len(server.texts(room)) == 1
        assert model.posts == []

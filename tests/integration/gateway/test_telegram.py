"""Telegram in and out, against a server that speaks the Bot API."""

import base64
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest
from tests.fakes.telegram_server import Failure, TelegramServer
from tests.integration.gateway.harness import opened, until

from hermes.app.typed_part import typed_part
from hermes.schema.events import (
    CompactionFailed,
    SessionCompacted,
    TurnEnded,
    TurnStarted,
)
from hermes.schema.messages import UserMessage
from hermes.settings.gateway import TelegramSettings
from hermes.settings.media import MediaSettings
from hermes.testing.model_server import ModelServer, Recorded
from hermes.testing.scripted_responses import ScriptedResponse, ServedCall

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108020000009077"
    "53de0000000c49444154789c63f8cfc000000301010018dd8db00000000049454e44ae426082"
)


async def test_a_message_is_answered_in_its_chat(tmp_path: Path) -> None:
    async with TelegramServer() as telegram, ModelServer("Hello **you**") as model:
        async with opened(tmp_path, model, telegram) as harness:
            telegram.say("hi")
            shown = await telegram.sees("Hello you")
            assert shown.text == "Hello <b>you</b>"
            await until(lambda: not telegram.unacknowledged)
            messages = harness.app.store.log.messages(harness.session)
        assert b"You talk in a chat app (telegram)" in model.posts[0].body
        assert [message.text for message in messages] == ["hi", "Hello **you**"]
        assert len(telegram.texts()) == 1


async def test_a_long_reply_streams_by_changing_and_is_split(tmp_path: Path) -> None:
    text = "word " * 2500
    async with (
        TelegramServer() as telegram,
        ModelServer(ScriptedResponse(text=text, chunk=500, delay=0.15)) as model,
    ):
        async with opened(tmp_path, model, telegram):
            telegram.say("tell me")
            await telegram.until(
                lambda server: (
                    "▌" not in " ".join(server.texts()) and len(server.texts()) == 4
                )
            )
        assert "".join("".join(telegram.texts()).split()) == "word" * 2500
        assert any(one.changes > 1 for one in telegram.messages)


async def test_rate_limits_are_waited_out_and_nothing_is_lost_or_doubled(
    tmp_path: Path,
) -> None:
    async with TelegramServer() as telegram, ModelServer("the answer") as model:
        telegram.failures["sendMessage"] = [
            Failure(429, "Too Many Requests: retry after 1", 1),
            Failure(502, "Bad Gateway"),
        ]
        async with opened(tmp_path, model, telegram) as harness:
            telegram.say("hi")
            await telegram.sees("the answer")
            counters = harness.gateway.senders["telegram"].counters
            assert (counters.slowed, counters.retried) == (1, 1)
        assert telegram.texts() == ["the answer"]


async def test_the_same_update_is_acted_on_once(tmp_path: Path) -> None:
    async with TelegramServer() as telegram, ModelServer("once") as model:
        async with opened(tmp_path, model, telegram) as harness:
            telegram.say("hi")
            update = telegram.unacknowledged[0]
            await telegram.sees("once")
            await until(lambda: not telegram.unacknowledged)
            telegram.again(update)
            await telegram.until(lambda server: not server.unacknowledged)
            assert len(harness.app.store.log.messages(harness.session)) == 2
        assert len(model.posts) == 1


async def test_a_text_that_telegram_cannot_read_arrives_as_it_is(
    tmp_path: Path,
) -> None:
    async with TelegramServer() as telegram, ModelServer("**a**") as model:
        telegram.failures["sendMessage"] = [
            Failure(400, "Bad Request: can't parse entities: unsupported start tag")
        ]
        async with opened(tmp_path, model, telegram):
            telegram.say("hi")
            assert (await telegram.sees("**a**")).text == "**a**"


async def test_a_chat_that_blocked_us_is_given_up_and_counted(tmp_path: Path) -> None:
    async with TelegramServer() as telegram, ModelServer("one", "two") as model:
        telegram.failures["sendMessage"] = [
            Failure(403, "Forbidden: bot was blocked by the user")
        ]
        async with opened(tmp_path, model, telegram) as harness:
            telegram.say("first")
            post = harness.gateway.senders["telegram"]
            await until(lambda: post.counters.refused == 1)
            telegram.say("second")
            await telegram.sees("two")
        assert telegram.texts() == ["two"]


async def test_pictures_and_files_come_in_and_go_out(tmp_path: Path) -> None:
    def respond(request: Recorded) -> ScriptedResponse:
        (tmp_path / "work" / "report.txt").write_text("a report")
        (tmp_path / "work" / ".env").write_text("KEY=1")
        return ScriptedResponse(
            text="Here: [report](report.txt), [not this](.env), [nor this](../secret.txt)"
        )

    (tmp_path / "secret.txt").write_text("secret")
    async with TelegramServer() as telegram, ModelServer(respond=respond) as model:
        telegram.files["pic"] = PNG
        async with opened(tmp_path, model, telegram) as harness:
            telegram.say(
                "",
                caption="look",
                photo=[
                    {"file_id": "pic", "width": 1, "height": 1, "file_size": len(PNG)}
                ],
            )
            await telegram.until(
                lambda server: any(one.kind == "document" for one in server.messages)
            )
            said = harness.app.store.log.messages(harness.session)[0]
            assert isinstance(said, UserMessage)
            source = Path(said.images[0].source)
            assert said.text.startswith("look\n[image: ")
        assert source.read_bytes() == PNG  # noqa: ASYNC240 - nothing else waits
        sent = [one.file for one in telegram.messages if one.kind != "text"]
        assert sent == [b"a report"]
        assert any("A picture was not sent to" in one.text for one in telegram.messages)


def read(path: Path) -> bytes:
    return path.read_bytes()


async def test_a_document_is_read_for_the_model(tmp_path: Path) -> None:
    docx = pytest.importorskip("docx")
    written = docx.Document()
    written.add_paragraph("The parrot is 4711 years old.")
    written.save(str(tmp_path / "parrot.docx"))
    async with TelegramServer() as telegram, ModelServer("noted") as model:
        telegram.files["doc"] = read(tmp_path / "parrot.docx")
        async with opened(tmp_path, model, telegram) as harness:
            telegram.say(
                "how old?", document={"file_id": "doc", "file_name": "parrot.docx"}
            )
            await telegram.sees("noted")
            said = harness.app.store.log.messages(harness.session)[0]
        assert b"The parrot is 4711 years old." in model.posts[0].body
    assert said.text.startswith('how old?\n\n<attached path="')
    assert typed_part(said.text) == "how old?"


async def test_a_picture_that_was_made_is_sent_as_a_photo(tmp_path: Path) -> None:
    call = ServedCall("image_generate", '{"prompt": "a cat"}')
    draw = f"echo {base64.b64encode(PNG).decode()} | base64 -d >$0"
    media = msgspec.convert(
        {"images": {"command": ["sh", "-c", draw, "{output}"]}}, MediaSettings
    )
    async with (
        TelegramServer() as telegram,
        ModelServer(ScriptedResponse(calls=(call,)), "Here is your cat.") as model,
        opened(tmp_path, model, telegram, media=media),
    ):
        telegram.say("draw a cat")
        await telegram.sees("Here is your cat.")
        photos = [one.file for one in telegram.messages if one.kind == "photo"]
    assert photos == [PNG]


async def test_a_file_that_is_too_large_is_not_taken(tmp_path: Path) -> None:
    async with TelegramServer() as telegram, ModelServer("I see") as model:
        telegram.files["big"] = b"x" * 2000
        async with opened(tmp_path, model, telegram, file_bytes=1000) as harness:
            telegram.say(
                "take it", document={"file_id": "big", "file_name": "../../big.bin"}
            )
            await telegram.sees("I see")
            said = harness.app.store.log.messages(harness.session)[0]
            assert "[A file did not arrive: ../../big.bin." in said.text
        assert not list((tmp_path / "work").rglob("*big*"))


async def test_what_is_neither_words_nor_a_file_is_answered_too(tmp_path: Path) -> None:
    def respond(request: Recorded) -> ScriptedResponse:
        return ScriptedResponse(
            text=f"read: {msgspec.json.decode(request.body)['messages'][-1]['content']}"
        )

    sent: dict[str, dict[str, Any]] = {
        "🙂": {"sticker": {"file_id": "s", "emoji": "🙂"}},
        "[place: 52.5, 13.4]": {"location": {"latitude": 52.5, "longitude": 13.4}},
        "[contact: Ada, +1]": {"contact": {"first_name": "Ada", "phone_number": "+1"}},
        "[poll: Lunch?]": {"poll": {"question": "Lunch?"}},
    }
    async with (
        TelegramServer() as telegram,
        ModelServer(respond=respond) as model,
        opened(tmp_path, model, telegram),
    ):
        for words, content in sent.items():
            telegram.say("", **content)
            await telegram.sees(f"read: {words}")


async def test_in_a_group_only_what_is_meant_for_hermes_counts_and_each_has_a_session(
    tmp_path: Path,
) -> None:
    async with (
        TelegramServer() as telegram,
        ModelServer("for one", "for two") as model,
        opened(tmp_path, model, telegram, allow=("telegram:2",)) as harness,
    ):
        telegram.say("just chatting", sender=1, chat=-7)
        telegram.say("@loopback_bot hello", sender=1, chat=-7)
        await telegram.sees("for one", chat=-7)
        telegram.say("hey @loopback_bot", sender=2, chat=-7)
        await telegram.sees("for two", chat=-7)
        chats = harness.app.store.chats
        first, second = chats.find("telegram/-7//@1"), chats.find("telegram/-7//@2")
        assert first
        assert second
        assert first.session != second.session
        assert [
            message.text for message in harness.app.store.log.messages(first.session)
        ] == [
            "[Person1] hello",
            "for one",
        ]


async def test_a_topic_of_a_forum_is_one_conversation_and_answered_there(
    tmp_path: Path,
) -> None:
    async with (
        TelegramServer() as telegram,
        ModelServer("in the topic") as model,
        opened(tmp_path, model, telegram) as harness,
    ):
        telegram.say(
            "@loopback_bot hi", chat=-7, is_topic_message=True, message_thread_id=33
        )
        assert (await telegram.sees("in the topic", chat=-7)).thread == 33
        assert harness.app.store.chats.find("telegram/-7/33") is not None


async def test_a_webhook_takes_only_what_telegram_calls_with_and_each_update_once(
    tmp_path: Path,
) -> None:
    async with TelegramServer() as telegram, ModelServer("by webhook") as model:
        settings = TelegramSettings(
            api_url=telegram.url,
            webhook_url="https://example.test/telegram",
            per_second=1000.0,
        )
        async with opened(tmp_path, model, telegram, telegram=settings) as harness:
            await until(
                lambda: (
                    harness.gateway.status.url
                    and harness.gateway.status.parts[0].state == "connected"
                )
            )
            told = next(
                fields for method, fields in telegram.calls if method == "setWebhook"
            )
            assert told["url"] == "https://example.test/telegram"
            telegram.say("hi")
            update = msgspec.json.encode(telegram.unacknowledged[0])
            url = f"{harness.gateway.status.url}/telegram"
            async with httpx2.AsyncClient(trust_env=False) as client:
                answers = [
                    await client.post(
                        url,
                        content=update,
                        headers={"x-telegram-bot-api-secret-token": secret},
                    )
                    for secret in (
                        "",
                        "guessed",
                        told["secret_token"],
                        told["secret_token"],
                    )
                ]
            assert [one.status_code for one in answers] == [403, 403, 200, 200]
            await telegram.sees("by webhook")
            assert harness.gateway.senders["telegram"].counters.repeated == 1
        assert len(model.posts) == 1
        assert not any(method == "getUpdates" for method, _ in telegram.calls)


async def test_that_the_conversation_was_shortened_by_itself_is_said_in_the_chat(
    tmp_path: Path,
) -> None:
    async with (
        TelegramServer() as telegram,
        ModelServer("hi") as model,
        opened(tmp_path, model, telegram) as harness,
    ):
        telegram.say("hello")
        await telegram.sees("hi")
        await harness.gateway.agent.service.idle(harness.session)
        harness.app.record(
            harness.session,
            TurnStarted(),
            SessionCompacted(summary="s", head=0, tail=0, before=120_000, after=30_000),
            CompactionFailed(detail="the summary was empty"),
            TurnEnded(reason="done"),
            turn="elsewhere",
        )
        await telegram.sees("120,000 tokens became 30,000")
        await telegram.sees("could not be shortened: the summary was empty")

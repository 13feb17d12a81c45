"""Telegram in and out, against a server that speaks the Bot API."""

from pathlib import Path

from tests.integration.gateway.house import opened, until

from hermes.testing.model_server import ModelServer
from hermes.testing.served import Served
from hermes.testing.telegram_server import TelegramServer


async def test_a_message_is_answered_in_its_chat(tmp_path: Path) -> None:
    async with TelegramServer() as telegram, ModelServer("Hello **you**") as model:
        async with opened(tmp_path, model, telegram) as house:
            telegram.say("hi")
            shown = await telegram.sees("Hello you")
            assert shown.text == "Hello <b>you</b>"
            await until(lambda: not telegram.unacknowledged)
            messages = house.app.store.log.messages(house.session)
        assert [message.text for message in messages] == ["hi", "Hello **you**"]
        assert len(telegram.texts()) == 1


async def test_a_long_reply_streams_by_changing_and_is_split(tmp_path: Path) -> None:
    text = "word " * 2500
    async with TelegramServer() as telegram, ModelServer(Served(text=text, chunk=500, delay=0.15)) as model:
        async with opened(tmp_path, model, telegram):
            telegram.say("tell me")
            await telegram.until(lambda server: "▌" not in " ".join(server.texts()) and len(server.texts()) == 4)
        assert "".join("".join(telegram.texts()).split()) == "word" * 2500
        assert any(one.changes > 1 for one in telegram.messages)

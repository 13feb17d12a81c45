"""WhatsApp in and out, against a server that speaks Meta's Cloud API."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest
from tests.fakes.chat_server import Failure
from tests.fakes.whatsapp_server import (
    APP_SECRET,
    NUMBER,
    TOKEN,
    VERIFY_TOKEN,
    WhatsAppServer,
)
from tests.integration.gateway.harness import until
from tests.integration.gateway.platforms import PNG, Running, asks_to_write, running

from hermes.app.outgoing import MessageOutbox
from hermes.schema.messages import UserMessage
from hermes.settings.chat_platforms import WhatsAppSettings
from hermes.settings.gateway import GatewaySettings
from hermes.testing.model_server import ModelServer, Recorded
from hermes.testing.scripted_responses import ScriptedResponse

OWNER = "491701"
KEY = f"whatsapp/{OWNER}"


@asynccontextmanager
async def opened(
    folder: Path,
    model: ModelServer,
    server: WhatsAppServer,
    *,
    token: str = TOKEN,
    **more: Any,
) -> AsyncIterator[Running]:
    section = WhatsAppSettings(phone_number_id=NUMBER, api_url=server.api)
    settings = GatewaySettings(
        platforms=("whatsapp",), owners=(f"whatsapp:{OWNER}",), whatsapp=section
    )
    settings = msgspec.structs.replace(settings, **more)
    secrets = {
        "WHATSAPP_TOKEN": token,
        "WHATSAPP_APP_SECRET": APP_SECRET,
        "WHATSAPP_VERIFY_TOKEN": VERIFY_TOKEN,
    }
    async with running(folder, model, secrets, settings) as harness:
        if token == TOKEN:
            await until(
                lambda: (
                    harness.gateway.status.url and harness.status.state == "connected"
                )
            )
            server.webhook = f"{harness.gateway.status.url}/whatsapp"
        yield harness


async def test_a_message_is_answered_once_and_nothing_secret_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    answer = "Hello **you**, see [this](https://example.org/a?b=1&c=2) & `code`"
    async with WhatsAppServer() as server, ModelServer(answer) as model:
        async with opened(tmp_path, model, server) as harness:
            first = await server.say("hi")
            shown = await server.sees("Hello", OWNER)
            assert shown.text == (
                "Hello *you*, see this (https://example.org/a?b=1&c=2) & `code`"
            )
            await server.say("hi", id=first)
            assert harness.counters.repeated == 1
            assert harness.status.identity == "Hermes, +1 555-078-3881"
            assert [one.text for one in harness.said(KEY)] == ["hi", answer]
        assert len(model.posts) == 1
    assert not any(one in caplog.text for one in (TOKEN, APP_SECRET, VERIFY_TOKEN))


async def test_only_what_meta_signed_is_taken(tmp_path: Path) -> None:
    async with WhatsAppServer() as server, ModelServer() as model:
        async with opened(tmp_path, model, server) as harness:
            message = {"from": OWNER, "id": "x", "type": "text", "text": {"body": "hi"}}
            value = {"metadata": {"phone_number_id": NUMBER}, "messages": [message]}
            update = {"entry": [{"changes": [{"value": value}]}]}
            assert await server.post(update, "a wrong secret") == 403
            value["metadata"] = {"phone_number_id": "another number"}
            assert await server.post(update) == 200
            asked = {"hub.mode": "subscribe", "hub.challenge": "1158201444"}
            async with httpx2.AsyncClient(trust_env=False) as client:
                told = [
                    await client.get(
                        server.webhook, params=asked | {"hub.verify_token": token}
                    )
                    for token in (VERIFY_TOKEN, "another")
                ]
            assert (told[0].status_code, told[0].text) == (200, "1158201444")
            assert told[1].status_code == 403
            assert harness.counters.received == 0
        assert model.posts == []


async def test_a_long_answer_is_split_and_limits_are_waited_out(
    tmp_path: Path,
) -> None:
    text = "word " * 1000
    slow = ScriptedResponse(text=text, chunk=1000, delay=0.3)
    async with WhatsAppServer() as server, ModelServer(slow) as model:
        async with opened(tmp_path, model, server) as harness:
            server.failures["messages"] = [
                Failure(131016, "Service temporarily unavailable."),
                Failure(131056, "pair rate limit hit", 1),
            ]
            asked = await server.say("tell me")
            await server.until(lambda: len(server.texts(OWNER)) == 2)
            assert (harness.counters.slowed, harness.counters.retried) == (1, 1)
            reads = [one for _, one in server.calls if one.get("status") == "read"]
            assert reads[0]["message_id"] == asked
        assert "".join("".join(server.texts(OWNER)).split()) == "word" * 1000


async def test_a_message_after_24_hours_is_refused_in_plain_words(
    tmp_path: Path,
) -> None:
    async with WhatsAppServer() as server, ModelServer() as model:
        server.silent.add("491702")
        async with opened(tmp_path, model, server) as harness:
            outbox = MessageOutbox(harness.app)
            late = await outbox.send("whatsapp:491702", "the backup is done", (), 20.0)
            assert "only within 24 hours of the person's last one" in late.reason
            sent = await outbox.send("whatsapp:491703", "the backup is done", (), 20.0)
            assert sent.state == "sent"
            # A person who hides their number is reached by the id that Meta gives them.
            await outbox.send("whatsapp:US.1349120865", "hello", (), 20.0)
        assert server.texts("491703") == ["the backup is done"]
        assert server.messages[-1].raw["recipient"] == "US.1349120865"


@pytest.mark.parametrize("answer", ["button", "number"])
async def test_an_approval_is_answered_by_choosing_or_by_its_number(
    tmp_path: Path, answer: str
) -> None:
    async with (
        WhatsAppServer() as server,
        ModelServer(respond=asks_to_write) as model,
        opened(tmp_path, model, server),
    ):
        await server.say("write it")
        await server.sees("Approval needed", OWNER)
        await server.until(lambda: any(one.buttons for one in server.messages))
        asked = next(one for one in server.messages if one.buttons)
        assert {"Allow", "Deny"} <= set(asked.buttons)
        if answer == "button":
            await server.press(asked, "Deny")
        else:
            await server.say("/deny")
        await server.sees("Denied", OWNER)
        await server.sees("written", OWNER)


async def test_files_come_in_and_go_out_and_a_voice_note_is_audio(
    tmp_path: Path,
) -> None:
    def respond(request: Recorded) -> ScriptedResponse:
        (tmp_path / "work" / "report.md").write_text("a report")
        (tmp_path / "work" / "all.zip").write_bytes(b"PK")
        (tmp_path / "work" / "pic.png").write_bytes(PNG)
        return ScriptedResponse(
            text="Here: [it](report.md), [and](pic.png) [zip](all.zip)"
        )

    async with WhatsAppServer() as server, ModelServer(respond=respond) as model:
        async with opened(tmp_path, model, server) as harness:
            image = server.attach(PNG, "image/png", caption="look")
            await server.say(type="image", image=image)
            await server.until(
                lambda: sum(bool(one.file) for one in server.messages) == 2
            )
            said = harness.said(KEY)[0]
            assert isinstance(said, UserMessage)
            assert said.text.startswith("look")
            assert Path(said.images[0].source).read_bytes() == PNG  # noqa: ASYNC240 - nothing else waits
            note = server.attach(b"OggS", "audio/ogg; codecs=opus", voice=True)
            await server.say(type="audio", audio=note)
            await until(lambda: len(harness.said(KEY)) == 4)
            assert harness.said(KEY)[2].text.startswith("[voice: ")
        sent = [
            (one.raw["type"], one.name, one.file) for one in server.messages if one.file
        ]
        assert sent[:2] == [("document", "report.md", b"a report"), ("image", "", PNG)]
        assert any("all.zip can't be sent" in one for one in server.texts(OWNER))


async def test_a_stranger_is_paired_and_groups_and_reactions_are_left_alone(
    tmp_path: Path,
) -> None:
    async with WhatsAppServer() as server, ModelServer() as model:
        async with opened(tmp_path, model, server) as harness:
            await server.say("who are you?", sender="491709")
            await server.sees("hermes gateway pair approve", "491709")
            await server.say("all of you", group_id="G1")
            await server.say(type="reaction", reaction={"emoji": "👍"})
            assert (harness.counters.received, harness.counters.strangers) == (0, 1)
        assert model.posts == []


async def test_a_wrong_token_is_said_and_not_hammered(tmp_path: Path) -> None:
    wrong = "EAAwrong"
    async with (
        WhatsAppServer() as server,
        ModelServer() as model,
        opened(tmp_path, model, server, token=wrong) as harness,
    ):
        await until(lambda: harness.status.state == "failed")
        assert "hermes config set WHATSAPP_TOKEN" in harness.status.error
        assert wrong not in harness.status.error


async def test_what_comes_while_no_gateway_runs_is_answered_when_meta_repeats_it(
    tmp_path: Path,
) -> None:
    async with WhatsAppServer() as server, ModelServer("at last") as model:
        async with opened(tmp_path, model, server):
            pass
        await server.say("hello?")
        assert len(server.unacknowledged) == 1
        async with opened(tmp_path, model, server):
            await server.repeat()
            await server.sees("at last", OWNER)

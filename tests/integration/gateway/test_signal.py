"""Signal in and out, against a daemon that speaks signal-cli's JSON-RPC."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp
import msgspec
import pytest
from tests.fakes.chat_server import Failure
from tests.fakes.signal_server import ACCOUNT, GROUP, SignalServer, uuid_of
from tests.integration.gateway.harness import PATIENCE, until
from tests.integration.gateway.platforms import PNG, Running, asks_to_write, running

from hermes.app.outgoing import MessageOutbox
from hermes.schema.messages import UserMessage
from hermes.settings.chat_platforms import SignalSettings
from hermes.settings.gateway import GatewaySettings
from hermes.testing.model_server import ModelServer, Recorded
from hermes.testing.scripted_responses import ScriptedResponse

OWNER = uuid_of(1)
KEY = f"signal/{OWNER}"


@asynccontextmanager
async def opened(
    folder: Path,
    model: ModelServer,
    server: SignalServer,
    *,
    account: str = ACCOUNT,
    **more: Any,
) -> AsyncIterator[Running]:
    settings = GatewaySettings(
        platforms=("signal",),
        owners=(f"signal:{OWNER}",),
        signal=SignalSettings(account=account, url=server.url),
    )
    settings = msgspec.structs.replace(settings, **more)
    async with running(folder, model, {}, settings) as harness:
        if account == ACCOUNT:
            await until(lambda: harness.status.state == "connected")
        yield harness


async def test_a_message_is_answered_once_with_its_styles(tmp_path: Path) -> None:
    answer = "Hello 🙂 **you**, see [this](https://example.org) & `code`"
    async with SignalServer() as server, ModelServer(answer) as model:
        async with opened(tmp_path, model, server) as harness:
            message = {"timestamp": 7, "message": "hi"}
            event = server.tell({"dataMessage": message})
            shown = await server.sees("Hello", OWNER)
            assert shown.text == "Hello 🙂 you, see this (https://example.org) & code"
            assert shown.raw["textStyle"] == ["9:3:BOLD", "47:4:MONOSPACE"]
            server.again(event | {"account": ACCOUNT})
            await until(lambda: harness.counters.repeated == 1)
            assert harness.status.identity == ACCOUNT
            assert [one.text for one in harness.said(KEY)] == ["hi", answer]
        assert len(model.posts) == 1


async def test_a_long_answer_is_split_and_limits_are_waited_out(tmp_path: Path) -> None:
    slow = ScriptedResponse(text="wörter " * 600, chunk=1000, delay=0.3)
    async with SignalServer() as server, ModelServer(slow) as model:
        async with opened(tmp_path, model, server) as harness:
            server.failures["send"] = [
                Failure(-5, "Rate limit", 1),
                Failure(-3, "Failed to send message (IOException)"),
            ]
            server.say("tell me")
            await server.until(lambda: len(server.texts(OWNER)) == 3)
            assert (harness.counters.slowed, harness.counters.retried) == (1, 1)
        assert "".join("".join(server.texts(OWNER)).split()) == "wörter" * 600
        assert any(name == "sendTyping" for name, _ in server.calls)


@pytest.mark.parametrize("answer", ["number", "reaction"])
async def test_an_approval_is_answered_by_its_number_or_by_a_thumb(
    tmp_path: Path, answer: str
) -> None:
    async with (
        SignalServer() as server,
        ModelServer(respond=asks_to_write) as model,
        opened(tmp_path, model, server),
    ):
        server.say("write it")
        asked = await server.sees("Approval needed", OWNER)
        number = asked.text.split("/deny ")[1].split(",")[0]
        if answer == "number":
            server.say(f"/deny {number}")
        else:
            server.react(asked, "🎉")
            server.react(asked, "👎🏽")
        await server.sees("Denied", OWNER)
        await server.sees("written", OWNER)


async def test_a_thumb_counts_only_in_the_chat_of_the_request(tmp_path: Path) -> None:
    """A message is named by its time alone, which anybody can guess."""
    async with (
        SignalServer() as server,
        ModelServer(respond=asks_to_write) as model,
        opened(tmp_path, model, server) as harness,
    ):
        server.say("write it")
        asked = await server.sees("Approval needed", OWNER)
        server.react(asked, "👎", sender=2)
        server.react(asked, "👎", group=GROUP)
        server.say("/status")
        await server.sees("You are", OWNER)
        assert harness.counters.received == 2
        assert harness.counters.strangers == 0
        server.react(asked, "👎")
        await server.sees("written", OWNER)


async def test_in_a_group_hermes_answers_mentions_and_quotes_of_itself(
    tmp_path: Path,
) -> None:
    async with (
        SignalServer() as server,
        ModelServer("one", "two") as model,
        opened(tmp_path, model, server) as harness,
    ):
        server.say("just chatting", group=GROUP)
        mention = {"number": ACCOUNT, "uuid": uuid_of(99), "start": 3, "length": 1}
        other = {"number": "+15550002", "uuid": uuid_of(2), "start": 0, "length": 1}
        said = "\ufffc, \ufffc hello"
        server.say(said, group=GROUP, mentions=[other, mention])
        shown = await server.sees("one", GROUP)
        quote = {"id": int(shown.id), "authorNumber": ACCOUNT, "text": "one"}
        server.say("and this?", group=GROUP, quote=quote)
        await server.sees("two", GROUP)
        mention = mention | {"start": 0}
        asked = server.say("\ufffc /status", group=GROUP, mentions=[mention])
        shown = await server.sees("You are", GROUP)
        assert (shown.raw["quoteTimestamp"], shown.raw["quoteAuthor"]) == (asked, OWNER)
        assert shown.raw["quoteMessage"] == "/status"
        assert harness.counters.received == 3
        binding = harness.app.store.chats.recent(1)[0]
        texts = [one.text for one in harness.app.store.log.messages(binding.session)]
        assert texts[0].endswith("@+15550002,  hello")
        assert texts[2].endswith("> one\n\nand this?")


async def test_files_come_in_and_go_out_and_a_voice_note_is_audio(
    tmp_path: Path,
) -> None:
    def respond(request: Recorded) -> ScriptedResponse:
        (tmp_path / "work" / "größe.txt").write_text("a report")
        return ScriptedResponse(text="Here: [it](größe.txt)")

    async with SignalServer() as server, ModelServer(respond=respond) as model:
        async with opened(tmp_path, model, server) as harness:
            server.say("look", attachments=[server.attach(PNG, "image/png", "pic.png")])
            await server.until(lambda: any(one.file for one in server.messages))
            said = harness.said(KEY)[0]
            assert isinstance(said, UserMessage)
            assert Path(said.images[0].source).read_bytes() == PNG  # noqa: ASYNC240 - nothing else waits
            server.say(None, attachments=[server.attach(b"note", "audio/aac")])
            await until(lambda: len(harness.said(KEY)) == 4)
            assert harness.said(KEY)[2].text.startswith("[voice: ")
        sent = [(one.name, one.file) for one in server.messages if one.file]
        assert sent[0] == ("größe.txt", b"a report")


async def test_what_was_said_while_the_daemon_restarted_is_answered(
    tmp_path: Path,
) -> None:
    async with SignalServer() as server, ModelServer("one", "two") as model:
        async with opened(tmp_path, model, server) as harness:
            server.say("first")
            await server.sees("one", OWNER)
            server.drop()
            await until(lambda: harness.status.state == "retrying")
            server.say("second")
            await server.sees("two", OWNER)
        assert len(model.posts) == 2


async def test_a_message_that_a_crash_swallowed_is_answered_at_the_next_start(
    tmp_path: Path,
) -> None:
    async with SignalServer() as server, ModelServer("one", "two") as model:
        async with opened(tmp_path, model, server):
            server.say("first")
            await server.sees("one", OWNER)
        server.drop()
        await until(lambda: server.listeners == 0)
        server.say("second")
        await _read_and_die(server)
        assert server.waiting == []
        server.drop()
        async with opened(tmp_path, model, server):
            await server.sees("two", OWNER)
        assert len(model.posts) == 2


async def _read_and_die(server: SignalServer) -> None:
    """A gateway that gets what is waiting and stores nothing."""
    address = f"{server.url}/api/v1/events?account={quote(ACCOUNT, safe='')}"
    async with aiohttp.ClientSession() as client, client.get(address) as reply:
        await asyncio.wait_for(reply.content.readuntil(b"\n\n"), PATIENCE)


async def test_a_stranger_is_paired_and_other_events_are_left_alone(
    tmp_path: Path,
) -> None:
    async with SignalServer() as server, ModelServer() as model:
        async with opened(tmp_path, model, server) as harness:
            server.tell({"typingMessage": {"action": "STARTED"}})
            server.tell({"receiptMessage": {"isRead": True}})
            server.say("", groupInfo={"groupId": GROUP, "type": "UPDATE"})
            server.say("who are you?", sender=4)
            await server.sees("hermes gateway pair approve", uuid_of(4))
            assert (harness.counters.received, harness.counters.strangers) == (0, 1)
        assert model.posts == []


async def test_an_account_that_signal_cli_does_not_have_is_said(tmp_path: Path) -> None:
    async with (
        SignalServer() as server,
        ModelServer() as model,
        opened(tmp_path, model, server, account="+15550999") as harness,
    ):
        await until(lambda: harness.status.state == "failed")
        assert "signal-cli has no account +15550999" in harness.status.error


async def test_a_text_is_sent_to_a_number_a_group_and_nobody(tmp_path: Path) -> None:
    async with SignalServer() as server, ModelServer() as model:
        server.gone.add("+15550007")
        async with opened(tmp_path, model, server) as harness:
            outbox = MessageOutbox(harness.app)
            group = "group." + GROUP.replace("/", "_").replace("+", "-").rstrip("=")
            for target in ("+15550003", group):
                sent = await outbox.send(f"signal:{target}", "done", (), 20.0)
                assert sent.state == "sent"
            gone = await outbox.send("signal:+15550007", "done", (), 20.0)
            assert "no longer on Signal" in gone.reason
        assert server.texts("+15550003") == server.texts(GROUP) == ["done"]

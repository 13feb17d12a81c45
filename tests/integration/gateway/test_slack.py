"""Slack in and out, against a server that speaks its Web API and Socket Mode."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.fakes.chat_server import Failure
from tests.fakes.slack_server import APP_TOKEN, BOT_TOKEN, CHANNEL, ME, SlackServer
from tests.integration.gateway.harness import PATIENCE, until
from tests.integration.gateway.platforms import PNG, Running, running

from hermes.app import build
from hermes.errors import StoreError
from hermes.events.bus import Bus
from hermes.schema.messages import UserMessage
from hermes.settings import Home, Settings
from hermes.settings.gateway import GatewaySettings, SlackSettings
from hermes.surfaces.gateway.adapter import Inbound, Inlet, Receipt
from hermes.surfaces.gateway.adapters.slack.adapter import SlackAdapter
from hermes.surfaces.gateway.missed_messages import PlatformMemory
from hermes.testing.model_server import ModelServer, Recorded
from hermes.testing.scripted_responses import ScriptedResponse, ServedCall


@asynccontextmanager
async def opened(
    folder: Path,
    model: ModelServer,
    server: SlackServer,
    *,
    connects: bool = True,
    token: str = BOT_TOKEN,
    **more: Any,
) -> AsyncIterator[Running]:
    slack = SlackSettings(api_url=server.api, channels=more.pop("channels", ()))
    settings = GatewaySettings(platforms=("slack",), owners=("slack:U1",), slack=slack)
    settings = msgspec.structs.replace(settings, **more)
    secrets = {"SLACK_BOT_TOKEN": token, "SLACK_APP_TOKEN": APP_TOKEN}
    async with running(folder, model, secrets, settings) as harness:
        if connects:
            await until(lambda: harness.status.state == "connected")
        yield harness


async def test_a_message_is_answered_in_its_chat(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    async with (
        SlackServer() as server,
        ModelServer("Hello **you** <!everyone>") as model,
        opened(tmp_path, model, server) as harness,
    ):
        server.say("hi &amp; <https://example.org|this>")
        shown = await server.sees("Hello", "D1")
        assert shown.text == "Hello *you* &lt;!everyone&gt;"
        await server.until(lambda: not server.unacknowledged)
        said = [message.text for message in harness.said("slack/D1")]
        assert said == ["hi & this (https://example.org)", "Hello **you** <!everyone>"]
        assert harness.status.identity == "@hermes in Loopback"
        assert "slack is connected" in caplog.text
        assert not any(
            secret in caplog.text for secret in (BOT_TOKEN, APP_TOKEN, "ticket=")
        )


class Door(Inlet):
    """Takes messages in when it is opened, and not before."""

    def __init__(self) -> None:
        self.waiting = asyncio.Event()
        self.opened = asyncio.Event()
        self.broken = False

    async def connected(self, identity: str) -> None:
        assert identity

    async def receive(self, inbound: Inbound) -> Receipt:
        self.waiting.set()
        if self.broken:
            raise StoreError(f"The disk is full: {inbound.id} can't be saved.")
        await self.opened.wait()
        return "taken"

    def disturbed(self, why: str) -> None:
        assert not why


async def test_an_envelope_is_acknowledged_only_after_its_message_was_taken_in(
    tmp_path: Path,
) -> None:
    async with SlackServer() as server:
        with build(Settings(), Home(tmp_path / "home"), bus=Bus()) as app:
            adapter = SlackAdapter(
                (BOT_TOKEN, APP_TOKEN),
                SlackSettings(api_url=server.api),
                PlatformMemory(app, "slack"),
                5.0,
            )
            door = Door()
            task = asyncio.create_task(adapter.run(door))
            name = server.tell("events_api", {"event": {"type": "reaction_added"}})
            await server.until(
                lambda: name in server.acknowledged
            )  # nothing that anybody said
            server.say("keep this")
            await asyncio.wait_for(door.waiting.wait(), PATIENCE)
            assert len(server.unacknowledged) == 1
            door.opened.set()
            await server.until(lambda: not server.unacknowledged)
            door.broken = True
            server.say("and this")
            with pytest.raises(StoreError):
                await asyncio.wait_for(task, PATIENCE)
            assert len(server.unacknowledged) == 1
            await adapter.close()


async def test_a_long_reply_streams_by_changing_and_is_split(tmp_path: Path) -> None:
    text = "word & " * 1200
    async with (
        SlackServer() as server,
        ModelServer(ScriptedResponse(text=text, chunk=1000, delay=0.2)) as model,
    ):
        async with opened(tmp_path, model, server):
            server.say("tell me")
            await server.until(
                lambda: (
                    len(server.texts("D1")) == 4
                    and "▌" not in "".join(server.texts("D1"))
                )
            )
        assert "".join("".join(server.texts("D1")).split()) == "word&amp;" * 1200
        assert any(one.changes for one in server.messages)


async def test_rate_limits_are_waited_out_and_nothing_is_lost_or_doubled(
    tmp_path: Path,
) -> None:
    async with SlackServer() as server, ModelServer("the answer") as model:
        server.failures["chat.postMessage"] = [
            Failure(429, "ratelimited", 1),
            Failure(503, "service_unavailable"),
        ]
        async with opened(tmp_path, model, server) as harness:
            server.say("hi")
            await server.sees("the answer", "D1")
            assert (harness.counters.slowed, harness.counters.retried) == (1, 1)
        assert server.texts("D1") == ["the answer"]


async def test_a_mention_begins_a_thread_that_is_one_conversation(
    tmp_path: Path,
) -> None:
    async with (
        SlackServer() as server,
        ModelServer("in the thread", "still there") as model,
        opened(tmp_path, model, server, allow=("slack:U2",)) as harness,
    ):
        server.say("just chatting", channel=CHANNEL)
        begun = server.say(f"<@{ME}> hello", channel=CHANNEL)
        assert (await server.sees("in the thread", CHANNEL)).thread == begun
        server.say("and I?", sender="U2", channel=CHANNEL, thread_ts=begun)
        assert (await server.sees("still there", CHANNEL)).thread == begun
        texts = [message.text for message in harness.said(f"slack/{CHANNEL}/{begun}")]
        assert texts == [
            "[Person 1] hello",
            "in the thread",
            "[Person 2] and I?",
            "still there",
        ]
        await server.until(lambda: not server.unacknowledged)
        assert harness.counters.repeated == 1  # it came as a message and as a mention


async def test_in_a_chosen_channel_nobody_need_be_mentioned(tmp_path: Path) -> None:
    async with (
        SlackServer() as server,
        ModelServer("at once") as model,
        opened(tmp_path, model, server, channels=(CHANNEL,)),
    ):
        server.say("no mention", channel=CHANNEL)
        await server.sees("at once", CHANNEL)


async def test_bots_changes_and_strangers_are_not_listened_to(tmp_path: Path) -> None:
    async with SlackServer() as server, ModelServer("for the owner") as model:
        async with opened(tmp_path, model, server) as harness:
            server.say("I am a bot", bot_id="B2")
            server.say("my own words", sender=ME, channel="D1")
            server.say("changed", subtype="message_changed")
            server.say("who are you?", sender="U4")
            await server.sees("hermes gateway pair approve", "D4")
            server.say("hi")
            await server.sees("for the owner", "D1")
            assert (harness.counters.received, harness.counters.strangers) == (1, 1)
            await server.until(lambda: not server.unacknowledged)
        assert len(model.posts) == 1


async def test_an_approval_has_buttons_and_is_settled_for_everybody(
    tmp_path: Path,
) -> None:
    target = tmp_path / "elsewhere.txt"
    arguments = msgspec.json.encode(
        {"path": str(target), "content": "written"}
    ).decode()
    call = ScriptedResponse(calls=(ServedCall(name="write_file", arguments=arguments),))
    async with SlackServer() as server, ModelServer(call, "it is written") as model:
        async with opened(tmp_path, model, server, allow=("slack:U2",)):
            server.say("write it")
            shown = await server.sees("Approval needed", "D1")
            server.press(shown, "Allow", sender="U2")
            await server.until(lambda: "Only an owner can answer this." in server.notes)
            server.press(shown, "Allow")
            await server.sees("it is written", "D1")
            await server.until(lambda: "Done." in server.notes and not shown.buttons)
            assert "✅ Allowed · slack (Person 1)" in shown.text
        assert target.read_text() == "written"


async def test_commands_have_an_exclamation_mark_or_follow_the_slash_command(
    tmp_path: Path,
) -> None:
    async with (
        SlackServer() as server,
        ModelServer() as model,
        opened(tmp_path, model, server),
    ):
        server.say("!status")
        await server.sees("You are: owner", "D1")
        server.command("stop")
        await server.sees("Nothing is running.", "D1")


async def test_files_come_in_and_go_out_a_clip_is_a_voice_note_and_the_token_goes_to_slack_alone(
    tmp_path: Path,
) -> None:
    def respond(request: Recorded) -> ScriptedResponse:
        (tmp_path / "work" / "report.txt").write_text("a report")
        return ScriptedResponse(text="Here: [report](report.txt)")

    async with (
        SlackServer() as server,
        SlackServer() as elsewhere,
        ModelServer(respond=respond) as model,
    ):
        server.files["pic.png"] = elsewhere.files["bad.png"] = PNG
        server.files["clip.m4a"] = b"no sound"
        async with opened(tmp_path, model, server) as harness:
            about = {"name": "pic.png", "mimetype": "image/png", "size": len(PNG)}
            ours = about | {"url_private_download": f"{server.url}/files/pic.png"}
            theirs = about | {
                "name": "bad.png",
                "url_private": f"{elsewhere.url}/files/bad.png",
            }
            clip = {
                "name": "clip.m4a",
                "mimetype": "audio/mp4",
                "subtype": "slack_audio",
                "url_private_download": f"{server.url}/files/clip.m4a",
            }
            server.say("look", subtype="file_share", files=[ours, theirs, clip])
            await server.until(lambda: any(one.file for one in server.messages))
            said = harness.said("slack/D1")[0]
            assert isinstance(said, UserMessage)
            assert Path(said.images[0].source).read_bytes() == PNG  # noqa: ASYNC240 - nothing else waits
            assert (
                "[A file did not arrive: bad.png. It is on another server, not on the platform's.]"
                in said.text
            )
            assert "[voice: " in said.text
        assert [(one.name, one.file) for one in server.messages if one.file] == [
            ("report.txt", b"a report")
        ]


async def test_new_and_cut_connections_lose_and_double_nothing(tmp_path: Path) -> None:
    async with SlackServer() as server, ModelServer("one", "two", "three") as model:
        async with opened(tmp_path, model, server, connect_timeout=1.0) as harness:
            server.say("first")
            await server.sees("one", "D1")
            server.refresh()
            await server.until(lambda: server.connections == 2)
            server.say("second")
            await server.sees("two", "D1")
            server.hang = True
            await server.cut()
            server.say("said while it was cut")
            await until(lambda: "did not come back within 1 s" in harness.status.error)
            server.hang = False
            await server.sees("three", "D1")
            assert len(harness.said("slack/D1")) == 6
        assert server.texts("D1") == ["one", "two", "three"]


async def test_a_turn_that_runs_when_the_gateway_stops_is_still_delivered(
    tmp_path: Path,
) -> None:
    async with (
        SlackServer() as server,
        ModelServer(
            ScriptedResponse(text="to the very end", chunk=5, delay=0.15)
        ) as model,
    ):
        async with opened(tmp_path, model, server):
            server.say("hi")
            await until(lambda: model.posts)
        assert server.texts("D1") == ["to the very end"]


async def test_what_was_said_while_hermes_was_away_is_answered_once(
    tmp_path: Path,
) -> None:
    async with (
        SlackServer() as server,
        ModelServer("one", "two", "three", "four") as model,
    ):
        async with opened(tmp_path, model, server):
            server.say("first")
            await server.sees("one", "D1")
            begun = server.say(f"<@{ME}> hello", channel=CHANNEL)
            await server.sees("two", CHANNEL)
        server.say("anybody there?", quietly=True)
        async with opened(tmp_path, model, server):
            await server.sees("three", "D1")
        server.say("and here?", channel=CHANNEL, thread_ts=begun, quietly=True)
        async with opened(tmp_path, model, server):
            await server.sees("four", CHANNEL)
        assert server.texts("D1") == ["one", "three"]
        assert server.texts(CHANNEL) == ["two", "four"]


async def test_wrong_tokens_and_missing_scopes_say_what_to_do(tmp_path: Path) -> None:
    async with SlackServer() as server, ModelServer() as model:
        async with opened(
            tmp_path,
            model,
            server,
            token="xoxb-wrong-token",  # noqa: S106
            connects=False,  # noqa: RUF100, S106
        ) as harness:
            await until(lambda: harness.status.state == "failed")
            assert "hermes config set SLACK_BOT_TOKEN" in harness.status.error
            assert "xoxb-wrong" not in harness.status.error
        server.failures["apps.connections.open"] = [Failure(400, "missing_scope")]
        async with opened(tmp_path, model, server, connects=False) as harness:
            await until(lambda: harness.status.state == "failed")
            assert "lacks the scope" in harness.status.error


async def test_a_connect_that_hangs_is_cut_and_tried_again(tmp_path: Path) -> None:
    async with SlackServer() as server, ModelServer("at last") as model:
        server.hang = True
        async with opened(
            tmp_path, model, server, connect_timeout=0.3, connects=False
        ) as harness:
            await until(lambda: "did not connect within" in harness.status.error)
            server.hang = False
            await until(lambda: harness.status.state == "connected")
            server.say("hi")
            await server.sees("at last", "D1")

"""Discord in and out, against a server that speaks its API and its gateway."""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.fakes.chat_server import Failure
from tests.fakes.discord_server import CHANNEL, ME, TOKEN, DiscordServer
from tests.integration.gateway.harness import until
from tests.integration.gateway.platforms import PNG, Running, running

from hermes.schema.messages import UserMessage
from hermes.settings.gateway import DiscordSettings, GatewaySettings
from hermes.testing.model_server import ModelServer, Recorded
from hermes.testing.scripted_responses import ScriptedResponse, ServedCall
from hermes.text.install_words import install_hint

pytestmark = pytest.mark.filterwarnings(
    "ignore:'audioop' is deprecated:DeprecationWarning"
)  # of discord.py


@asynccontextmanager
async def opened(
    folder: Path,
    model: ModelServer,
    server: DiscordServer,
    *,
    connects: bool = True,
    token: str = TOKEN,
    **more: Any,
) -> AsyncIterator[Running]:
    discord = DiscordSettings(api_url=server.api, channels=more.pop("channels", ()))
    settings = GatewaySettings(
        platforms=("discord",), owners=("discord:1",), discord=discord
    )
    settings = msgspec.structs.replace(settings, **more)
    async with running(
        folder, model, {"DISCORD_BOT_TOKEN": token}, settings
    ) as harness:
        if connects:
            await until(lambda: harness.status.state == "connected")
        yield harness


async def test_a_message_is_answered_in_its_chat(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    async with (
        DiscordServer() as server,
        ModelServer("Hello **you** @everyone") as model,
    ):
        async with opened(tmp_path, model, server) as harness:
            server.say("hi")
            await server.sees("Hello **you**", "1")
            assert [message.text for message in harness.said("discord/1")] == [
                "hi",
                "Hello **you** @everyone",
            ]
            assert harness.status.identity == "@hermes"
        sent = next(fields for name, fields in server.calls if name == "send")
        assert sent["allowed_mentions"] == {"parse": []}
        assert "discord is connected" in caplog.text
        assert TOKEN not in caplog.text
        assert {one["name"] for one in server.commands} >= {"help", "stop", "new"}


async def test_a_long_reply_streams_by_changing_and_is_split(tmp_path: Path) -> None:
    text = "word " * 900
    async with (
        DiscordServer() as server,
        ModelServer(ScriptedResponse(text=text, chunk=500, delay=0.2)) as model,
    ):
        async with opened(tmp_path, model, server):
            server.say("tell me")
            await server.until(
                lambda: (
                    len(server.texts("1")) == 3
                    and "▌" not in "".join(server.texts("1"))
                )
            )
        assert "".join("".join(server.texts("1")).split()) == "word" * 900
        assert any(one.changes for one in server.messages)
        assert server.typed


async def test_rate_limits_and_failures_are_waited_out_and_nothing_is_doubled(
    tmp_path: Path,
) -> None:
    async with DiscordServer() as server, ModelServer("the answer") as model:
        server.failures["send"] = [Failure(429, "You are being rate limited.", 0.3)]
        server.failures["send after"] = [Failure(503, "it was sent, and nobody knows")]
        async with opened(tmp_path, model, server) as harness:
            server.say("hi")
            await server.sees("the answer", "1")
            await until(lambda: harness.counters.sent == 1)
            assert harness.counters.retried == 1
        assert server.texts("1") == ["the answer"]


async def test_a_chat_that_refuses_is_given_up_and_counted(tmp_path: Path) -> None:
    async with DiscordServer() as server, ModelServer("one", "two") as model:
        server.failures["send"] = [Failure(403, "Cannot send messages to this user")]
        async with opened(tmp_path, model, server) as harness:
            server.say("first")
            await until(lambda: harness.counters.refused == 1)
            server.say("second")
            await server.sees("two", "1")
        assert server.texts("1") == ["two"]


async def test_in_a_channel_only_what_is_meant_for_hermes_counts(
    tmp_path: Path,
) -> None:
    async with (
        DiscordServer() as server,
        ModelServer("for one", "for two", "for three") as model,
        opened(tmp_path, model, server, allow=("discord:2",)) as harness,
    ):
        server.say("just chatting", channel=CHANNEL)
        server.say(f"<@{ME}> hello <@2>", channel=CHANNEL)
        await server.sees("for one", CHANNEL)
        server.say(f"hey <@!{ME}>", sender="2", channel=CHANNEL)
        await server.sees("for two", CHANNEL)
        server.say(
            "a reply", channel=CHANNEL, type=19, **_replying(server.messages[0].raw)
        )
        await server.sees("for three", CHANNEL)
        told = [message.text for message in harness.said(f"discord/{CHANNEL}//@1")]
        assert told == [
            "[person1] hello @person2",
            "for one",
            "[person1] a reply",
            "for three",
        ]
        assert harness.said(f"discord/{CHANNEL}//@2")[0].text == "[person2] hey"


def _replying(message: dict[str, Any]) -> dict[str, Any]:
    reference = {
        "message_id": message["id"],
        "channel_id": message["channel_id"],
        "type": 0,
    }
    return {"message_reference": reference, "referenced_message": message}


async def test_in_a_chosen_channel_nobody_need_be_mentioned(tmp_path: Path) -> None:
    async with (
        DiscordServer() as server,
        ModelServer("at once") as model,
        opened(tmp_path, model, server, channels=(CHANNEL,)),
    ):
        server.say("no mention", channel=CHANNEL)
        await server.sees("at once", CHANNEL)


async def test_a_thread_is_one_conversation_and_goes_on_without_mentions(
    tmp_path: Path,
) -> None:
    async with (
        DiscordServer() as server,
        ModelServer("in the thread", "still there") as model,
    ):
        server.threads["700"] = CHANNEL
        async with opened(tmp_path, model, server, allow=("discord:2",)) as harness:
            server.say("nothing to do with it", channel="700")
            server.say(f"<@{ME}> hi", channel="700")
            await server.sees("in the thread", "700")
            server.say("and I?", sender="2", channel="700")
            await server.sees("still there", "700")
            texts = [message.text for message in harness.said(f"discord/{CHANNEL}/700")]
        assert texts == [
            "[person1] hi",
            "in the thread",
            "[person2] and I?",
            "still there",
        ]


async def test_bots_and_strangers_are_not_listened_to(tmp_path: Path) -> None:
    async with DiscordServer() as server, ModelServer("for the owner") as model:
        async with opened(tmp_path, model, server, allow=("discord:3",)) as harness:
            bot = server.say("I am a bot", sender="3", quietly=True)
            server.tell(
                "MESSAGE_CREATE", bot | {"author": bot["author"] | {"bot": True}}
            )
            server.say("who are you?", sender="4")
            await server.sees("hermes gateway pair approve", "4")
            server.say("hi")
            await server.sees("for the owner", "1")
            assert (harness.counters.received, harness.counters.strangers) == (1, 1)
        assert len(model.posts) == 1


async def test_an_approval_has_buttons_and_is_settled_for_everybody(
    tmp_path: Path,
) -> None:
    target = tmp_path / "elsewhere.txt"
    arguments = msgspec.json.encode(
        {"path": str(target), "content": "written"}
    ).decode()
    call = ScriptedResponse(calls=(ServedCall(name="write_file", arguments=arguments),))
    async with DiscordServer() as server, ModelServer(call, "it is written") as model:
        async with opened(tmp_path, model, server, allow=("discord:2",)):
            server.say("write it")
            shown = await server.sees("Approval needed", "1")
            server.press(shown, "Allow", sender="2")
            await server.until(lambda: "Only an owner can answer this." in server.notes)
            server.press(shown, "Allow")
            await server.sees("it is written", "1")
            await server.until(lambda: "Done." in server.notes and not shown.buttons)
            assert "✅ Allowed · discord (person1)" in shown.text
        assert target.read_text() == "written"


async def test_a_slash_command_is_confirmed_and_run(tmp_path: Path) -> None:
    async with (
        DiscordServer() as server,
        ModelServer() as model,
        opened(tmp_path, model, server),
    ):
        server.command("status")
        await server.sees("You are: owner", "1")
        answers = [fields for name, fields in server.calls if name == "callback"]
        assert [one["data"]["content"] for one in answers] == ["/status"]


async def test_files_come_in_and_go_out_and_a_voice_message_is_one(
    tmp_path: Path,
) -> None:
    def respond(request: Recorded) -> ScriptedResponse:
        (tmp_path / "work" / "report.txt").write_text("a report")
        return ScriptedResponse(text="Here: [report](report.txt)")

    async with DiscordServer() as server, ModelServer(respond=respond) as model:
        server.files["pic.png"], server.files["note.ogg"] = PNG, b"no sound"
        async with opened(tmp_path, model, server) as harness:
            url = f"{server.url}/cdn/pic.png"
            about = {
                "id": "1",
                "filename": "pic.png",
                "size": len(PNG),
                "url": url,
                "proxy_url": url,
            }
            note = {
                "id": "2",
                "filename": "note.ogg",
                "size": 8,
                "url": f"{server.url}/cdn/note.ogg",
                "proxy_url": f"{server.url}/cdn/note.ogg",
                "content_type": "audio/ogg",
                "duration_secs": 1.5,
                "waveform": "AAAA",
            }
            server.say(
                "look", attachments=[about | {"content_type": "image/png"}, note]
            )
            await server.until(lambda: any(one.file for one in server.messages))
            said = harness.said("discord/1")[0]
            assert isinstance(said, UserMessage)
            assert Path(said.images[0].source).read_bytes() == PNG  # noqa: ASYNC240 - nothing else waits
            assert "[voice: " in said.text
        assert [(one.name, one.file) for one in server.messages if one.file] == [
            ("report.txt", b"a report")
        ]


async def test_a_cut_connection_is_resumed_and_nothing_is_lost_or_doubled(
    tmp_path: Path,
) -> None:
    async with DiscordServer() as server, ModelServer("one", "two", "three") as model:
        async with opened(tmp_path, model, server) as harness:
            server.say("first")
            await server.sees("one", "1")
            await server.cut()
            server.say("said while it was cut")
            await server.sees("two", "1")
            assert server.resumed
            server.forgetful = True
            await server.cut()
            server.say("said before a new session", quietly=True)
            await server.sees("three", "1")
            await until(lambda: harness.status.state == "connected")
            assert len(harness.said("discord/1")) == 6
        assert len(server.identified) == 2
        assert server.texts("1") == ["one", "two", "three"]


async def test_a_connection_that_stays_lost_is_shown_and_begun_anew(
    tmp_path: Path,
) -> None:
    async with DiscordServer() as server, ModelServer("back again") as model:
        async with opened(tmp_path, model, server, connect_timeout=1.0) as harness:
            server.hang = True
            await server.cut()
            await until(lambda: "did not come back within 1 s" in harness.status.error)
            server.hang = False
            await until(lambda: harness.status.state == "connected")
            server.say("hi")
            await server.sees("back again", "1")
        assert len(server.identified) == 2


async def test_a_turn_that_runs_when_the_gateway_stops_is_still_delivered(
    tmp_path: Path,
) -> None:
    async with (
        DiscordServer() as server,
        ModelServer(
            ScriptedResponse(text="to the very end", chunk=5, delay=0.15)
        ) as model,
    ):
        async with opened(tmp_path, model, server):
            server.say("hi")
            await until(lambda: model.posts)
        assert server.texts("1") == ["to the very end"]


async def test_what_was_said_while_hermes_was_away_is_answered_once(
    tmp_path: Path,
) -> None:
    async with DiscordServer() as server, ModelServer("one", "two") as model:
        async with opened(tmp_path, model, server):
            server.say("first")
            await server.sees("one", "1")
        server.say("anybody there?", quietly=True)
        async with opened(tmp_path, model, server) as harness:
            await server.sees("two", "1")
            assert harness.counters.repeated == 1
        assert server.texts("1") == ["one", "two"]


async def test_a_wrong_token_and_a_missing_intent_say_what_to_do(
    tmp_path: Path,
) -> None:
    async with DiscordServer() as server, ModelServer() as model:
        async with opened(
            tmp_path,
            model,
            server,
            token="wrong.token.of-nobody",  # noqa: S106
            connects=False,  # noqa: RUF100, S106
        ) as harness:
            await until(lambda: harness.status.state == "failed")
            assert "hermes config set DISCORD_BOT_TOKEN" in harness.status.error
            assert "of-nobody" not in harness.status.error
        server.may_read = False
        async with opened(tmp_path, model, server, connects=False) as harness:
            await until(lambda: harness.status.state == "failed")
            assert "Message Content Intent" in harness.status.error


async def test_a_connect_that_hangs_is_cut_and_tried_again(tmp_path: Path) -> None:
    async with DiscordServer() as server, ModelServer("at last") as model:
        server.hang = True
        async with opened(
            tmp_path, model, server, connect_timeout=0.3, connects=False
        ) as harness:
            await until(lambda: "did not connect within" in harness.status.error)
            server.hang = False
            await until(lambda: harness.status.state == "connected")
            server.say("hi")
            await server.sees("at last", "1")


async def test_sessions_that_are_used_up_are_waited_for(tmp_path: Path) -> None:
    async with DiscordServer() as server, ModelServer() as model:
        server.starts = 0
        async with opened(tmp_path, model, server, connects=False) as harness:
            await until(lambda: "asks to wait 60 s" in harness.status.error)
        assert not server.identified


@pytest.mark.parametrize(
    ("platform", "library"), [("discord", "discord"), ("slack", "slack_sdk")]
)
async def test_a_library_that_is_missing_is_one_clear_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, platform: str, library: str
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == library]:
        monkeypatch.delitem(sys.modules, name)
    for name in [
        name
        for name in sys.modules
        if name.startswith(f"hermes.surfaces.gateway.adapters.{platform}")
    ]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, library, None)
    secrets = {
        "DISCORD_BOT_TOKEN": TOKEN,
        "SLACK_BOT_TOKEN": "xoxb-1",
        "SLACK_APP_TOKEN": "xapp-1",
    }
    async with (
        ModelServer() as model,
        running(
            tmp_path, model, secrets, GatewaySettings(platforms=(platform,))
        ) as harness,
    ):
        await until(lambda: harness.status.state == "failed")
        assert harness.status.error.startswith(
            f"{platform} needs a package that is not installed ({library}"
        )
        assert str(install_hint(platform)) in harness.status.error
        assert "\n" not in harness.status.error

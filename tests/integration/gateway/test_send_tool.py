"""The tool `send_message`: where it is offered, what is asked, and what it refuses."""

from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.fakes.ntfy_server import TOKEN, NtfyServer
from tests.integration.gateway.harness import KEY, until
from tests.integration.gateway.platforms import Running, running

from hermes.app import build
from hermes.app.agent import Agent
from hermes.app.send_tool import message_tools
from hermes.codex.tool_lending import lendable
from hermes.core.ports import ToolContext
from hermes.errors import ToolFailed
from hermes.events.bus import Bus
from hermes.schema.events import ApprovalAnswered, SessionCreated
from hermes.settings import Home, Secrets, Settings
from hermes.settings.chat_platforms import NtfySettings
from hermes.settings.gateway import GatewaySettings
from hermes.testing.model_server import ModelServer, Recorded
from hermes.testing.scripted_responses import ScriptedResponse, ServedCall

CALL = ServedCall(
    "send_message",
    '{"target": "ntfy:alerts", "text": "dinner at eight", "files": ["menu.txt"]}',
)


def opened(folder: Path, model: ModelServer, ntfy: NtfyServer) -> AbstractAsyncContextManager[Running]:  # fmt: skip
    settings = GatewaySettings(
        platforms=("ntfy",),
        owners=("ntfy:home",),
        ntfy=NtfySettings(url=ntfy.url, topic="home"),
    )
    return running(folder, model, {"NTFY_TOKEN": TOKEN}, settings)


def offered(request: Recorded) -> set[str]:
    body = msgspec.json.decode(request.body)
    return {one["function"]["name"] for one in body["tools"]}


@pytest.mark.parametrize("surface", ["cli", "dashboard", "telegram", "cron"])
async def test_it_is_offered_only_where_a_platform_is_configured(
    tmp_path: Path, surface: str
) -> None:
    connected = GatewaySettings(ntfy=NtfySettings(topic="home"))
    seen: list[bool] = []
    async with ModelServer("ok", repeat=True) as model:
        secrets = Secrets({"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": model.url}, {})
        for gateway in (GatewaySettings(), connected):
            with build(Settings(gateway=gateway), Home(tmp_path), bus=Bus()) as app:
                agent = Agent(app, secrets)
                about = SessionCreated(surface=surface, cwd=str(tmp_path))
                session = app.begin(about).session
                await agent.service.submit(session, "hello")
                await agent.service.idle(session)
                seen.append("send_message" in offered(model.posts[-1]))
                await agent.close()
    assert seen == [False, True]


def test_codex_is_lent_it(tmp_path: Path) -> None:
    with build(Settings(), Home(tmp_path), bus=Bus()) as app:
        tools = {one.spec.name: one for one in message_tools(app)}
        assert list(lendable(tools)) == ["send_message"]


async def test_it_is_sent_once_the_owner_has_seen_to_whom_what_and_which_files(
    tmp_path: Path,
) -> None:
    def respond(request: Recorded) -> ScriptedResponse:
        (tmp_path / "work" / "menu.txt").write_text("soup")
        done = b"Sent to ntfy:alerts" in request.body
        return ScriptedResponse(text="done") if done else ScriptedResponse(calls=(CALL,))  # fmt: skip

    async with (
        NtfyServer() as ntfy,
        ModelServer(respond=respond) as model,
        opened(tmp_path, model, ntfy),
    ):
        await ntfy.until(lambda: ntfy.subscribers)
        ntfy.say("invite them")
        asked = await ntfy.sees("Approval needed", "home")
        for word in ("to ntfy:alerts, with menu.txt", "dinner at eight"):
            assert word in asked.text
        assert not ntfy.texts("alerts")
        number = asked.text.split("/approve ")[1].split()[0]
        ntfy.say(f"/approve {number}")
        await ntfy.sees("done", "home")
        assert ntfy.texts("alerts") == ["dinner at eight"]
        sent = [one.file for one in ntfy.messages if one.chat == "alerts" and one.file]
        assert sent == [b"soup"]


async def test_a_session_beside_the_gateway_sends_through_it(tmp_path: Path) -> None:
    async with NtfyServer() as ntfy, ModelServer() as model:
        async with opened(tmp_path, model, ntfy) as it:
            await until(lambda: it.status.state == "connected")
            settings = Settings(gateway=it.app.settings.gateway)
            with build(settings, Home(tmp_path / "home"), bus=Bus()) as other:
                tool = message_tools(other)[0]
                call = {"target": "ntfy", "text": "from a terminal"}
                done = await tool.run(call, context(tmp_path))
        assert done.text == "Sent to ntfy:home."
        assert ntfy.texts("home") == ["from a terminal"]


async def test_where_nobody_can_be_asked_nothing_is_sent(tmp_path: Path) -> None:
    (tmp_path / "menu.txt").write_text("soup")
    gateway = GatewaySettings(ntfy=NtfySettings(topic="home"))
    async with ModelServer(ScriptedResponse(calls=(CALL,)), "no") as model:
        secrets = Secrets({"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": model.url}, {})
        with build(Settings(gateway=gateway), Home(tmp_path / "home"), bus=Bus()) as app:  # fmt: skip
            agent = Agent(app, secrets)
            about = SessionCreated(surface="cron", cwd=str(tmp_path))
            session = app.begin(about).session
            await agent.service.submit(session, "invite them")
            await agent.service.idle(session)
            events = [row.event for row in app.store.log.every_event(session)]
            answers = [one for one in events if isinstance(one, ApprovalAnswered)]
            assert [(one.answer, one.by) for one in answers] == [("deny", "nobody")]
            await agent.close()


@pytest.mark.parametrize(
    ("file", "why"),
    [
        (".env", "may hold secrets"),
        ("link.txt", "may hold secrets"),
        ("../outside.txt", "not in the working directory"),
        ("gone.txt", "can't be read"),
    ],
)
async def test_files_that_a_reply_would_not_send_are_refused(
    tmp_path: Path, file: str, why: str
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / ".env").write_text("KEY=1")
    (work / "link.txt").symlink_to(work / ".env")
    (tmp_path / "outside.txt").write_text("x")
    (tmp_path / "home" / "gateway").mkdir(parents=True)
    with build(Settings(), Home(tmp_path / "home"), bus=Bus()) as app:
        status: dict[str, Any] = {"owner": app.store.leases.owner}
        path = tmp_path / "home" / "gateway" / "status.json"
        path.write_bytes(msgspec.json.encode(status))
        call = {"target": "ntfy:alerts", "text": "hi", "files": [file]}
        with pytest.raises(ToolFailed, match=why):
            await message_tools(app)[0].run(call, context(work))
        assert app.store.sends.open() == []


def context(folder: Path) -> ToolContext:
    return ToolContext(call_id="1", session="s", cwd=folder, show=lambda _: None)

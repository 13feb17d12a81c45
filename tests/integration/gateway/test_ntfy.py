"""ntfy in and out, against a server that speaks its API."""

from contextlib import AbstractAsyncContextManager
from pathlib import Path

import msgspec
import pytest
from tests.fakes.chat_server import Failure
from tests.fakes.ntfy_server import TOKEN, NtfyServer
from tests.integration.gateway.harness import until
from tests.integration.gateway.platforms import PNG, Running, running

from hermes.schema.messages import UserMessage
from hermes.settings import Home, Secrets, Settings
from hermes.settings.chat_platforms import NtfySettings
from hermes.settings.gateway import GatewaySettings
from hermes.surfaces.gateway.registry import configured_platforms
from hermes.testing.model_server import ModelServer, Recorded
from hermes.testing.scripted_responses import ScriptedResponse, ServedCall


def opened(
    folder: Path, model: ModelServer, ntfy: NtfyServer, token: str = TOKEN, **more: object
) -> AbstractAsyncContextManager[Running]:  # fmt: skip
    section = NtfySettings(url=ntfy.url, topic="home")
    settings = GatewaySettings(
        platforms=("ntfy",),
        owners=("ntfy:home",),
        ntfy=msgspec.structs.replace(section, **more),
    )
    secrets = {"NTFY_TOKEN": token} if token else {}
    return running(folder, model, secrets, settings)


async def test_a_message_is_answered_by_a_notification_and_never_by_another_answer(
    tmp_path: Path,
) -> None:
    async with NtfyServer() as ntfy, ModelServer("Hello **you**") as model:
        async with opened(tmp_path, model, ntfy, click_url="https://dash.test/") as it:
            await ntfy.until(lambda: ntfy.subscribers)
            ntfy.say("hi", title="Greeting")
            shown = await ntfy.sees("Hello **you**", "home")
            await until(lambda: len(it.said("ntfy/home")) == 2)
            assert it.said("ntfy/home")[0].text == "Greeting\n\nhi"
            assert it.status.identity.endswith("/home")
        sent = shown.raw
        assert (sent["title"], sent["priority"], sent["markdown"]) == ("Hermes", 3, True)  # fmt: skip
        assert sent["click"] == "https://dash.test/"
        assert len(model.posts) == 1
        assert [name for name, _ in ntfy.calls].count("publish") == 1


async def test_what_was_said_while_hermes_was_away_is_taken_once(
    tmp_path: Path,
) -> None:
    clock = [1_700_000_000]
    async with NtfyServer() as ntfy, ModelServer("one", "two", "three") as model:
        ntfy.now = lambda: clock[0]
        ntfy.say("before Hermes ever connected")
        clock[0] += 10
        async with opened(tmp_path, model, ntfy):
            await ntfy.until(lambda: ntfy.subscribers)
            ntfy.say("first")
            await ntfy.sees("one", "home")
        clock[0] += 1000
        ntfy.say("while away")
        clock[0] += 1000
        async with opened(tmp_path, model, ntfy) as it:
            await ntfy.sees("two", "home")
            ntfy.say("again here")
            await ntfy.sees("three", "home")
            said = [one.text for one in it.said("ntfy/home") if isinstance(one, UserMessage)]  # fmt: skip
        assert said == ["first", "while away", "again here"]
        assert ntfy.since == ["none", "1700000010"]
        assert len(model.posts) == 3


async def test_a_stream_that_ends_goes_on_where_it_was(tmp_path: Path) -> None:
    async with NtfyServer() as ntfy, ModelServer("one", "two") as model:
        async with opened(tmp_path, model, ntfy) as it:
            await ntfy.until(lambda: ntfy.subscribers)
            ntfy.say("first")
            await ntfy.sees("one", "home")
            ntfy.drop()
            await ntfy.until(lambda: not ntfy.subscribers)
            ntfy.say("second")
            await ntfy.sees("two", "home")
            assert it.counters.received == 2
        assert len(model.posts) == 2


@pytest.mark.parametrize("case", ["no token", "open topic", "anyone may write"])
async def test_whoever_can_write_without_a_token_is_nobody(
    tmp_path: Path, case: str
) -> None:
    protected = () if case == "open topic" else ("home",)
    async with NtfyServer(protected) as ntfy, ModelServer() as model:
        if case == "no token":
            ntfy.protected.clear()
        ntfy.write_only.add("home")
        token = "" if case == "no token" else TOKEN
        async with opened(tmp_path, model, ntfy, token) as it:
            await ntfy.until(lambda: ntfy.subscribers)
            ntfy.say("/approve 1234")
            await until(lambda: it.counters.strangers == 1)
            assert "only to send" in it.status.identity
        assert (model.posts, ntfy.messages) == ([], [])
        assert len(ntfy.cache) == 1, "the check published something"


async def test_an_approval_is_a_loud_notification_that_is_answered_by_its_number(
    tmp_path: Path,
) -> None:
    def respond(request: Recorded) -> ScriptedResponse:
        if b'"role":"tool"' in request.body.replace(b" ", b""):
            return ScriptedResponse(text="written")
        call = ServedCall("write_file", '{"path": "/etc/motd", "content": "x"}')
        return ScriptedResponse(calls=(call,))

    async with NtfyServer() as ntfy, ModelServer(respond=respond) as model:
        async with opened(tmp_path, model, ntfy, click_url="https://dash.test/"):
            await ntfy.until(lambda: ntfy.subscribers)
            ntfy.say("write it")
            asked = await ntfy.sees("Approval needed", "home")
            number = asked.text.split("/deny ")[1].split(",")[0].split()[0]
            ntfy.say(f"/deny {number}")
            await ntfy.sees("Denied", "home")
            await ntfy.sees("written", "home")
        assert (asked.raw["title"], asked.raw["priority"]) == ("Hermes asks", 4)
        action = {"action": "view", "label": "Open", "url": "https://dash.test/"}
        assert asked.raw["actions"] == [action]
        assert TOKEN not in str(ntfy.cache)


async def test_files_come_in_and_go_out(tmp_path: Path) -> None:
    def respond(request: Recorded) -> ScriptedResponse:
        (tmp_path / "work" / "größe.txt").write_text("a report")
        (tmp_path / "work" / ".env").write_text("KEY=1")
        return ScriptedResponse(text="Here: [it](größe.txt), [not this](.env)")

    async with NtfyServer() as ntfy, ModelServer(respond=respond) as model:
        async with opened(tmp_path, model, ntfy) as it:
            await ntfy.until(lambda: ntfy.subscribers)
            ntfy.attach("pic.png", PNG, kind="image/png")
            await ntfy.until(lambda: any(one.file for one in ntfy.messages))
            said = it.said("ntfy/home")[0]
            assert isinstance(said, UserMessage)
            assert Path(said.images[0].source).read_bytes() == PNG  # noqa: ASYNC240 - nothing else waits
        sent = [(one.name, one.file) for one in ntfy.messages if one.file]
        assert sent == [("größe.txt", b"a report")]


async def test_a_file_on_another_server_is_not_fetched(tmp_path: Path) -> None:
    async with NtfyServer() as ntfy, NtfyServer() as other, ModelServer("ok") as model:
        other.files["secret"] = b"internal"
        async with opened(tmp_path, model, ntfy) as it:
            await ntfy.until(lambda: ntfy.subscribers)
            url = f"{other.url}/file/secret"
            ntfy.say("look", attachment={"name": "x", "url": url, "size": 8})
            await ntfy.sees("ok", "home")
            assert "another server" in it.said("ntfy/home")[0].text


async def test_a_rate_limit_and_a_failure_are_waited_out(tmp_path: Path) -> None:
    async with NtfyServer() as ntfy, ModelServer("the answer") as model:
        async with opened(tmp_path, model, ntfy) as it:
            await ntfy.until(lambda: ntfy.subscribers)
            ntfy.failures["publish"] = [Failure(502, "bad gateway")]
            ntfy.say("hi")
            await ntfy.sees("the answer", "home")
            assert it.counters.retried == 1
        assert len(ntfy.messages) == 1


async def test_a_long_answer_is_split_by_bytes(tmp_path: Path) -> None:
    async with NtfyServer() as ntfy, ModelServer("wörter " * 570) as model:
        async with opened(tmp_path, model, ntfy):
            await ntfy.until(lambda: ntfy.subscribers)
            ntfy.say("tell me")
            await ntfy.until(lambda: len(ntfy.messages) == 2)
        assert "".join("".join(ntfy.texts("home")).split()) == "wörter" * 570


async def test_a_wrong_token_is_said_and_not_hammered(tmp_path: Path) -> None:
    wrong = "tk_wrong"
    async with (
        NtfyServer() as ntfy,
        ModelServer() as model,
        opened(tmp_path, model, ntfy, wrong) as it,
    ):
        await until(lambda: it.status.state == "failed")
        assert "hermes config set NTFY_TOKEN" in it.status.error
        assert wrong not in it.status.error


def test_it_runs_once_a_topic_is_set(tmp_path: Path) -> None:
    home, none = Home(tmp_path), Secrets({}, {})
    assert configured_platforms(Settings(), none, home) == []
    wanted = Settings(gateway=GatewaySettings(ntfy=NtfySettings(topic="home")))
    assert configured_platforms(wanted, none, home) == ["ntfy"]

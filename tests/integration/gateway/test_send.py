"""Messages that belong to no session: `hermes send` and what the gateway makes of them."""

from contextlib import AbstractAsyncContextManager
from pathlib import Path

import msgspec
import pytest
from tests.fakes.chat_server import Failure
from tests.fakes.ntfy_server import TOKEN, NtfyServer
from tests.integration.gateway.harness import until
from tests.integration.gateway.platforms import Running, running

from hermes.app import build
from hermes.app.outgoing import MessageOutbox
from hermes.errors import HermesError, NotFound, UsageError
from hermes.events.bus import Bus
from hermes.settings import Home, Settings
from hermes.settings.chat_platforms import NtfySettings
from hermes.settings.gateway import GatewaySettings
from hermes.store.outgoing import OutgoingMessage
from hermes.store.people import KnownPerson
from hermes.testing.installed import InstalledHermes
from hermes.testing.model_server import ModelServer


def opened(folder: Path, model: ModelServer, ntfy: NtfyServer) -> AbstractAsyncContextManager[Running]:  # fmt: skip
    settings = GatewaySettings(
        platforms=("ntfy",),
        owners=("ntfy:home",),
        ntfy=NtfySettings(url=ntfy.url, topic="home"),
    )
    return running(folder, model, {"NTFY_TOKEN": TOKEN}, settings)


async def test_a_text_and_a_file_arrive_and_nothing_of_them_is_kept(
    tmp_path: Path,
) -> None:
    report = tmp_path / "report.txt"
    report.write_text("a report")
    async with (
        NtfyServer() as ntfy,
        ModelServer() as model,
        opened(tmp_path, model, ntfy) as it,
    ):
        outbox = MessageOutbox(it.app)
        await until(lambda: it.status.state == "connected")
        sent = await outbox.send("ntfy:alerts", "it is done", (report,), 20.0)
        assert (sent.state, sent.body, sent.files) == ("sent", "", ())
        assert ntfy.texts("alerts") == ["it is done"]
        files = [(one.chat, one.name, one.file) for one in ntfy.messages if one.file]
        assert files == [("alerts", "report.txt", b"a report")]
        copies = tmp_path / "home" / "gateway" / "outgoing"
        await until(lambda: not list(copies.iterdir()))
        assert it.app.store.sends.open() == []
    assert model.posts == []


async def test_a_refusal_and_a_platform_that_does_not_run_are_said(
    tmp_path: Path,
) -> None:
    async with (
        NtfyServer() as ntfy,
        ModelServer() as model,
        opened(tmp_path, model, ntfy) as it,
    ):
        ntfy.forbidden.add("secret")
        await until(lambda: it.status.state == "connected")
        outbox = MessageOutbox(it.app)
        refused = await outbox.send("ntfy:secret", "hi", (), 20.0)
        assert refused.state == "failed"
        assert "does not let this token write to secret" in refused.reason
        unhurried = outbox.queue("telegram:1", "whenever it runs again")
        other = await outbox.send("telegram:1", "hi", (), 20.0)
        assert other.reason == "telegram is not running in the gateway"
        assert it.app.store.sends.open() == [unhurried], "nobody waits for it"
        ntfy.failures["publish"] = [Failure(502, "bad gateway")] * 20
        late = await outbox.send("ntfy:alerts", "hi", (), 1.0)
        assert (late.state, late.reason) == (
            "failed",
            "it could not be delivered in time",
        )
        assert ntfy.messages == []


async def test_what_a_killed_gateway_left_is_sent_by_the_next_unless_it_is_late(
    tmp_path: Path,
) -> None:
    async with NtfyServer() as ntfy, ModelServer() as model:
        settings = Settings(gateway=GatewaySettings(ntfy=NtfySettings(topic="home")))
        with build(settings, Home(tmp_path / "home"), bus=Bus()) as app:
            table, now = app.store.sends, app.clock.now()
            table.put(OutgoingMessage("a", "ntfy:alerts", "begun", (), now, now + 60))
            assert table.begin("a")
            table.put(OutgoingMessage("b", "ntfy:alerts", "late", (), now - 9, now - 1))
            queued = await MessageOutbox(app).send("ntfy", "queued", (), 0.0)
            assert queued.state == "waiting"
        async with opened(tmp_path, model, ntfy) as it:
            table = it.app.store.sends
            await until(lambda: not table.open())
            ends = {name: table.find(name) for name in ("a", "b", queued.id)}
            states = {name: one.state for name, one in ends.items() if one is not None}
        assert states == {"a": "sent", "b": "failed", queued.id: "sent"}
        assert ntfy.texts("alerts") == ["begun"]
        assert ntfy.texts("home") == ["queued"]


async def test_nothing_is_written_without_a_gateway_or_with_a_wrong_call(
    tmp_path: Path,
) -> None:
    (tmp_path / ".env").write_text("KEY=1")
    (tmp_path / "notes.txt").symlink_to(tmp_path / ".env")
    settings = Settings(gateway=GatewaySettings(file_bytes=3))
    (tmp_path / "large.txt").write_text("large")
    with build(settings, Home(tmp_path / "home"), bus=Bus()) as app:
        outbox = MessageOutbox(app)
        with pytest.raises(HermesError, match="No gateway is running") as error:
            await outbox.send("ntfy:alerts", "hi", (), 5.0)
        assert "hermes gateway run" in error.value.hint
        for target, text, file, why in (
            ("icq:1", "hi", "", "no platform 'icq'"),
            ("ntfy:", "hi", "", "not a chat"),
            ("ntfy:alerts", " ", "", "nothing to send"),
            ("ntfy:alerts", "hi", ".env", "may hold secrets"),
            ("ntfy:alerts", "hi", "notes.txt", "may hold secrets"),
            ("ntfy:alerts", "hi", "large.txt", "5 bytes"),
            ("ntfy:alerts", "hi", "gone.txt", "can't be read: [^\\[]*$"),
        ):
            files = (tmp_path / file,) if file else ()
            with pytest.raises(UsageError, match=why):
                await outbox.send(target, text, files, 0.0)
        with pytest.raises(NotFound, match="called 'Anna'"):
            await outbox.send("Anna", "hi", (), 0.0)
        assert app.store.sends.open() == []
    assert not (tmp_path / "home" / "gateway" / "outgoing").exists()


async def test_a_person_is_found_by_name(tmp_path: Path) -> None:
    async with (
        NtfyServer() as ntfy,
        ModelServer("hello") as model,
        opened(tmp_path, model, ntfy) as it,
    ):
        await ntfy.until(lambda: ntfy.subscribers)
        ntfy.say("hi")
        await ntfy.sees("hello", "home")
        it.app.store.people.put(KnownPerson("ntfy", "home", "Anna", "owner", 0.0))
        assert MessageOutbox(it.app).resolve("anna") == "ntfy:home"


async def test_the_command_says_by_its_exit_code_whether_it_arrived(
    tmp_path: Path,
) -> None:
    async with NtfyServer() as ntfy, ModelServer() as model:
        hermes = InstalledHermes(tmp_path, model.url)
        alone = await hermes.run("send", "ntfy:alerts", "hi")
        assert (alone.code, "hermes gateway run" in alone.err) == (1, True)
        async with opened(tmp_path, model, ntfy) as it:
            await until(lambda: it.status.state == "connected")
            piped = await hermes.run("send", "ntfy:alerts", "-", "--json", stdin="two\nlines\n")  # fmt: skip
            assert piped.code == 0, piped.err
            assert msgspec.json.decode(piped.out)["state"] == "sent"
            ntfy.forbidden.add("secret")
            refused = await hermes.run("send", "ntfy:secret", "some", "words")
            assert refused.code == 1
            assert "Not sent to ntfy:secret" in refused.out
        assert ntfy.texts("alerts") == ["two\nlines"]


async def test_how_a_message_ended_is_known_for_longer_than_news_wait(
    tmp_path: Path,
) -> None:
    async with NtfyServer() as ntfy, ModelServer() as model:
        async with opened(tmp_path, model, ntfy) as it:
            now = it.app.clock.now()
            for days in (8, 15):
                made = now - days * 86_400.0
                ended = OutgoingMessage(f"{days}", "ntfy:a", "", (), made, made, "sent")
                it.app.store.sends.put(ended)
        async with opened(tmp_path, model, ntfy) as it:
            await until(lambda: it.app.store.sends.find("15") is None)
            assert it.app.store.sends.find("8") is not None

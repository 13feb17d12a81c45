"""`hermes gateway run` as a process: killed in the middle of a turn, a platform that hangs or refuses, signals."""

import asyncio
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
from tests.fakes.telegram_server import TOKEN, TelegramServer
from tests.integration.gateway.harness import OWNER, until

from hermes.app import build
from hermes.plugins.hooks import Hooks
from hermes.settings import Home, Settings
from hermes.testing.installed import InstalledHermes
from hermes.testing.model_server import ModelServer, Recorded
from hermes.testing.scripted_responses import ScriptedResponse, ServedCall, ServerFault

_PATIENCE = 30.0


class Service:
    """The installed gateway over one home; it can be started again and again."""

    def __init__(
        self, folder: Path, telegram: TelegramServer, model: ModelServer, **more: object
    ) -> None:
        self.hermes = InstalledHermes(folder, model.url)
        self.hermes.home.mkdir()
        gateway: dict[str, object] = {
            "owners": [f"telegram:{OWNER}"],
            "folder": str(folder / "files"),
            "drain_timeout": 5,
            "connect_timeout": 2,
            "telegram": {"api_url": telegram.url, "per_second": 1000},
            **more,
        }
        self.configure({"gateway": gateway})
        self.token(TOKEN)

    def configure(self, settings: dict[str, object]) -> None:
        (self.hermes.home / "config.yaml").write_bytes(msgspec.json.encode(settings))

    def token(self, token: str) -> None:
        (self.hermes.home / ".env").write_text(f"TELEGRAM_BOT_TOKEN={token}\n")

    @asynccontextmanager
    async def running(self) -> AsyncIterator[asyncio.subprocess.Process]:
        process = await self.hermes.start("gateway", "run")
        try:
            yield process
        finally:
            if process.returncode is None:
                process.kill()
            _, err = await process.communicate()
            assert b"Traceback" not in err, err.decode()

    def status(self) -> dict[str, Any]:
        try:
            return msgspec.json.decode(
                (self.hermes.home / "gateway" / "status.json").read_bytes()
            )
        except FileNotFoundError:
            return {}

    def platform(self) -> dict[str, Any]:
        return next(
            (
                one
                for one in self.status().get("parts", ())
                if one["name"] == "telegram"
            ),
            {},
        )

    async def noted(self, piece: int) -> None:
        """Waits until the ledger knows that a message has arrived."""
        with build(Settings(), Home(self.hermes.home)) as app:
            await until(
                lambda: (found := app.store.chats.piece(piece)) and found[1].message
            )

    async def until_platform(
        self, holds: Callable[[dict[str, Any]], object]
    ) -> dict[str, Any]:
        await until(lambda: holds(self.platform()))
        return self.platform()


def is_about(request: Recorded, text: str) -> bool:
    return msgspec.json.decode(request.body)["messages"][-1]["content"] == text


async def test_a_gateway_that_is_killed_in_the_middle_of_a_turn_loses_and_doubles_nothing(
    tmp_path: Path,
) -> None:
    killed = False

    def respond(request: Recorded) -> ScriptedResponse:
        if is_about(request, "slow one") and not killed:
            return ScriptedResponse(
                text="half of an answer that never ends " * 5,
                chunk=10,
                fault=ServerFault(hang="middle"),
            )
        return ScriptedResponse(
            text=f"answer to {msgspec.json.decode(request.body)['messages'][-1]['content']}"
        )

    async with TelegramServer() as telegram, ModelServer(respond=respond) as model:
        service = Service(tmp_path, telegram, model, while_busy="queue")
        async with service.running() as process:
            telegram.say("first")
            await telegram.sees("answer to first")
            telegram.say("slow one")
            draft = await telegram.sees("half of an answer")
            telegram.say("waiting one")
            await until(lambda: not telegram.unacknowledged)
            await service.noted(2)
            process.kill()
            await process.wait()
        killed = True
        telegram.say("sent while it was down")
        async with service.running() as process:
            await telegram.sees("answer to waiting one")
            await telegram.sees("answer to sent while it was down")
            await telegram.sees("restarted during this turn")
            assert draft.text.startswith(
                "half of an answer that never ends half of"
            )  # what was seen stays
            process.send_signal(signal.SIGTERM)
            assert await asyncio.wait_for(process.wait(), _PATIENCE) == 0
        seen = telegram.texts()
        for text in (
            "answer to first",
            draft.text,
            "answer to waiting one",
            "answer to sent while it was down",
        ):
            assert seen.count(text) == 1, seen


async def test_a_question_survives_a_kill_and_its_old_button_still_works(
    tmp_path: Path,
) -> None:
    arguments = msgspec.json.encode(
        {"path": str(tmp_path / "elsewhere.txt"), "content": "written"}
    ).decode()

    def respond(request: Recorded) -> ScriptedResponse:
        if is_about(request, "write it"):
            return ScriptedResponse(
                calls=(ServedCall(name="write_file", arguments=arguments),)
            )
        return ScriptedResponse(text="it is written")

    async with TelegramServer() as telegram, ModelServer(respond=respond) as model:
        service = Service(tmp_path, telegram, model)
        async with service.running() as process:
            telegram.say("write it")
            question = await telegram.sees("Approval needed")
            await service.noted(1)
            process.kill()
            await process.wait()
        async with service.running():
            telegram.press(question, "Allow")
            await telegram.sees("it is written")
            await telegram.until(lambda _: "Allowed" in question.text)
        assert (tmp_path / "elsewhere.txt").read_text() == "written"
        assert (
            len([text for text in telegram.texts() if "Approval needed" in text]) == 1
        )


async def test_a_stop_does_not_wait_for_an_answer_and_the_next_start_says_that_it_is_still_wanted(
    tmp_path: Path,
) -> None:
    arguments = msgspec.json.encode(
        {"path": str(tmp_path / "elsewhere.txt"), "content": "written"}
    ).decode()

    def respond(request: Recorded) -> ScriptedResponse:
        if is_about(request, "write it"):
            return ScriptedResponse(
                calls=(ServedCall(name="write_file", arguments=arguments),)
            )
        return ScriptedResponse(text="it is written")

    async with TelegramServer() as telegram, ModelServer(respond=respond) as model:
        service = Service(tmp_path, telegram, model, drain_timeout=600)
        async with service.running() as process:
            telegram.say("write it")
            question = await telegram.sees("Approval needed")
            await service.noted(1)
            process.send_signal(signal.SIGTERM)
            assert await asyncio.wait_for(process.wait(), _PATIENCE) == 0
        async with service.running():
            await telegram.sees("a question is still waiting")
            telegram.press(question, "Allow")
            await telegram.sees("it is written")
        assert (tmp_path / "elsewhere.txt").read_text() == "written"
        assert not [text for text in telegram.texts() if "/retry" in text]


async def test_a_connect_that_hangs_is_cut_and_shown_and_tried_again(
    tmp_path: Path,
) -> None:
    async with TelegramServer() as telegram, ModelServer("here") as model:
        telegram.hang = True
        service = Service(tmp_path, telegram, model, connect_timeout=0.5)
        async with service.running():
            shown = await service.until_platform(lambda one: one.get("error"))
            assert shown["error"] == "it did not connect within 0.5 s"
            assert shown["state"] in {"retrying", "connecting"}
            status = await service.hermes.run("gateway", "status")
            assert status.code == 1
            assert "it did not connect within 0.5 s" in status.out
            telegram.hang = False
            telegram.say("hello?")
            await telegram.sees("here")
            async with asyncio.timeout(60):  # half a second may be short once more
                while status.code:
                    status = await service.hermes.run("gateway", "status")
            assert "@loopback_bot" in status.out


def _trusted_hook(home: Path, tmp_path: Path) -> Path:
    """A hook that came while the gateway runs; it makes the file that is returned."""
    folder, out = home / "hooks" / "late", tmp_path / "told"
    folder.mkdir(parents=True)
    (folder / "HOOK.yaml").write_text("name: late\nevents: [agent:end]\n")
    (folder / "handler.py").write_text(
        f"def handle(event_type, context):\n    open({str(out)!r}, 'w').close()\n"
    )
    Hooks(Home(home)).trust("late")
    return out


async def test_a_wrong_token_is_said_and_a_right_one_is_taken_on_sighup(
    tmp_path: Path,
) -> None:
    async with TelegramServer() as telegram, ModelServer("hello") as model:
        service = Service(tmp_path, telegram, model)
        service.token("1:wrong-token-of-a-test")
        async with service.running() as process:
            shown = await service.until_platform(
                lambda one: one.get("state") == "failed"
            )
            assert "rejected the token" in shown["error"]
            service.token(TOKEN)
            process.send_signal(signal.SIGHUP)
            await service.until_platform(lambda one: one.get("state") == "connected")
            out = _trusted_hook(service.hermes.home, tmp_path)
            process.send_signal(signal.SIGHUP)
            telegram.say("hi")
            await telegram.sees("hello")
            await until(out.exists)
            (service.hermes.home / "config.yaml").write_text("gateway: [broken")
            process.send_signal(signal.SIGHUP)
            await until(
                lambda: "were not reloaded" in service.status().get("problem", "")
            )
            assert service.platform()["state"] == "connected"
        log = (service.hermes.home / "logs" / "hermes.log").read_text()
        assert "wrong-token-of-a-test" not in log
        assert TOKEN.partition(":")[2] not in log


async def test_whoever_started_it_sees_how_platforms_are(tmp_path: Path) -> None:
    async with TelegramServer() as telegram, ModelServer() as model:
        service = Service(
            tmp_path, telegram, model, platforms=["telegram", "telepathy"]
        )
        service.token("1:wrong-token-of-a-test")
        async with service.running() as process:
            assert process.stdout is not None
            async with asyncio.timeout(_PATIENCE):
                lines = [(await process.stdout.readline()).decode() for _ in range(3)]
            assert lines[0].startswith("The gateway is running.")
            assert sorted(line.partition(":")[0] for line in lines[1:]) == [
                "telegram is not connected",
                "telepathy is not connected",
            ]
            service.token(TOKEN)
            process.send_signal(signal.SIGHUP)
            async with asyncio.timeout(_PATIENCE):
                assert (
                    b"telegram is connected as @loopback_bot."
                    in await process.stdout.readline()
                )


async def test_there_is_one_gateway_of_a_home_and_the_status_tells_the_truth_about_a_dead_one(
    tmp_path: Path,
) -> None:
    async with TelegramServer() as telegram, ModelServer() as model:
        service = Service(tmp_path, telegram, model)
        assert (await service.hermes.run("gateway", "status")).code == 1
        async with service.running() as process:
            await service.until_platform(lambda one: one.get("state") == "connected")
            second = await service.hermes.run("gateway", "run")
            assert second.code == 1
            assert (
                f"is already running for this home (process {process.pid})"
                in second.err
            )
            process.kill()
            await process.wait()
            status = await service.hermes.run("gateway", "status")
            assert status.code == 1
            assert "The last one crashed" in status.out


async def test_sigterm_lets_a_turn_end(tmp_path: Path) -> None:
    reply = ScriptedResponse(text="a reply in pieces " * 10, chunk=10, delay=0.1)
    async with TelegramServer() as telegram, ModelServer(reply) as model:
        service = Service(tmp_path, telegram, model)
        async with service.running() as process:
            telegram.say("hi")
            await until(lambda: model.posts)
            process.send_signal(signal.SIGTERM)
            assert await asyncio.wait_for(process.wait(), _PATIENCE) == 0
        assert [text.strip() for text in telegram.texts()] == [
            ("a reply in pieces " * 10).strip()
        ]
        assert service.status() == {}


async def test_without_a_platform_it_says_what_to_do(tmp_path: Path) -> None:
    hermes = InstalledHermes(tmp_path)
    done = await hermes.run("gateway", "run")
    assert done.code == 2
    assert "hermes config set TELEGRAM_BOT_TOKEN" in done.err


async def test_the_unit_is_shown_and_nothing_is_changed(tmp_path: Path) -> None:
    hermes = InstalledHermes(tmp_path)
    done = await hermes.run("gateway", "install", "--print", HOME=str(tmp_path))
    assert done.code == 0
    assert f'Environment="HERMES_HOME={hermes.home}"' in done.out
    assert 'ExecStart="' in done.out
    assert "User=" not in done.out
    assert not (tmp_path / ".config").exists()


async def test_a_restarted_gateway_drains_and_goes_on_in_the_same_process(
    tmp_path: Path,
) -> None:
    async with ModelServer("Hello again.") as model, TelegramServer() as telegram:
        service = Service(tmp_path, telegram, model)
        idle = await service.hermes.run("gateway", "restart")
        assert "not running" in idle.out
        async with service.running() as process:
            await service.until_platform(lambda one: one.get("state") == "connected")
            restarted = await service.hermes.run("gateway", "restart")
            assert restarted.code == 0, restarted.err
            assert process.stdout is not None
            said: list[bytes] = []
            async with asyncio.timeout(_PATIENCE):
                while b"The gateway starts again.\n" not in said:
                    said.append(await process.stdout.readline())
                while b"The gateway is running." not in said[-1]:
                    said.append(await process.stdout.readline())
            assert process.returncode is None
            await service.until_platform(lambda one: one.get("state") == "connected")
            assert not (service.hermes.home / "gateway" / "restart.json").exists()
            telegram.say("hi")
            await telegram.sees("Hello again.")

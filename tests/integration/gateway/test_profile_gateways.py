"""`hermes gateway run --all-profiles`: a process for each profile, which share no secret, and are kept running."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
from tests.fakes.telegram_server import TelegramServer
from tests.integration.gateway.harness import OWNER, until

from hermes.app.profiles import Profiles
from hermes.settings import Home
from hermes.surfaces.gateway.profile_gateways import profile_environment
from hermes.testing.installed import InstalledHermes
from hermes.testing.model_server import ModelServer, Recorded
from hermes.testing.scripted_responses import ScriptedResponse

_TOKENS = {"a": "4711:token-of-profile-a-alone", "b": "4712:token-of-profile-b-alone"}
_KEYS = {"a": "sk-key-of-profile-a-alone-0001", "b": "sk-key-of-profile-b-alone-0002"}
_SHELL_KEY = "sk-key-of-the-shell-alone-00003"


def write_profile(hermes: InstalledHermes, name: str, telegram: TelegramServer, model: str) -> Home:  # fmt: skip
    home = Profiles(Home(hermes.home)).create(name).home
    gateway: dict[str, object] = {
        "owners": [f"telegram:{OWNER}"],
        "folder": str(hermes.work / name),
        "drain_timeout": 5,
        "telegram": {"api_url": telegram.url, "per_second": 1000},
    }
    home.config.write_bytes(msgspec.json.encode({"gateway": gateway}))
    home.env_file.write_text(
        f"TELEGRAM_BOT_TOKEN={_TOKENS[name]}\nOPENAI_API_KEY={_KEYS[name]}\nOPENAI_BASE_URL={model}\n"
    )
    return home


def status(home: Home, file: str = "status.json") -> dict[str, Any]:
    try:
        return msgspec.json.decode((home.root / "gateway" / file).read_bytes())
    except FileNotFoundError:
        return {}


def pid_of(home: Home) -> int:
    return int(str(status(home).get("owner", "x:0:0")).rsplit(":", 2)[1])


def environ_of(pid: int) -> bytes:
    return Path(f"/proc/{pid}/environ").read_bytes()


class Watched:
    """A process and the lines that it has printed."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.text = ""

    async def read(self) -> None:
        assert self.process.stdout is not None
        while data := await self.process.stdout.read(4096):
            self.text += data.decode()


@asynccontextmanager
async def all_gateways(hermes: InstalledHermes) -> AsyncIterator[Watched]:
    process = await hermes.start("gateway", "run", "--all-profiles", ANTHROPIC_API_KEY=_SHELL_KEY)  # fmt: skip
    watched = Watched(process)
    reading = asyncio.get_running_loop().create_task(watched.read())
    try:
        yield watched
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        await reading
        assert "Traceback" not in watched.text, watched.text


async def test_two_profiles_are_served_apart_and_one_that_is_killed_comes_back(
    tmp_path: Path,
) -> None:
    keys_seen: set[tuple[str, str]] = set()

    def respond(request: Recorded) -> ScriptedResponse:
        text = str(msgspec.json.decode(request.body)["messages"][-1]["content"])
        keys_seen.add((text, request.headers.get("authorization", "")))
        return ScriptedResponse(text=f"answer to {text}")

    async with (
        TelegramServer(_TOKENS["a"]) as first,
        TelegramServer(_TOKENS["b"]) as second,
        ModelServer(respond=respond) as model,
    ):
        hermes = InstalledHermes(tmp_path)
        home_a = write_profile(hermes, "a", first, model.url)
        home_b = write_profile(hermes, "b", second, model.url)
        async with all_gateways(hermes) as run:
            first.say("to a")
            second.say("to b")
            await first.sees("answer to to a")
            await second.sees("answer to to b")
            assert keys_seen == {
                ("to a", f"Bearer {_KEYS['a']}"),
                ("to b", f"Bearer {_KEYS['b']}"),
            }
            assert "Not handed on to the profiles: ANTHROPIC_API_KEY" in run.text
            assert "default: not started, because it has no platform" in run.text
            pid_a, pid_b = pid_of(home_a), pid_of(home_b)
            environ_a = environ_of(pid_a)
            for secret in (*_KEYS.values(), *_TOKENS.values(), _SHELL_KEY):
                assert secret.encode() not in environ_a
            assert str(home_b.root).encode() not in environ_a
            os.kill(pid_a, signal.SIGKILL)
            await until(lambda: "a: the gateway ended (killed by signal 9)" in run.text)
            await until(lambda: pid_of(home_a) not in {0, pid_a})
            first.say("again")
            await first.sees("answer to again")
            assert pid_of(home_b) == pid_b
            shown = await hermes.run("gateway", "status", "--all-profiles", "--json")
            report = msgspec.json.decode(shown.out)
            assert shown.code == 0, shown.out
            by_name = {one["profile"]: one for one in report["profiles"]}
            assert by_name["a"]["kept"]["restarts"] == 1
            assert by_name["a"]["kept"]["ended"] == "killed by signal 9"
            assert by_name["b"]["report"]["health"] == "running"
            stopped = await hermes.run("gateway", "stop", "--all-profiles")
            assert stopped.code == 0, stopped.err
            await asyncio.wait_for(run.process.wait(), 20)
            assert run.process.returncode == 0
            assert "a: stopped." in run.text
            assert "b: stopped." in run.text
        assert status(home_a) == status(home_b) == {}
        assert status(Home(hermes.home), "profiles.json") == {}


async def test_without_a_platform_there_is_nothing_to_run(tmp_path: Path) -> None:
    hermes = InstalledHermes(tmp_path)
    done = await hermes.run("gateway", "run", "--all-profiles")
    assert (done.code, "No profile has a platform" in done.err) == (2, True)


def test_the_environment_of_a_profile_has_no_key_of_this_one(tmp_path: Path) -> None:
    home = Profiles(Home(tmp_path)).create("work").home
    environ = {
        "PATH": "/usr/bin",
        "LANG": "C.UTF-8",
        "OPENAI_API_KEY": _SHELL_KEY,
        "HERMES_DASHBOARD_EVENT_TOKEN": "t" * 20,
        "HERMES_PROFILE": "other",
        "HERMES_MODEL_PROVIDER": "anthropic",
        "HTTPS_PROXY": "http://user:secret@proxy.example",
        "MY_UNKNOWN": "x",
    }
    given = profile_environment(environ, home)
    assert given.keys() == {"PATH", "LANG", "HERMES_HOME", "HERMES_PROFILE"}
    assert given["HERMES_PROFILE"] == "work"
    assert given["HERMES_HOME"] == str(home.root)

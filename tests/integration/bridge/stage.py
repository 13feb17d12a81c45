"""Real processes around a bridge: a dashboard that notes every event it publishes, publishers, and a breakable wire."""

import asyncio
import contextlib
import json
import os
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2

from hermes.plugins import PluginRegistry
from hermes.settings import Home
from hermes.surfaces.dashboard.credentials import Keyring

PATIENCE = 30.0

_PLUGIN = """
import json, os
from fastapi import APIRouter
from hermes_events import publish, subscribe
router = APIRouter()
@router.post("/born")
def born():
    publish("plugin.test.born", {{"who": os.getpid(), "n": 1}})
_out = os.open({out!r}, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
def note(event):
    if not event["type"].startswith("bus."):
        os.write(_out, (json.dumps({{key: value for key, value in event.items() if key != "text"}}) + chr(10)).encode())
for topic in ("agent.**", "session.**", "tui.**", "gap", "gateway.**", "plugin.**"):
    subscribe(topic, note)
"""


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Witness:
    """A dashboard whose plugin writes down what its bus carries. It can be killed and started again."""

    def __init__(self, folder: Path, *, environ: dict[str, str] | None = None) -> None:
        self.home = Home(folder / "home")
        self.notes = folder / "notes"
        self.port = free_port()
        self.url = f"ws://127.0.0.1:{self.port}/api/pub"
        self._environ = dict(environ or {})
        self._process: asyncio.subprocess.Process | None = None
        plugin = self.home.root / "plugins" / "witness" / "dashboard"
        plugin.mkdir(parents=True)
        (plugin / "manifest.json").write_text(
            '{"name": "witness", "api": "plugin_api.py"}'
        )
        (plugin / "plugin_api.py").write_text(_PLUGIN.format(out=str(self.notes)))
        PluginRegistry(self.home).enable("witness")
        self.other_port = free_port()
        """It may also be reached by this one, through something in between."""
        self.home.config.write_text(
            f"dashboard:\n  public_urls: [http://127.0.0.1:{self.other_port}]\n"
        )

    async def start(self) -> None:
        command = [
            sys.executable,
            "-m",
            "hermes",
            "dashboard",
            "--port",
            str(self.port),
            "--no-open",
        ]
        self._process = await asyncio.create_subprocess_exec(
            *command,
            env=self._env(),
            stdout=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        assert self._process.stdout is not None
        line = await asyncio.wait_for(self._process.stdout.readline(), PATIENCE)
        assert b"Hermes is at" in line, line

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    async def kill(self) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()

    def token(self) -> str:
        return json.loads((self.home.root / "dashboard" / "running.json").read_text())[
            "token"
        ]

    def link_to(self, other: "Witness") -> None:
        """Gives it a bridge to another dashboard."""
        token = Keyring(other.home, time.time).mint(
            "token", ("publish",), seconds=3600.0
        )
        self._environ |= {
            "HERMES_DASHBOARD_EVENT_URL": other.url,
            "HERMES_DASHBOARD_EVENT_TOKEN": token,
        }

    async def bear(self) -> None:
        """Has its plugin publish something."""
        async with httpx2.AsyncClient(trust_env=False) as client:
            url = f"http://127.0.0.1:{self.port}/api/plugins/witness/born"
            answer = await client.post(url, headers=self.headers())
            assert answer.status_code == 200, answer.text

    def headers(self) -> dict[str, str]:
        """What lets a script in."""
        token = Keyring(self.home, time.time).mint("token", ("admin",), seconds=3600.0)
        return {"Authorization": f"Bearer {token}"}

    def heard(self, topic: str = "agent.tool.started", who: int = 0) -> list[int]:
        """The numbers of the events that were published there, in order."""
        return [
            event["n"]
            for event in self.events()
            if event["type"] == topic and who in {0, event.get("who")}
        ]

    def events(self) -> list[dict[str, Any]]:
        with contextlib.suppress(FileNotFoundError):
            whole, _, _ = self.notes.read_text().rpartition(
                "\n"
            )  # the last line may just be written
            return [json.loads(line) for line in whole.splitlines()]
        return []

    def _env(self) -> dict[str, str]:
        return {**os.environ, "HERMES_HOME": str(self.home.root), **self._environ}


class Publisher:
    """A process with a bridge."""

    def __init__(self, home: Home, **environ: str) -> None:
        self._home = home
        self._environ = environ
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> "Publisher":
        program = Path(__file__).with_name("publisher.py")
        self._process = await asyncio.create_subprocess_exec(
            sys.executable, str(program), str(self._home.root), env={**os.environ, **self._environ},
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        return self

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    async def tell(self, **command: Any) -> dict[str, Any]:
        """Has it do something; what it says of its bridge then."""
        assert self._process is not None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(command).encode() + b"\n")
        return json.loads(
            await asyncio.wait_for(self._process.stdout.readline(), PATIENCE)
        )

    async def kill(self) -> None:
        assert self._process is not None
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()


async def until(condition: Callable[[], bool], seconds: float = PATIENCE) -> None:
    """Waits until something is so; fails after a while."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - files and other processes can only be looked at
            await asyncio.sleep(0.02)

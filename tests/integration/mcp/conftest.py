"""A bench for MCP servers: a home, real server processes, and a user who answers from a list."""

import asyncio
import os
import stat
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from hermes.core.ports import ToolContext
from hermes.errors import ToolFailed
from hermes.learning.scan import scan
from hermes.mcp import McpServers, ServerStatus
from hermes.mcp.server_config import ServerReports
from hermes.schema.tool_spec import ToolResult
from hermes.settings import Home, Secrets
from hermes.settings.mcp import McpServerSettings

PROGRAM = Path(__file__).with_name("fake_server.py")
PATIENCE = 20.0


class Bench:
    """Everything one test needs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = Home(folder / "home").ensure()
        self.notes = folder / "notes"
        self.go = folder / "go"
        self.secrets: dict[str, str] = {}
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "OPENAI_API_KEY": "sk-of-the-user",
        }
        self.answers: list[str] = []
        self.questions: list[str] = []
        self.options: list[tuple[str, ...]] = []
        self.shown: list[str] = []
        self.told: list[ServerStatus] = []
        self.logged: list[tuple[str, str, str]] = []
        self.suspected: list[tuple[str, tuple[str, ...]]] = []
        self.ended: list[tuple[str, str]] = []
        self.reports = ServerReports(
            on_change=self.told.append,
            on_login_ended=lambda server, why: self.ended.append((server, why)),
            on_log=lambda *said: self.logged.append((said[0], said[1], said[2])),
            on_suspected=lambda server, found: self.suspected.append((server, found)),
            scan=scan,
        )
        self._made: list[McpServers] = []

    def program(self, *options: str, **more: Any) -> McpServerSettings:
        """The settings of a server that behaves as `options` say."""
        env = {"NOTES": str(self.notes), "GO": str(self.go), **more.pop("env", {})}
        fast: dict[str, Any] = {"timeout": 20.0, "connect_timeout": 20.0, **more}
        return McpServerSettings(
            command=sys.executable,
            args=("-I", "-S", str(PROGRAM), *options),
            env=env,
            **fast,
        )

    def servers(self, **settings: McpServerSettings) -> McpServers:
        """Servers that are closed when the test ends."""
        secrets = Secrets(self.secrets, {})
        made = McpServers(
            settings, self.home, secrets, self.environment, reports=self.reports
        )
        self._made.append(made)
        return made

    async def prepared(self, *options: str, **more: Any) -> McpServers:
        """One server called `fake` that has been asked for its tools."""
        servers = self.servers(fake=self.program(*options, **more))
        await servers.prepare(PATIENCE)
        return servers

    async def call(
        self, servers: McpServers, name: str, **arguments: Any
    ) -> ToolResult:
        """Calls a tool of `fake`."""
        return await servers.tools()[f"mcp.fake.{name}"].run(arguments, self.context())

    def context(self) -> ToolContext:
        return ToolContext(
            "call-1", "session-1", self.folder, self.shown.append, ask=self.ask
        )

    async def ask(self, question: str, options: tuple[str, ...]) -> str:
        """The user: answers from the list; nobody when it is empty."""
        self.questions.append(question)
        self.options.append(options)
        if not self.answers:
            raise ToolFailed("Nobody can be asked here.")
        return self.answers.pop(0)

    def noted(self) -> list[str]:
        """What the server processes wrote down."""
        return self.notes.read_text().splitlines() if self.notes.exists() else []

    async def close(self) -> None:
        for servers in self._made:
            await servers.close()


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    made = Bench(tmp_path)
    yield made
    await made.close()


async def eventually(check: Callable[[], bool]) -> None:
    """Waits until something is so, and fails if it never is."""
    async with asyncio.timeout(PATIENCE):
        while not check():  # noqa: ASYNC110 - other processes decide it
            await asyncio.sleep(0.01)


def content(path: str) -> bytes:
    """What is in a file that is for this user only."""
    assert stat.S_IMODE(Path(path).stat().st_mode) == 0o600
    return Path(path).read_bytes()


def is_running(pid: int) -> bool:
    """Whether a process is there and not just a zombie."""
    try:
        return (
            Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
            not in "ZX"
        )
    except OSError:
        return False


@pytest.fixture
def wait_until() -> Callable[[Callable[[], bool]], Any]:
    return eventually


@pytest.fixture
def content_of() -> Callable[[str], bytes]:
    return content


@pytest.fixture
def running() -> Callable[[int], bool]:
    return is_running

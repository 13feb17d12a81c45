"""The chats that are measured: ours, and pi as the peer, which npm installs into the cache on first use."""

import os
import shutil
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import msgspec

from hermes.app import build
from hermes.events import Bus
from hermes.schema.events import SessionCreated, TurnEnded, TurnStarted
from hermes.schema.messages import AssistantMessage, UserMessage
from hermes.settings import Home, Settings
from hermes.testing.fetched import fetched, find_node
from hermes.testing.installed import InstalledHermes, TerminalProcess, executable

PI_VERSION = "0.73.1"
_PI_PACKAGE = "@mariozechner/pi-coding-agent"
_PASSED_ON = ("PATH", "LANG")
SIZE = (100, 30)
NOWHERE = "http://127.0.0.1:9/v1"


class Launch(msgspec.Struct, frozen=True):
    """How a program is started."""

    argv: list[str]
    environ: Mapping[str, str]
    cwd: Path

    def terminal(self) -> TerminalProcess:
        """The program at a terminal."""
        return TerminalProcess(self.argv, self.environ, self.cwd, SIZE)


class ChatProgram(msgspec.Struct, frozen=True):
    """A chat: how it is started in a folder of its own with the model at an address, and what it shows."""

    name: str
    launch: Callable[[Path, str], Launch]
    prompt: bytes
    """What is written once a person can type."""
    ready: str
    """What is seen once everything is loaded."""


def ours() -> ChatProgram:
    """Hermes, of this environment."""
    return ChatProgram("hermes", launch_hermes, "›".encode(), "bench · ask ·")


def launch_hermes(folder: Path, url: str, *arguments: str) -> Launch:
    """Hermes with more arguments."""
    hermes = InstalledHermes(folder, url)
    environ = hermes.environ({"TERM": "xterm-256color"})
    argv = [str(executable()), "--model", "bench", *arguments]
    return Launch(argv, environ, hermes.work)


def long_session(folder: Path, turns: int) -> Launch:
    """Hermes with a session of that many turns, which it resumes."""
    launch = launch_hermes(folder, NOWHERE)
    with build(Settings(), Home(Path(launch.environ["HERMES_HOME"])), bus=Bus()) as app:
        created = SessionCreated(surface="cli", cwd=str(folder))
        session = app.begin(created).session
        for number in range(turns):
            (asked,) = app.record(session, UserMessage(text=f"question {number}"))
            rows = (
                TurnStarted(inputs=(asked.seq,)),
                AssistantMessage(text=f"The **answer** is {number}. " * 20),
                TurnEnded(reason="done"),
            )
            app.record(session, *rows, turn=app.ids.turn())
    argv = [*launch.argv, "--resume", session]
    return msgspec.structs.replace(launch, argv=argv)


def peer() -> ChatProgram:
    """The pi that is on PATH, or the one from npm. NotFetched says why there is none."""
    program = shutil.which("pi") or str(_installed_pi())
    return ChatProgram("pi", partial(_launch_pi, program), b"0.0%/200k", "0.0%/200k")


def _installed_pi() -> Path:
    folder = fetched(f"pi-{PI_VERSION}", _fetch_pi, os.environ)
    return folder / "node_modules" / ".bin" / "pi"


def _fetch_pi(folder: Path) -> None:
    node = find_node(os.environ)
    node.install(f"{_PI_PACKAGE}@{PI_VERSION}", folder, os.environ)


def _launch_pi(program: str, folder: Path, url: str) -> Launch:
    settings = folder / ".pi" / "agent"
    settings.mkdir(parents=True)
    work = folder / "work"
    work.mkdir()
    model = {"id": "bench", "contextWindow": 200_000, "maxTokens": 8_000}
    provider = {
        "baseUrl": url,
        "api": "openai-completions",
        "apiKey": "sk-test-0000000000000000",
        "models": [model],
    }
    known = msgspec.json.encode({"providers": {"fake": provider}})
    (settings / "models.json").write_bytes(known)
    passed = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    environ = {
        "LANG": "C.UTF-8",
        **passed,
        "HOME": str(folder),
        "TERM": "xterm-256color",
        "PI_OFFLINE": "1",
        "PI_SKIP_VERSION_CHECK": "1",
    }
    argv = [program, "--offline", "--provider", "fake", "--model", "bench"]
    return Launch(argv, environ, work)

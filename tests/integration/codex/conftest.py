"""What the tests of the codex engine share: the real program against a fake model service, a codex whose part the test
plays, and sessions of Hermes on top of either."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.codex_judge import FixedJudge
from tests.fakes.codex_peer import CodexPeer
from tests.fakes.codex_program import NEWEST, OLDEST, config_for, installed_codex
from tests.fakes.turn_engine import FakeEngine

from hermes.app import build
from hermes.app.app import App
from hermes.app.approvals import PendingQuestions
from hermes.app.session_service import SessionService
from hermes.codex.approver import CommandPolicy
from hermes.codex.runtime import ARGUMENTS, CodexEngine, EngineSettings
from hermes.codex.tool_lending import LendingContext
from hermes.core.budget import TurnBudget
from hermes.core.ports import Approver, PolicyDecision
from hermes.core.turn import Runtime
from hermes.events import Bus
from hermes.schema.event_base import Event
from hermes.schema.events import SessionCreated, SessionPrompted
from hermes.settings import Home, Settings
from hermes.settings.sections import CodexSettings
from hermes.testing.fetched import NotFetched


class Bench:
    """Sessions of Hermes that codex runs."""

    def __init__(self, app: App, engine: CodexEngine, cwd: Path) -> None:
        self.app = app
        self.engine = engine
        self.cwd = cwd
        self.questions = PendingQuestions()
        self.judge: CommandPolicy = FixedJudge(PolicyDecision("ask"))
        self.lending: Callable[[Approver], LendingContext] | None = None
        self.native: Callable[[str, Approver], Runtime] | None = None
        self.budget: Callable[[str], TurnBudget] = lambda _: TurnBudget()
        self.published: asyncio.Queue[Mapping[str, Any]] = asyncio.Queue()
        self.prompt = ("You are Hermes.", "Memory: the user likes tea.")
        app.bus.subscribe("**", self.published.put_nowait)
        engine_of_turns = FakeEngine(self._runtime, self._prompted, self._budget)
        self.service = SessionService(engine_of_turns.deps(app, self.questions))

    def _budget(self, session: str) -> TurnBudget:
        return self.budget(session)

    def _prompted(self) -> SessionPrompted:
        return SessionPrompted(system=self.prompt)

    def begin(self) -> str:
        """A new session."""
        return self.app.begin(SessionCreated(surface="test", cwd=str(self.cwd))).session

    async def say(self, session: str, text: str) -> Any:
        """Says something and waits until it is answered. Returns how the turn ended."""
        await self.service.submit(session, text)
        return await asyncio.wait_for(self.service.idle(session), 60)

    async def see(self, topic: str, **fields: Any) -> Mapping[str, Any]:
        """The next published event of this kind."""
        async with asyncio.timeout(40):
            while True:
                event = await self.published.get()
                if event["type"] == topic and all(
                    event.get(name) == value for name, value in fields.items()
                ):
                    return event

    def events(self, session: str, *kinds: type[Event]) -> list[Any]:
        """The session's rows, of these kinds."""
        rows = [row.event for row in self.app.store.log.every_event(session)]
        return [event for event in rows if not kinds or isinstance(event, kinds)]

    def _runtime(self, session: str, approvals: Approver) -> Runtime:
        if self.native is not None:
            return self.native(session, approvals)
        lending = self.lending(approvals) if self.lending else None
        return self.engine.runtime(
            session, approvals, judge=self.judge, lending=lending
        )


@asynccontextmanager
async def bench(folder: Path, engine: CodexEngine, cwd: Path) -> AsyncIterator[Bench]:
    with build(Settings(), Home(folder / "hermes"), bus=Bus()) as app:
        made = Bench(app, engine, cwd)
        try:
            yield made
        finally:
            await made.service.close()
            await engine.close()


@pytest.fixture(scope="session", params=(OLDEST, NEWEST))
def program(request: pytest.FixtureRequest) -> Path:
    """The real codex: the oldest version that Hermes supports, and the newest."""
    try:
        return installed_codex(request.param)
    except NotFetched as why:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(str(why))


class Real:
    """Makes benches with the real codex, in one home and one working directory."""

    def __init__(self, folder: Path, program: Path) -> None:
        self.folder = folder
        self.program = program
        self.is_newest = f"codex-{NEWEST}" in program.parts
        self.home = folder / "codex-home"
        self.cwd = folder / "work"
        self.codex = CodexSettings(binary=str(program), home=str(self.home))
        self.lend_command: tuple[str, ...] = ()
        self.secrets: dict[str, str] = {}
        self.environ = {
            name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ
        }
        self.environ["HOME"] = str(
            folder / "user"
        )  # login shells of the tests must not touch the real one
        (folder / "user").mkdir(exist_ok=True)
        for made in (self.home, self.cwd, folder / "tmp"):
            made.mkdir()
        self.environ["TMPDIR"] = str(folder / "tmp")

    def configure(self, url: str, extra: str = "") -> None:
        """Writes codex's own settings."""
        (self.home / "config.toml").write_text(extra + config_for(url))

    def engine(self) -> CodexEngine:
        return CodexEngine(
            EngineSettings(
                codex=self.codex,
                environ=self.environ,
                secret=self.secrets.get,
                run_folder=self.folder / "run",
                lend_command=self.lend_command,
                arguments=ARGUMENTS,
            )
        )

    @asynccontextmanager
    async def bench(self, url: str, extra: str = "") -> AsyncIterator[Bench]:
        if url:
            self.configure(url, extra)
        async with bench(self.folder, self.engine(), self.cwd) as made:
            yield made


@pytest.fixture
def real(tmp_path_factory: pytest.TempPathFactory, program: Path) -> Real:
    return Real(tmp_path_factory.mktemp("codex"), program)


class Played:
    """Makes benches with a codex whose part the test plays."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.codex = CodexSettings()
        self.may_read_notes: Callable[[Path], bool] = lambda _: True

    @asynccontextmanager
    async def bench(self, **peer: Any) -> AsyncIterator[tuple[Bench, CodexPeer]]:
        async with CodexPeer(self.folder, **peer) as codex:
            settings = EngineSettings(
                codex=CodexSettings(
                    binary=str(codex.program),
                    **{f: getattr(self.codex, f) for f in _TIMES},
                ),
                environ=dict(os.environ),
                run_folder=self.folder / "run",
                arguments=codex.arguments,
                may_read_notes=self.may_read_notes,
            )
            async with bench(self.folder, CodexEngine(settings), self.folder) as made:
                yield made, codex


_TIMES = (
    "startup_timeout",
    "progress_timeout",
    "tool_silence_timeout",
    "turn_timeout",
    "idle_timeout",
)


@pytest.fixture
def played(tmp_path: Path) -> Played:
    return Played(tmp_path)

"""Several machines over one store, as processes with homes of their own, and a surface in the test's process."""

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import uuid4

import msgspec
from tests.fakes.processor_time import cpu_s

from hermes.app.agent import Agent
from hermes.app.app import App, build
from hermes.events import Bus
from hermes.schema.events import SessionCreated, TurnEnded, TurnStarted
from hermes.settings import Home, Secrets, Settings
from hermes.settings.sections import EventSettings, StoreSettings, WorkerSettings
from hermes.store import Store
from hermes.testing.installed import InstalledHermes

WAIT_TIMEOUT_S = 60.0


class Cluster(msgspec.Struct, frozen=True, kw_only=True):
    """What all machines of a test share."""

    folder: Path
    store_url: str
    events_url: str = ""
    model_url: str = ""
    subject: str = msgspec.field(default_factory=lambda: f"t-{uuid4().hex[:12]}")

    @property
    def work(self) -> Path:
        """The shared folder in which sessions work."""
        return self.folder / "shared"

    def environ(self, place: str) -> dict[str, str]:
        """The settings of a machine."""
        found = {
            "HERMES_STORE_URL": self.store_url,
            "HERMES_WORKER_PLACE": place,
            "HERMES_WORKER_PLACES": f"[{self.work}]",
            "HERMES_SCHEDULES_ENABLED": "false",
        }
        if self.events_url:
            found["HERMES_EVENTS_URL"] = self.events_url
            found["HERMES_EVENTS_SUBJECT"] = self.subject
        return found

    @asynccontextmanager
    async def worker(
        self, place: str, **environ: str
    ) -> AsyncIterator["WorkerProcess"]:
        """A running `hermes worker`."""
        one = WorkerProcess(self, place, environ)
        await one.start()
        try:
            yield one
        finally:
            await one.kill()

    @asynccontextmanager
    async def surface(self, place: str = "desk") -> AsyncIterator["Desk"]:
        """A dashboard's agent in this process, without its pages."""
        self.work.mkdir(parents=True, exist_ok=True)
        settings = Settings(
            store=StoreSettings(url=self.store_url),
            events=EventSettings(url=self.events_url, subject=self.subject),
            worker=WorkerSettings(place=place, places=(str(self.work),)),
        )
        with build(settings, Home(self.folder / place), bus=Bus()) as app:
            secrets = {
                "OPENAI_API_KEY": "sk-test-0000000000000000",
                "OPENAI_BASE_URL": self.model_url,
            }
            app.store.share()
            agent = Agent(app, Secrets(secrets, {}), surface="dashboard")
            try:
                yield Desk(app, agent, self.work)
            finally:
                await agent.close()


class WorkerProcess:
    """`hermes worker` on a machine of its own."""

    def __init__(self, cluster: Cluster, place: str, environ: dict[str, str]) -> None:
        self._cluster = cluster
        self._environ = cluster.environ(place) | environ
        self._host = InstalledHermes(cluster.folder / place, cluster.model_url)
        self.process: asyncio.subprocess.Process | None = None
        self.lines: list[str] = []
        self._reading: list[asyncio.Task[None]] = []

    @property
    def home(self) -> Path:
        return self._host.home

    async def start(self) -> None:
        """Starts it and waits until it takes sessions."""
        self._cluster.work.mkdir(parents=True, exist_ok=True)
        self.lines.clear()
        self.process = await self._host.start("worker", **self._environ)
        for stream in (self.process.stdout, self.process.stderr):
            assert stream is not None
            self._reading.append(asyncio.create_task(self._read(stream)))
        await until(lambda: self._says("is running") or self._has_ended(), self.lines)
        assert not self._has_ended(), self.lines

    async def _read(self, stream: asyncio.StreamReader) -> None:
        while line := await stream.readline():
            self.lines.append(line.decode().rstrip())

    def _says(self, text: str) -> bool:
        return any(text in line for line in self.lines)

    async def says(self, text: str) -> None:
        """Waits until it has printed a text."""
        await until(lambda: self._says(text), self.lines)

    def _has_ended(self) -> bool:
        return self.process is None or self.process.returncode is not None

    def send(self, number: signal.Signals) -> None:
        """Sends it a signal."""
        assert self.process is not None
        self.process.send_signal(number)

    async def ended(self) -> int:
        """Waits until it has ended. Returns its exit code."""
        assert self.process is not None
        code = await asyncio.wait_for(self.process.wait(), WAIT_TIMEOUT_S)
        await asyncio.gather(*self._reading)
        self._reading.clear()
        return code

    async def kill(self) -> None:
        """Ends it as a crash would."""
        if self.process is None:
            return
        if self.process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self.process.send_signal(signal.SIGCONT)
                self.process.kill()
        assert self.process.stdin is not None
        self.process.stdin.close()
        await self.ended()
        self.process = None

    def cpu_s(self) -> float:
        """Seconds of processor time that it has used."""
        assert self.process is not None
        return cpu_s(self.process.pid)


class Desk:
    """Where messages come from."""

    def __init__(self, app: App, agent: Agent, work: Path) -> None:
        self.app = app
        self.agent = agent
        self.work = work

    @property
    def store(self) -> Store:
        return self.app.store

    async def begin(self) -> str:
        """A new session in the shared folder."""
        created = SessionCreated(surface="dashboard", cwd=str(self.work))
        row = await asyncio.to_thread(self.app.begin, created)
        return row.session

    async def say(self, session: str, text: str) -> None:
        """Submits a message. When this returns, it is acknowledged."""
        await self.agent.service.submit(session, text)

    async def sees_workers(self, number: int) -> None:
        """Waits until so many workers are registered."""

        def enough() -> bool:
            return len(self.store.roles.held("worker:")) == number

        async with asyncio.timeout(WAIT_TIMEOUT_S):
            while not await asyncio.to_thread(enough):  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0.05)

    async def answered(self, session: str, turns: int = 1) -> list[TurnEnded]:
        """Waits until so many turns have ended. Returns their ends."""
        async with asyncio.timeout(WAIT_TIMEOUT_S):
            while True:
                ends = [
                    event
                    for event in await self.events(session)
                    if isinstance(event, TurnEnded)
                ]
                if len(ends) >= turns:
                    return ends
                await asyncio.sleep(0.05)

    async def events(self, session: str) -> list[object]:
        """The log of a session."""
        rows = await asyncio.to_thread(
            lambda: list(self.store.log.every_event(session))
        )
        return [row.event for row in rows]

    async def sound(self, session: str) -> list[object]:
        """The log of a session after each turn in it was seen to have one beginning and one end."""
        events = await self.events(session)
        begun = sum(isinstance(event, TurnStarted) for event in events)
        ended = sum(isinstance(event, TurnEnded) for event in events)
        assert begun == ended, events
        return events


async def until(is_so: Callable[[], bool], shown: object = "") -> None:
    """Waits until something holds."""
    try:
        async with asyncio.timeout(WAIT_TIMEOUT_S):
            while not is_so():  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0.02)
    except TimeoutError:
        raise AssertionError(f"it never held: {shown}") from None

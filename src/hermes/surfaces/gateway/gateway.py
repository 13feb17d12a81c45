"""`Gateway`: the parts of a running gateway, in the order in which they start and stop.

Start: settle what was running, take up what was taken in, then connect; a platform delivers what is left over before it
receives. Stop: receive nothing new, let turns end for a while, park the rest, say what is left.
"""

import asyncio
import logging
from collections.abc import Mapping

from hermes import __version__
from hermes.app import App
from hermes.app.agent import Agent
from hermes.app.dead_turns import DeadTurns
from hermes.app.engine import EngineChoice
from hermes.app.log_follower import LogFollower
from hermes.app.schedules.scheduler import ScheduleLoop
from hermes.errors import HermesError, in_sentences
from hermes.primitives.tasks import BackgroundTasks, cancel_until_ended
from hermes.settings import Secrets, Settings
from hermes.store.leases import this_process
from hermes.surfaces.gateway.access import PeopleAccess
from hermes.surfaces.gateway.adapter import AdapterDeps, ChatAdapter, GatewayPart
from hermes.surfaces.gateway.chat_sessions import ChatSessions
from hermes.surfaces.gateway.deliveries import Deliveries
from hermes.surfaces.gateway.inbound import InboundMessages
from hermes.surfaces.gateway.listener import HttpListener
from hermes.surfaces.gateway.registry import build_part, wanted
from hermes.surfaces.gateway.sender import Counters, Sender
from hermes.surfaces.gateway.status import (
    HEARTBEAT,
    GatewayStatus,
    PartStatus,
    write_status,
)
from hermes.surfaces.gateway.supervisor import Supervisor

log = logging.getLogger("hermes.gateway")

_BACKLOG = 30.0  # seconds that new messages wait for old replies
_SETTLING = 30.0  # seconds for what a crash left
_KEPT = 30 * 24 * 3600.0  # seconds that ids of messages are known
_LOOK = 0.25  # seconds between looks whether the status has changed
_WRITING = "writing the status"
_UNATTENDED = frozenset(("webhook",))  # platforms on which nobody can be asked


class Gateway:
    """To be made and run inside one event loop."""

    def __init__(self, app: App, secrets: Secrets) -> None:
        self._app = app
        self._secrets = secrets
        gateway = app.settings.gateway
        self._access = PeopleAccess(gateway, app.store.people, app.clock)
        self.agent = Agent(app, secrets, surface="gateway", choice_of=self._place)
        self._office = Deliveries(app, self.agent, self._access)
        self._reception = InboundMessages(
            app, self.agent, self._access, self._office, ChatSessions(app, self._office)
        )
        self._listener = HttpListener(gateway.host, gateway.port, app.errors)
        self._supervisors: dict[str, Supervisor] = {}
        self._broken: list[PartStatus] = []
        self._running: dict[str, asyncio.Task[None]] = {}
        self._aside = BackgroundTasks("a part of the gateway")
        self._stopping = asyncio.Event()
        self.status = GatewayStatus(
            this_process(), app.clock.now(), app.clock.now(), __version__
        )

    async def start(self) -> None:
        """Settles, then connects. Returns when everything has begun; connecting goes on by itself."""
        self._app.go_live(self._secrets, "gateway")
        self._app.store.share()
        await self._build()
        self._office.start()
        jobs = ScheduleLoop(self._app, self._secrets, self._office.take)
        self._aside.start(LogFollower(self._app).run())
        self._aside.start(
            DeadTurns(self._office.working, lambda: self.agent.service).run()
        )
        self._aside.start(self._beat())
        if self._app.settings.schedules.enabled:
            self._aside.start(jobs.run(self._stopping))
        await self._settle()
        self._reception.replay()
        self._connect()
        self.status.state = "running"
        self._app.bus.publish(
            "gateway.startup", {"platform": ",".join(self._supervisors), "user": ""}
        )

    async def reload(self, settings: Settings, secrets: Secrets) -> None:
        """Goes on with new settings. Turns that run end as they began; platforms connect anew."""
        await self._disconnect()
        self._app.settings = settings
        self._secrets = secrets
        self._access.use(settings.gateway)
        self._office.settings = settings.gateway
        await self.agent.renew(secrets)
        if self._app.exporters is not None:
            await asyncio.to_thread(self._app.exporters.reload, secrets)
        await self._listener.close()
        self._listener = HttpListener(
            settings.gateway.host, settings.gateway.port, self._app.errors
        )
        await self._build()
        self._connect()
        self.status.problem = ""

    async def stop(self) -> None:
        """Drains and ends."""
        self.status.state = "draining"
        self._stopping.set()
        await self._disconnect()
        patience = self._app.settings.gateway.drain_timeout
        try:
            async with asyncio.timeout(patience):
                await self._reception.drained()
                await self._quiet(await self.agent.service.park())
        except TimeoutError:
            log.warning(
                "turns still run after %g seconds: they are stopped, and go on after the next start",
                patience,
            )
        await self.agent.close()
        await self._office.close()
        await self._aside.close()
        await self._close_parts()
        await self._listener.close()

    @property
    def posts(self) -> Mapping[str, Sender]:
        """The ways out, by platform."""
        return self._office.posts

    @property
    def resting(self) -> bool:
        """Whether no chat is being looked after, so that nothing of any is in memory."""
        return self._office.resting and self._reception.resting

    async def _quiet(self, parked: set[str]) -> None:
        """Waits until no turn runs and nothing is being delivered."""
        await self.agent.service.all_idle()
        await self._office.idle(parked)

    def set_reload(self, reload: "asyncio.Event") -> None:
        """What /restart sets."""

        def ask() -> str:
            reload.set()
            return "The settings are read anew."

        self._reception.commands.reload = ask

    async def _build(self) -> None:
        """Makes the parts that are wanted; one that can't be made is shown, and does not stop the others."""
        settings = self._app.settings
        deps = AdapterDeps(self._app, self._secrets, self.agent, self._listener)
        self._broken = []
        for name in wanted(settings, self._secrets, self._app.home):
            try:
                part = build_part(name, deps)
            except HermesError as error:
                log.error("%s does not run: %s", name, in_sentences(error))  # noqa: TRY400 - the words say it all
                now = self._app.clock.now()
                self._broken.append(
                    PartStatus(
                        name, "failed", now, error=in_sentences(error), error_at=now
                    )
                )
                continue
            self._supervisors[name] = self._supervise(part)
        adapters = {
            one.part.name
            for one in self._supervisors.values()
            if isinstance(one.part, ChatAdapter)
        }
        for gone in set(self._office.posts) - adapters:
            await self._office.dismiss(gone)
        if settings.gateway.voice_model:
            from hermes.surfaces.gateway.transcription import voice_for

            self._reception.voice = voice_for(settings.gateway, self._secrets)

    def _supervise(self, part: GatewayPart) -> Supervisor:
        supervisor = Supervisor(
            part,
            clock=self._app.clock,
            connect_timeout_s=self._app.settings.gateway.connect_timeout,
            receive=self._reception.receive,
            deliver_backlog=self._deliver_backlog,
        )
        if isinstance(part, ChatAdapter):
            post = self._office.posts.get(part.name)
            if post is None:
                post = self._office.posts[part.name] = Sender(
                    part, self._app.store.chats, Counters()
                )
            post.adapter = part
            supervisor.status.counters = post.counters
        return supervisor

    def _connect(self) -> None:
        loop = asyncio.get_running_loop()
        for name, supervisor in self._supervisors.items():
            self._running[name] = loop.create_task(supervisor.run())

    async def _disconnect(self) -> None:
        """Receives nothing new; what was received is on disk."""
        await cancel_until_ended(*self._running.values())
        self._running.clear()
        if self.status.state != "draining":
            await self._close_parts()

    async def _close_parts(self) -> None:
        for supervisor in self._supervisors.values():
            await supervisor.part.close()
        self._supervisors.clear()

    async def _settle(self) -> None:
        """What ran when the last gateway ended is closed, and what waited is answered."""
        sessions = [binding.session for binding in self._app.store.chats.busy()]
        for session in sessions:
            await self.agent.service.resume(session)
        waits = [self.agent.service.settled(session) for session in sessions]
        if waits:
            log.info("%d sessions were at work when the last gateway ended", len(waits))
            try:
                await asyncio.wait_for(asyncio.gather(*waits), _SETTLING)
            except TimeoutError:
                log.warning("some sessions are still being settled")
        self._app.store.chats.forget(self._app.clock.now() - _KEPT)

    async def _deliver_backlog(self, platform: str) -> None:
        """Old replies go out before new messages come in, as far as that does not take too long."""
        try:
            done = await asyncio.wait_for(self._office.catch_up(platform), _BACKLOG)
        except TimeoutError:
            log.warning(
                "%s: not all that was left over is delivered yet; new messages are taken",
                platform,
            )
            return
        if done:
            log.info("%s: what was left over in %d chats is delivered", platform, done)

    def _place(self, session: str) -> EngineChoice:
        """Which agent a session is given to."""
        binding = self._app.store.chats.of_session(session)
        if binding is None:
            return EngineChoice()
        attended = (
            binding.key.partition("/")[0] not in _UNATTENDED
            and self._access.has_approver()
        )
        return EngineChoice(binding.model, attended)

    async def _beat(self) -> None:
        """Writes the status down when it has changed, and now and then to show that this lives."""
        written: object = None
        while True:
            now = self._app.clock.now()
            state = self._state()
            if state != written or now - self.status.heartbeat >= HEARTBEAT:
                self.status.heartbeat, written = now, state
                try:
                    await asyncio.to_thread(write_status, self._app.home, self.status)
                except (HermesError, OSError) as error:
                    await asyncio.sleep(self._app.errors.note(_WRITING, error))
                else:
                    self._app.errors.succeeded(_WRITING)
            await asyncio.sleep(_LOOK)

    def _state(self) -> object:
        """Brings the status up to date; what of it is worth being written at once."""
        status = self.status
        status.parts = [
            *(one.status for one in self._supervisors.values()),
            *self._broken,
        ]
        status.turns = self.agent.service.turns
        status.url = self._listener.url
        status.problems = self._app.errors.problems()
        failing = [one.what for one in status.problems if not one.is_over]
        return (
            status.state,
            status.problem,
            failing,
            [(one.name, one.state, one.error_at) for one in status.parts],
        )

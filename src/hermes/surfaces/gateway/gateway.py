"""`Gateway`: the parts of a running gateway, in the order in which they start and stop.

Start: end turns that a crash left, handle stored messages, then connect. A platform delivers older replies before it
receives. Stop: receive nothing new, abandon turns that wait for a person, and wait for the other turns to end.
"""

import asyncio
import contextlib
import logging
from collections.abc import Coroutine, Mapping
from collections.abc import Set as AbstractSet
from typing import Any

from hermes import __version__
from hermes.app import App
from hermes.app.agent import Agent
from hermes.app.boards.dispatcher import Dispatcher
from hermes.app.boards.event_follower import BoardFollower
from hermes.app.child_sessions import has_children
from hermes.app.dead_turns import DeadTurns
from hermes.app.engine import EngineChoice
from hermes.app.goals.waking import GoalWaker
from hermes.app.log_follower import LogFollower
from hermes.app.people_access import PeopleAccess
from hermes.app.presence import Presence
from hermes.app.schedules.scheduler import ScheduleLoop
from hermes.app.speech import speech_deps
from hermes.errors import HermesError, in_sentences
from hermes.primitives.tasks import BackgroundTasks, cancel_until_ended
from hermes.settings import Secrets, Settings
from hermes.store.leases import this_process
from hermes.surfaces.gateway.adapter import AdapterDeps, ChatAdapter, GatewayPart
from hermes.surfaces.gateway.chat_sessions import ChatSessions
from hermes.surfaces.gateway.deliveries import Deliveries
from hermes.surfaces.gateway.inbound import InboundMessages
from hermes.surfaces.gateway.listener import HttpListener
from hermes.surfaces.gateway.outage_notices import OutageNotices
from hermes.surfaces.gateway.outgoing import OutgoingDeliveries
from hermes.surfaces.gateway.platform_lease import PlatformLease
from hermes.surfaces.gateway.registry import build_part, configured_platforms
from hermes.surfaces.gateway.sender import Counters, Sender
from hermes.surfaces.gateway.status import (
    HEARTBEAT_INTERVAL_S,
    GatewayStatus,
    PartStatus,
    write_status,
)
from hermes.surfaces.gateway.supervisor import Supervisor
from hermes.text.translation import translator

t = translator(__name__)


log = logging.getLogger("hermes.gateway")

_MAX_RECENT_CHATS = 50  # whose background work is looked at when the gateway starts
_BACKLOG_TIMEOUT_S = 30.0
"""How long new messages wait for older replies."""
_SETTLE_TIMEOUT_S = 30.0
"""For turns that a crash left."""
_KEEP_MESSAGE_IDS_S = 30 * 24 * 3600.0
_LET_GO_TIMEOUT_S = 5.0
"""For messages that are being sent when a connection is given up."""
_STATUS_INTERVAL_S = 0.25
"""Between checks whether the status has changed."""
_WRITING_STATUS = "writing the status"  # not translated: for the log
_UNATTENDED_PLATFORMS = frozenset(("webhook",))
"""Platforms on which nobody can be asked."""


class Gateway:
    """Make it and run it inside one event loop."""

    def __init__(self, app: App, secrets: Secrets) -> None:
        self._app = app
        self._secrets = secrets
        gateway = app.settings.gateway
        self._access = PeopleAccess(gateway, app.store.people, app.clock)
        self.agent = Agent(
            app, secrets, surface="gateway", choice_of=self._engine_choice
        )
        self._deliveries = Deliveries(app, self.agent, self._access)
        self._deliveries.speech = lambda: speech_deps(app, self._secrets)
        self._outages = OutageNotices(
            app.store.reachability,
            self._deliveries.senders,
            lambda: self._deliveries.waiting_chats,
        )
        self._inbound = InboundMessages(
            app,
            self.agent,
            self._access,
            self._deliveries,
            ChatSessions(app, self._deliveries),
            self._outages,
        )
        self._listener = HttpListener(gateway.host, gateway.port, app.errors)
        self._supervisors: dict[str, Supervisor] = {}
        self._broken: list[PartStatus] = []
        self._running: dict[str, asyncio.Task[None]] = {}
        self._receiving: dict[str, asyncio.Future[None]] = {}
        self._background = BackgroundTasks("a part of the gateway")
        self._stopping = asyncio.Event()
        self.status = GatewayStatus(
            this_process(), app.clock.now(), app.clock.now(), __version__
        )

    async def start(self) -> None:
        """Starts everything. Returns before the platforms are connected."""
        self._app.go_live(self._secrets, "gateway")
        if self._app.exporters is not None:
            self._app.exporters.receive_live_events(self._app.feed, everything=True)
        self._app.store.share()
        await self._build()
        self._deliveries.start()
        self._outages.start()
        jobs = ScheduleLoop(self._app, self._secrets)
        self._background.start(LogFollower(self._app).run())
        self._background.start(OutgoingDeliveries(self._app, self._deliveries).run())
        self._background.start(
            DeadTurns(
                self._deliveries.working_sessions, lambda: self.agent.service
            ).run()
        )
        self._background.start(self._write_status())
        self._background.start(Presence(self._app, "gateway").run())
        waker = GoalWaker(self._app, lambda: self.agent.service, "gateway")
        self._background.start(waker.run())
        if self._app.settings.schedules.enabled:
            self._background.start(jobs.run(self._stopping))
        if self._app.settings.boards.enabled:
            self._background.start(BoardFollower(self._app).run())
            cards = Dispatcher(self._app, self._secrets)
            self._background.start(cards.run(self._stopping))
        if not self._is_shared:
            await self._recover_sessions()
            self._background.start(self._tell_ends())
            await self._inbound.replay()
        self._connect()
        self.status.state = "running"
        self._app.bus.publish(
            "gateway.startup", {"platform": ",".join(self._supervisors), "user": ""}
        )

    async def reload(self, settings: Settings, secrets: Secrets) -> None:
        """Continues with new settings. Running turns keep the old ones; platforms connect again.

        A part that answers requests goes on if it can, and otherwise drains first.
        """
        kept = self._kept_parts(settings, secrets)
        await self._drain_parts(set(self._supervisors) - kept)
        await self._disconnect(kept)
        self._app.settings = settings
        self._secrets = secrets
        self._access.use(settings.gateway)
        self._deliveries.settings = settings.gateway
        await self.agent.renew(secrets)
        for name in kept:
            await self._supervisors[name].part.renew(secrets)
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
        """Drains and stops."""
        self.status.state = "draining"
        self._stopping.set()
        serving = {
            name for name, one in self._supervisors.items() if one.part.answers_requests
        }
        draining = asyncio.ensure_future(self._drain_parts(serving))
        await self._disconnect(serving)
        timeout_s = self._app.settings.gateway.drain_timeout
        try:
            async with asyncio.timeout(timeout_s):
                await self._inbound.drained()
                await self._wait_idle(await self.agent.service.park())
        except TimeoutError:
            log.warning(
                "turns still run after %g seconds; they are stopped and continue after the next start",
                timeout_s,
            )
        await draining
        await self.agent.close()
        await self._outages.close()
        await self._let_go()
        await self._deliveries.close()
        await self._background.close()
        await self._close_parts()
        await self._listener.close()

    @property
    def senders(self) -> Mapping[str, Sender]:
        """The senders, by platform."""
        return self._deliveries.senders

    @property
    def is_idle(self) -> bool:
        """Whether no chat is active, so that none uses memory."""
        return self._deliveries.is_idle and self._inbound.is_idle

    async def _wait_idle(self, parked: set[str]) -> None:
        """Waits until no turn runs and nothing is being delivered."""
        await self.agent.service.all_idle()
        await self._deliveries.wait_idle(parked)

    def set_reload(self, reload: "asyncio.Event") -> None:
        """Sets what /restart does."""

        def ask() -> str:
            reload.set()
            return t("Hermes reloads its settings.")

        self._inbound.commands.reload = ask

    async def _build(self) -> None:
        """Builds the configured parts. One that fails is shown in the status; the others run."""
        settings = self._app.settings
        deps = AdapterDeps(self._app, self._secrets, self.agent, self._listener)
        self._broken = []
        for name in configured_platforms(settings, self._secrets, self._app.home):
            if name in self._supervisors:  # it goes on
                continue
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
        for gone in set(self._deliveries.senders) - adapters:
            await self._deliveries.remove_platform(gone)

    def _supervise(self, part: GatewayPart) -> Supervisor:
        supervisor = Supervisor(
            part,
            clock=self._app.clock,
            connect_timeout_s=self._app.settings.gateway.connect_timeout,
            receive=self._inbound.receive,
            deliver_backlog=self._deliver_backlog,
        )
        if isinstance(part, ChatAdapter):
            sender = self._deliveries.senders.get(part.name)
            if sender is None:
                sender = self._deliveries.senders[part.name] = Sender(
                    part, self._app.store, Counters()
                )
            sender.adapter = part
            supervisor.status.counters = sender.counters
        return supervisor

    def _connect(self) -> None:
        loop = asyncio.get_running_loop()
        for name, supervisor in self._supervisors.items():
            if name in self._running:
                continue
            run = supervisor.run()
            if self._is_shared and name in self._deliveries.senders:
                run.close()
                run = self._run_with_lease(name, supervisor)
            self._running[name] = loop.create_task(run)

    @property
    def _is_shared(self) -> bool:
        """Whether gateways on other machines use the same store."""
        return bool(self._app.settings.store.url)

    def _run_with_lease(
        self, name: str, supervisor: Supervisor
    ) -> Coroutine[Any, Any, None]:
        """Runs a platform whenever this gateway holds its connection. Until then it sends nothing there."""
        sender = self._deliveries.senders.pop(name)
        lease = PlatformLease(self._app, name, supervisor.wait_for_other)
        sender.may_send = lambda: lease.is_held

        async def serve() -> None:
            self._deliveries.senders[name] = sender
            try:
                await self._recover_sessions(name)
                await self._inbound.replay(name)
                receiving = asyncio.ensure_future(supervisor.run())
                self._receiving[name] = receiving
                await asyncio.wait({receiving})
                await asyncio.Event().wait()  # until what is being sent has arrived
            finally:
                await cancel_until_ended(*self._receiving_tasks(name))
                await self._deliveries.remove_platform(name)

        return lease.run(serve)

    def _receiving_tasks(self, *names: str) -> "list[asyncio.Future[None]]":
        """The tasks that receive on platforms held by a lease, which are forgotten."""
        found = [self._receiving.pop(name, None) for name in names]
        return [task for task in found if task is not None]

    def _kept_parts(self, settings: Settings, secrets: Secrets) -> set[str]:
        """The parts that can continue with other settings as they are."""
        wanted = configured_platforms(settings, secrets, self._app.home)
        return {
            name
            for name, one in self._supervisors.items()
            if name in wanted and one.part.can_renew(settings)
        }

    async def _drain_parts(self, names: AbstractSet[str]) -> None:
        """Lets these parts answer the requests that they have accepted."""
        timeout_s = self._app.settings.gateway.drain_timeout
        parts = [self._supervisors[name].part for name in names]
        await asyncio.gather(*(part.drain(timeout_s) for part in parts))

    async def _disconnect(self, kept: AbstractSet[str]) -> None:
        """Stops receiving, except in the kept parts; every message that was received is on disk."""
        leased = set(self._receiving)
        others = [
            one for name, one in self._running.items() if name not in leased | kept
        ]
        await cancel_until_ended(*others, *self._receiving_tasks(*leased))
        if self.status.state != "draining":
            if leased:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_LET_GO_TIMEOUT_S):
                        await self._deliveries.wait_idle()
            await self._let_go(kept)
            await self._close_parts(kept)

    async def _let_go(self, kept: AbstractSet[str] = frozenset()) -> None:
        """Gives back the leases on platforms, except those of the kept parts."""
        names = set(self._running) - kept
        await cancel_until_ended(*(self._running[name] for name in names))
        for name in names:
            del self._running[name]

    async def _close_parts(self, kept: AbstractSet[str] = frozenset()) -> None:
        for name in set(self._supervisors) - kept:
            await self._supervisors[name].part.close()
            del self._supervisors[name]

    async def _recover_sessions(self, platform: str = "") -> None:
        """Ends turns that the last gateway left, on one platform or on all, and answers messages that wait."""
        store = self._app.store
        sessions = [
            one.session
            for one in await store.call(store.chats.busy)
            if not platform or one.key.partition("/")[0] == platform
        ]
        for session in sessions:
            await self.agent.service.resume(session)
        waits = [self.agent.service.recovered(session) for session in sessions]
        if waits:
            log.info("%d sessions were working when the last gateway ended", len(waits))
            try:
                await asyncio.wait_for(asyncio.gather(*waits), _SETTLE_TIMEOUT_S)
            except TimeoutError:
                log.warning("some sessions are still being settled")
        until = self._app.clock.now() - _KEEP_MESSAGE_IDS_S
        await store.call(store.chats.forget, until)

    async def _tell_ends(self) -> None:
        """Writes down how background work of recent chats ended whose gateway was killed before it could."""
        store = self._app.store
        for one in await store.call(store.chats.recent, _MAX_RECENT_CHATS):
            try:
                if await store.call(has_children, self._app, one.session):
                    await self.agent.service.tell_ends(one.session)
            except HermesError as error:
                log.warning(
                    "the background work of %s was not told: %s", one.key, error
                )

    async def _deliver_backlog(self, platform: str) -> None:
        """Delivers older replies before new messages come in, unless that takes too long."""
        try:
            done = await asyncio.wait_for(
                self._deliveries.catch_up(platform), _BACKLOG_TIMEOUT_S
            )
        except TimeoutError:
            log.warning(
                "%s: older replies are still being delivered; new messages are received already",
                platform,
            )
            return
        if done:
            log.info("%s: delivered older replies in %d chats", platform, done)

    def _engine_choice(self, session: str) -> EngineChoice:
        """Which agent a session is given to."""
        binding = self._app.store.chats.of_session(session)
        if binding is None:
            return EngineChoice()
        attended = (
            binding.key.partition("/")[0] not in _UNATTENDED_PLATFORMS
            and self._access.has_approver()
        )
        return EngineChoice(binding.model, attended)

    async def _write_status(self) -> None:
        """Writes the status when it has changed, and from time to time as a heartbeat."""
        written: object = None
        while True:
            now = self._app.clock.now()
            state = self._update_status()
            if state != written or now - self.status.heartbeat >= HEARTBEAT_INTERVAL_S:
                self.status.heartbeat, written = now, state
                try:
                    await asyncio.to_thread(write_status, self._app.home, self.status)
                except (HermesError, OSError) as error:
                    await asyncio.sleep(self._app.errors.note(_WRITING_STATUS, error))
                else:
                    self._app.errors.succeeded(_WRITING_STATUS)
            await asyncio.sleep(_STATUS_INTERVAL_S)

    def _update_status(self) -> object:
        """Updates the status; returns the part that is written as soon as it changes."""
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

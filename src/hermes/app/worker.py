"""`Worker`: runs turns that other processes left to workers, until it is drained."""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes import __version__
from hermes.app.agent import Agent
from hermes.app.app import App
from hermes.app.engine import EngineChoice
from hermes.app.goals.waking import GoalWaker
from hermes.app.model_info import kept_model
from hermes.app.presence import Presence
from hermes.app.schedules.scheduler import ScheduleLoop
from hermes.app.turn_placement import WORKER_ROLE, this_place
from hermes.errors import HermesError, LeaseLost, StoreError
from hermes.primitives.tasks import BackgroundTasks, cancel_and_wait
from hermes.settings import Secrets
from hermes.store.leases import LEASE_TTL_S
from hermes.store.ports import RowWatch
from hermes.store.role_leases import HeldRole
from hermes.store.work_queue import OFFERED
from hermes.text.translation import translator

if TYPE_CHECKING:
    from hermes.app.boards.dispatcher import Dispatcher

t = translator(__name__)


log = logging.getLogger("hermes.worker")

_SCAN_INTERVAL_S = 1.0
_STREAM_HEAD_START_S = 2.0  # for which a new entry is left to the faster queue
_SCANNING = "looking for sessions that wait"  # not translated
_RENEWING = "renewing the worker's entry"  # not translated
_UNATTENDED_PLATFORMS = frozenset(("webhook",))


class Worker:
    """Make it and run it inside one event loop. `tell` gets lines for the person who runs it."""

    def __init__(
        self, app: App, secrets: Secrets, tell: Callable[[str], None] = log.info
    ) -> None:
        self._app = app
        self._secrets = secrets
        self._tell = tell
        self._running: dict[str, asyncio.Task[None]] = {}
        self._background = BackgroundTasks("a part of the worker")
        self._stopping = asyncio.Event()  # nothing new is taken
        self._closing = asyncio.Event()  # what runs is stopped
        self._cards: Dispatcher | None = None
        self._woken = asyncio.Event()
        self._role: HeldRole | None = None
        self._stream: Any = None
        self._presence = Presence(app, "worker")
        self.place = this_place(app)
        self.agent = Agent(app, secrets, surface="worker", choice_of=self._choice)
        self.done = 0
        """How many times it has worked on a session."""

    async def start(self) -> None:
        """Registers the worker and begins to take sessions."""
        app = self._app
        app.go_live(self._secrets, "worker")
        app.store.share()
        self._role = await asyncio.to_thread(
            app.store.roles.take,
            f"{WORKER_ROLE}{app.store.leases.owner}",
            self._facts(),
        )
        if self._role is None:
            raise HermesError(t.later("This worker is registered already."))
        self._background.start(self._renew_role(self._role))
        self._background.start(self._scan())
        self._background.start(self._presence.run())
        waker = GoalWaker(app, lambda: self.agent.service, "worker")
        self._background.start(waker.run())
        if app.exporters is not None and app.exporters.link is not None:
            from hermes.bridge.work_stream import WorkStream

            self._stream = WorkStream(app.exporters.link, self.place, self._room)
            self._background.start(self._stream.run(self._work_on))
        if app.settings.schedules.enabled:
            jobs = ScheduleLoop(app, self._secrets)
            self._background.start(jobs.run(self._stopping))
        if app.settings.boards.enabled:
            from hermes.app.boards.dispatcher import Dispatcher

            self._cards = Dispatcher(app, self._secrets)
            self._background.start(self._cards.run(self._closing))

    async def drain(self) -> None:
        """Takes nothing new and waits for running turns. What does not end in time is handed over to other workers."""
        self._stopping.set()
        if self._cards is not None:
            self._cards.drain()
        with contextlib.suppress(StoreError):
            self._presence.drain()
        if self._role is not None:
            with contextlib.suppress(StoreError):
                await asyncio.to_thread(
                    self._app.store.roles.renew, self._role, self._facts()
                )
        timeout_s = self._app.settings.worker.drain_timeout
        try:
            async with asyncio.timeout(timeout_s):
                await self.agent.service.park()
                await self.agent.service.all_idle()
                if self._cards is not None:
                    await self._cards.finished()
        except TimeoutError:
            log.warning("turns still run after %g seconds; they are stopped", timeout_s)
        self._closing.set()
        await self.agent.close()
        await cancel_and_wait(*self._running.values())
        await self._background.close()
        if self._role is not None:
            with contextlib.suppress(StoreError):
                await asyncio.to_thread(
                    self._app.store.roles.release, self._role, forget=True
                )

    def _facts(self) -> dict[str, Any]:
        return {
            "place": self.place,
            "version": __version__,
            "at_once": self._app.settings.worker.at_once,
            "running": len(self._running),
            "draining": self._stopping.is_set(),
        }

    def _room(self) -> int:
        """How many more sessions it can run."""
        if self._stopping.is_set():
            return 0
        return self._app.settings.worker.at_once - len(self._running)

    def _choice(self, session: str) -> EngineChoice:
        """What a session runs on: as its chat says, or the model that was chosen for it, or the settings of this machine."""
        binding = self._app.store.chats.of_session(session)
        if binding is None:
            return EngineChoice(kept_model(self._app, session))
        platform = binding.key.partition("/")[0]
        attended = platform not in _UNATTENDED_PLATFORMS and self._has_approver()
        return EngineChoice(binding.model, attended)

    def _has_approver(self) -> bool:
        gateway = self._app.settings.gateway
        if gateway.owners or (gateway.approvers == "user" and gateway.allow):
            return True
        roles = {one.role for one in self._app.store.people.every()}
        return "owner" in roles or (gateway.approvers == "user" and "user" in roles)

    async def _work_on(self, session: str) -> None:
        """Works on a session if nobody else does. Returns when the end of its turn is a row."""
        if self._stopping.is_set():
            raise asyncio.CancelledError
        task = self._running.get(session)
        if task is None:
            task = asyncio.ensure_future(self._work(session))
            self._running[session] = task
            task.add_done_callback(lambda _: self._ended(session))
        await asyncio.shield(task)

    def _ended(self, session: str) -> None:
        self._running.pop(session, None)
        self._woken.set()

    async def _work(self, session: str) -> None:
        try:
            if not await asyncio.to_thread(self._may_take, session):
                return
            if await self.agent.service.work_on(session):
                self.done += 1
        except LeaseLost as lost:
            self._tell(
                t.logged(
                    "Another process took over session {session}. Nothing that this worker wrote after that "
                    "counts. ({lost})",
                    session=session,
                    lost=lost,
                )
            )
        except HermesError as error:
            self._tell(f"Session {session} stopped: {error}")
        except Exception:  # the boundary of a session: the others go on
            log.exception("session %s failed", session)

    def _may_take(self, session: str) -> bool:
        """Whether the store offers a session to workers of this place, whoever named it, and its folder is here."""
        origin = self._app.store.sessions.offered_origin(session)
        if origin is None:
            return False
        if origin.place == self.place:
            return True
        if origin.place:
            return False  # another machine may have another folder of that name
        if not origin.cwd or Path(origin.cwd).is_dir():
            return True
        log.warning(
            "session %s waits for a worker that has its folder %s", session, origin.cwd
        )
        return False

    async def _scan(self) -> None:
        """Looks for offered sessions in the table: those that nothing faster has announced, or that were left over."""
        errors = self._app.errors
        watch = self._app.store.watch(OFFERED)
        try:
            while not self._stopping.is_set():
                try:
                    await self._take_offered()
                except StoreError as error:
                    await asyncio.sleep(errors.note(_SCANNING, error))
                    continue
                errors.succeeded(_SCANNING)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_SCAN_INTERVAL_S):
                        await self._wait_for_offers(watch)
                watch.changed()
        finally:
            watch.close()

    async def _wait_for_offers(self, watch: RowWatch) -> None:
        if self._room() <= 0:
            self._woken.clear()
            await self._woken.wait()
        elif self._has_live_stream():
            await asyncio.sleep(_SCAN_INTERVAL_S)  # new entries come by the stream
        else:
            await watch.wait(_SCAN_INTERVAL_S / 4)

    def _has_live_stream(self) -> bool:
        return self._stream is not None and self._stream.is_live

    async def _take_offered(self) -> None:
        room = self._room()
        if room <= 0:
            return
        work = self._app.store.work
        found = await asyncio.to_thread(
            work.free,
            self.place,
            limit=room,
            min_age_s=_STREAM_HEAD_START_S if self._has_live_stream() else 0.0,
        )
        for one in found:
            if one.session not in self._running and self._room() > 0:
                self._background.start(self._work_on(one.session))

    async def _renew_role(self, role: HeldRole) -> None:
        roles, errors = self._app.store.roles, self._app.errors
        while True:
            await asyncio.sleep(LEASE_TTL_S / 3)
            try:
                is_ours = await asyncio.to_thread(roles.renew, role, self._facts())
                if not is_ours:  # frozen for longer than the lease
                    taken = await asyncio.to_thread(
                        roles.take, role.name, self._facts()
                    )
                    self._role = role = taken or role
            except StoreError as error:
                errors.note(_RENEWING, error)
            else:
                errors.succeeded(_RENEWING)

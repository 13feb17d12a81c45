"""The dispatcher: a task that starts ready cards, cleans up after vanished processes, and delivers notices.

It runs in the gateway, in the dashboard or alone. One process at a time has the role; the others stand by. If several
machines share a store, one process on each has the role of its machine. It runs the cards whose folder is there, and
those that any machine can run. A card is claimed in one transaction before it starts, so that even two dispatchers
never run it twice at once.
"""

import asyncio
import contextlib
import logging
from functools import partial
from typing import Any

import msgspec

from hermes.app.agent_pool import AgentPool
from hermes.app.app import App
from hermes.app.boards import card_rules as rules
from hermes.app.boards.board_service import Boards
from hermes.app.boards.card_rules import RunEnding, RunLimits
from hermes.app.boards.card_worker import CardWorker
from hermes.app.boards.claims import (
    MAX_CLAIMS,
    ClaimedCard,
    claim_ready,
    fits_place,
    missing_folders,
    settle,
)
from hermes.app.boards.notices import CardNotices
from hermes.app.boards.queue_state import ASKING, current_settings, dispatcher_role
from hermes.app.boards.waiting_cards import WaitingCards
from hermes.app.boards.workspaces import clear_workspaces
from hermes.app.turn_placement import this_place
from hermes.errors import (
    HermesError,
    StoreDamaged,
    StoreError,
    in_sentences,
)
from hermes.primitives.tasks import cancel_and_wait, run_until_first
from hermes.schema.boards import (
    KANBAN_SURFACE,
    Card,
    CardRun,
    CardRunNoted,
    DispatcherChanged,
)
from hermes.schema.event_base import payload_of
from hermes.settings import Secrets
from hermes.settings.boards import BoardSettings
from hermes.store.boards import BoardReader, BoardTransaction
from hermes.store.leases import LEASE_TTL_S
from hermes.store.role_leases import HeldRole
from hermes.text.translation import translator

t = translator(__name__)

log = logging.getLogger("hermes.boards")

TICK_INTERVAL_S = 1.0
_UNUSED_INTERVAL_S = 3.0  # while there is no board
_FOLDERS_INTERVAL_S = 5.0
_MAX_LACKING = 200
_DISPATCHING = "running the cards of boards"  # not translated
NOT_BEGUN = RunEnding(
    outcome="stopped",
    reason=t.logged("Hermes was stopped before it began"),
    keeps=True,
)


class Dispatcher:
    """Runs cards until it is stopped."""

    def __init__(self, app: App, secrets: Secrets) -> None:
        self._app = app
        self._boards = Boards(app)
        self._agents = AgentPool(app, secrets, KANBAN_SURFACE)
        self._settings = current_settings(app)
        self.notices = CardNotices(app)
        self._workers: dict[str, CardWorker] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._asking: set[str] = set()
        self._role: HeldRole | None = None
        self._place = _place(app)
        self._waiting = WaitingCards(app, self._boards)
        self._facts: dict[str, Any] = {}
        """What its role says about it."""
        self._looked_for_folders = float("-inf")
        self._renewed = 0.0
        self._is_draining = False
        self._wakes = asyncio.Event()

    def use(self, secrets: Secrets) -> None:
        """Uses other keys, starting with the next card."""
        self._agents.secrets = secrets

    @property
    def running(self) -> int:
        """How many cards run here now."""
        return len(self._tasks)

    @property
    def is_active(self) -> bool:
        """Whether this process has the role."""
        return self._role is not None

    async def run(self, stop: asyncio.Event) -> None:
        """Runs until `stop` is set. Then stops the running cards, which return to their previous status."""
        try:
            while not stop.is_set():
                pause = await self._step_safely()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(pause):
                        await run_until_first(stop.wait(), self._wakes.wait())
                self._wakes.clear()
        finally:
            await self.close()

    async def close(self) -> None:
        """Stops the cards that run here, and releases the role for another process."""
        await cancel_and_wait(*self._tasks.values())
        await self.notices.close()
        with contextlib.suppress(StoreError):
            await self._release_role()

    async def _release_role(self) -> None:
        if self._role is not None:
            role, self._role = self._role, None
            await asyncio.to_thread(self._app.store.roles.release, role)
            self._tell_role(is_running=False)

    def drain(self) -> None:
        """Starts no more cards, which is left to another process. Those that run go on."""
        self._is_draining = True
        self._wakes.set()

    async def finished(self) -> None:
        """Waits until no card runs here."""
        while self._tasks:
            await asyncio.wait(set(self._tasks.values()))

    async def _step_safely(self) -> float:
        """Runs one step. An error is reported once, and the step is retried."""
        try:
            pause = await self.step()
        except HermesError as error:
            told = self._app.errors.note(_DISPATCHING, in_sentences(error))
            return max(TICK_INTERVAL_S, told)
        except Exception as error:  # the boundary of this task
            log.exception("cards can't be looked at; will try again")
            return max(TICK_INTERVAL_S, self._app.errors.note(_DISPATCHING, error))
        self._app.errors.succeeded(_DISPATCHING)
        return pause

    async def step(self) -> float:
        """Takes the role if it is free, and does what is due. Returns the time until the next step."""
        if not await asyncio.to_thread(self._has_boards):
            return _UNUSED_INTERVAL_S
        await self._renew()
        self.notices.begin()
        if self._is_draining:
            await self._release_role()
            await self._heed_stops()
            return TICK_INTERVAL_S
        if not self.is_active:
            await asyncio.to_thread(self._take_role)
        if self.is_active and self._place:
            await asyncio.to_thread(self._waiting.tell)
            await asyncio.to_thread(self._tell_lacking)
        if self.is_active:
            await asyncio.to_thread(clear_workspaces, self._app, self._boards)
        if self.is_active and await self.tick() >= MAX_CLAIMS:
            return 0.0  # there may be more
        return TICK_INTERVAL_S

    def _has_boards(self) -> bool:
        return self._app.has_log and self._app.store.has_cards

    def _take_role(self) -> None:
        role = dispatcher_role(self._place)
        self._role = self._app.store.roles.take(role, self._facts)
        if self._role is not None:
            self._tell_role(is_running=True)

    def _tell_lacking(self) -> None:
        """Says in its role which folders of ready cards this machine lacks, so that others can say why they wait."""
        now = self._app.clock.now()
        if now - self._looked_for_folders < _FOLDERS_INTERVAL_S:
            return
        self._looked_for_folders = now
        lacking = self._boards.read(lambda reader: missing_folders(reader, now))
        facts = {"lacking": lacking[:_MAX_LACKING]}
        if self._role is not None and facts != self._facts:
            self._facts = facts
            self._app.store.roles.renew(self._role, facts)

    def _tell_role(self, *, is_running: bool) -> None:
        event = DispatcherChanged(
            board="", running=is_running, process=self._app.store.roles.owner
        )
        self._app.bus.publish(event.topic, payload_of(event))

    async def _renew(self) -> None:
        """Renews the role and the claims on runs, some time before they expire."""
        now = asyncio.get_running_loop().time()
        if now - self._renewed < LEASE_TTL_S / 3:
            return
        self._renewed = now
        if self._tasks:
            await asyncio.to_thread(self._boards.store.renew, LEASE_TTL_S)
        if self._role is not None and not await asyncio.to_thread(
            self._app.store.roles.renew, self._role, self._facts
        ):
            self._role = None  # frozen for longer than the lease

    async def tick(self) -> int:
        """Ends runs that are gone, handles stop requests, and starts cards. Returns how many it started."""
        settings = self._settings.read()
        runs, may_start = await asyncio.to_thread(
            self._boards.read,
            lambda reader: _look(reader, self._app.clock.now(), self._place),
        )
        await self._heed(runs)
        if self._is_draining:
            return 0
        active = self._boards.store.active
        foreign = any(run.id not in active for run in runs)
        has_room = len(runs) < settings.max_running
        if not foreign and not (may_start and has_room):
            return 0
        claiming = asyncio.ensure_future(
            asyncio.to_thread(self._boards.change, lambda tx: self._claim(tx, settings))
        )
        try:
            claimed = await asyncio.shield(claiming)
        except asyncio.CancelledError:  # cards claimed so far must not stay claimed
            for one in await claiming:
                await self._end(one.run, NOT_BEGUN, settings)
            raise
        for one in claimed:
            self._start(one, settings)
        return len(claimed)

    def _claim(
        self, tx: BoardTransaction, settings: BoardSettings
    ) -> list[ClaimedCard]:
        store = self._boards.store
        limits = RunLimits(settings.retries, settings.cooldown)
        for run in settle(tx, store, limits):
            log.warning("run %s of %s ended: its process is gone", run.id, run.card)
        claimed = claim_ready(tx, settings, store.owner, self._place)
        store.active |= {one.run.id for one in claimed}
        return claimed

    def _start(self, claimed: ClaimedCard, settings: BoardSettings) -> None:
        worker = CardWorker(self._app, self._boards, self._agents, claimed, settings)
        run = claimed.run
        self._workers[run.id] = worker
        task = asyncio.ensure_future(self._carry_out(worker, run, settings))
        self._tasks[run.id] = task
        task.add_done_callback(lambda _: self._over(run.id))

    def _over(self, run: str) -> None:
        self._tasks.pop(run, None)
        self._workers.pop(run, None)
        self._asking.discard(run)
        self._wakes.set()

    async def _heed_stops(self) -> None:
        await self._heed(
            await asyncio.to_thread(
                self._boards.read, lambda reader: reader.open_runs()
            )
        )

    async def _heed(self, runs: list[CardRun]) -> None:
        """Stops workers on request, or if another process ended their run; records who waits for an answer."""
        known = {run.id: run for run in runs}
        for name, worker in list(self._workers.items()):
            run = known.get(name)
            if run is None:
                if not self._tasks[name].done() and worker.session:
                    await worker.stop(t.logged("another process ended this run"))
            elif run.stop:
                await worker.stop(run.stop)
            elif worker.is_asking != (name in self._asking):
                self._asking ^= {name}
                note = ASKING if worker.is_asking else ""
                await asyncio.to_thread(self._boards.change, partial(_note, run=name, note=note))  # fmt: skip

    async def _carry_out(
        self, worker: CardWorker, run: CardRun, settings: BoardSettings
    ) -> None:
        """Runs a claimed card to its end, and always records an ending."""
        try:
            ending = await worker.work()
        except asyncio.CancelledError:
            ending = NOT_BEGUN
        except Exception as error:  # the boundary of a run
            log.exception("run %s of card %s failed", run.id, run.card)
            ending = RunEnding(outcome="failed", reason=f"{type(error).__name__}: {error}")  # fmt: skip
        card = await self._end(run, ending, settings)
        if card is not None and card.status in rules.OVER:
            await asyncio.to_thread(clear_workspaces, self._app, self._boards, card.id)
        self.notices.begin()

    async def _end(
        self, run: CardRun, ending: RunEnding, settings: BoardSettings
    ) -> Card | None:
        """Writes the end of a run, retrying until it succeeds: until then, the card does not run again."""
        what = f"saving the end of a run of card {run.card}"  # not translated
        limits = RunLimits(settings.retries, settings.cooldown)
        database = self._app.store.database
        while True:
            try:
                card = await asyncio.to_thread(
                    self._boards.change,
                    lambda tx: rules.finish_run(tx, run, ending, limits),
                )
            except StoreDamaged:
                raise
            except StoreError as error:
                if database.closed:  # the next dispatcher ends the run
                    return None
                await asyncio.sleep(self._app.errors.note(what, error))
            else:
                self._app.errors.succeeded(what)
                self._boards.store.active.discard(run.id)
                return card


def _note(tx: BoardTransaction, run: str, note: str) -> None:
    """Reports on the board, and to followers of the card, that a run waits for a person; an empty note ends that."""
    found = tx.run(run)
    card = tx.card(found.card) if found is not None else None
    if found is None or card is None or found.outcome != "running":
        return
    tx.put_run(msgspec.structs.replace(found, note=note))
    if not note:
        return
    how = f"{note}: hermes --resume {found.session}"
    event = CardRunNoted(board=found.board, card=found.card, run=run, note=how, by="hermes")  # fmt: skip
    tx.note(event)
    if not card.origin:  # the surfaces of its origin show the question itself
        rules.tell(tx, card, t.logged("asks you something"), how)


def role_here(app: App) -> str:
    """Returns the role of the process that runs the cards of this machine."""
    return dispatcher_role(_place(app))


def _place(app: App) -> str:
    """Returns the name of this machine; empty if it does not share its store."""
    return this_place(app) if app.settings.store.url else ""


def _look(reader: BoardReader, now: float, place: str) -> tuple[list[CardRun], bool]:
    """Returns the runs that have not ended, and whether a card is ready that this machine can run."""
    fits = None
    if place:
        fits = fits_place(place, {board.slug: board for board in reader.boards()})
    ready = reader.ready(now, without=((), ()), limit=1, fits=fits)
    return reader.open_runs(), bool(ready)

"""Runs one session in this process: takes the lease, settles what a crash left, runs a turn for whatever was said, and
listens to what other processes write into the log."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Protocol

import msgspec

from hermes.app.approvals import Desk, SessionApprovals
from hermes.app.partial_text import PartialText
from hermes.app.session_log import UNKNOWN, SessionJournal, crashed
from hermes.app.session_titles import first_words
from hermes.children.helper_programs import add_workspace
from hermes.core.budget import TurnBudget
from hermes.core.history import ConversationHistory
from hermes.core.ports import Approver, Ids
from hermes.core.runtime import Runtime
from hermes.core.turn import Turn
from hermes.errors import HermesError, LeaseLost, SessionBusy, StoreError, in_sentences
from hermes.primitives.repeated_errors import RepeatedErrors
from hermes.primitives.tasks import BackgroundTasks
from hermes.schema.event import Event
from hermes.schema.events import (
    ApprovalAnswered,
    InterruptRequested,
    QuestionAnswered,
    SessionPrompted,
    SessionTitled,
    TurnEnded,
    TurnStarted,
)
from hermes.schema.messages import ToolCall
from hermes.store import Store
from hermes.store.leases import LEASE_TTL_S, Lease
from hermes.store.log_row import Row
from hermes.tools.process.process_marks import end_leftovers

log = logging.getLogger("hermes.app")

_LISTEN = 0.15  # seconds between looks at what other processes wrote
_STOPPED = "Stopped while it ran; what it had done by then remains."


class Publish(Protocol):
    """Tells of a row that is on disk; a foreign one was written by another process."""

    def __call__(self, row: Row, *, foreign: bool = False) -> None: ...


class Workshop(msgspec.Struct, frozen=True):
    """What a runner works with."""

    store: Store
    ids: Ids
    desk: Desk
    runtime: Callable[[str, Approver], Runtime]
    prompt: Callable[[str, Path], Awaitable[SessionPrompted]]
    budget: Callable[[str], TurnBudget]
    publish: Publish
    snapshot: Callable[[str], None] | None
    """Writes a session's JSON copy, if the user wants one."""
    title: Callable[[str, ConversationHistory], None]
    """Looks for a better title, on the side."""
    show: Callable[[str, str, Event], None]
    """Publishes a transient event of a session and turn."""
    finish: Callable[[str, Path], Awaitable[None]]
    """Keeps how the files stand at the end of a turn, for undo."""
    errors: RepeatedErrors = msgspec.field(default_factory=lambda: RepeatedErrors(log))
    """Errors that keep repeating in this process."""
    partial: Callable[[str], PartialText | None] = lambda _: None
    """Where the text shown of a session's reply is kept, in case the process is killed."""


class Runner:
    """One session at work."""

    def __init__(self, workshop: Workshop, session: str) -> None:
        self._shop = workshop
        self._journal: SessionJournal | None = None
        self._turn: Turn | None = None
        self._unwanted = False
        self._closing = False
        self.stopping = False
        self.session = session
        self.ended: TurnEnded | None = None
        self.settled = asyncio.Event()
        """Set once what a crash left is written down."""
        self.released = asyncio.Event()
        """Set once this runner has given the session back."""

    @property
    def journal(self) -> SessionJournal | None:
        """The journal, while this process holds the session."""
        return self._journal

    def interrupt(self) -> bool:
        """Stops the running turn, or the one that is about to begin; False when none runs yet."""
        if self._turn is None:
            self._unwanted = (
                not self._closing
            )  # a turn that ends already takes the next one not along
            return False
        self._turn.interrupt()
        return True

    def stop(self) -> None:
        """Ends the running turn and begins no other; what waits is answered when the session is resumed."""
        self.stopping = True
        self.interrupt()

    async def run(self) -> None:
        """Works until nothing is waiting any more. While another process runs the session, waits for it.

        A runner that is to stop only records what a crash left.
        """
        add_workspace(
            self._folder()
        )  # before anything is started: what a crash left needs git too
        lease = await self._take()
        if lease is None and not self.stopping:
            lease = await self._outwait()
        if lease is None:
            return
        try:
            await self._work(lease)
        finally:
            try:
                await asyncio.shield(
                    asyncio.wrap_future(self._shop.store.leases.give_back(lease))
                )
            finally:
                self.released.set()

    async def _work(self, lease: Lease) -> None:
        self._journal = journal = self._read(lease)
        helpers = BackgroundTasks("looking after a session")
        helpers.start(self._keep(lease))
        helpers.start(self._listen(journal))
        try:
            carried = await self._settle(journal)
            self.settled.set()
            while (carried or await self._is_wanted(journal)) and not self.stopping:
                await self._run_turn(journal, carried)
                carried = ()
        finally:
            self._journal = None  # without a pause after the last look at what waits: nothing slips in between
            helpers.cancel()
            journal.close()

    async def _is_wanted(self, journal: SessionJournal) -> bool:
        """Whether something waits. Before it says no it looks at what was written past the journal: words that came
        while the log was being read."""
        if not journal.history.waiting:
            await journal.settled()
            for row in journal.foreign():
                self._hear(row)
        return bool(journal.history.waiting)

    async def _take(self) -> Lease | None:
        taking = self._shop.store.leases.take(self.session)
        try:
            return await asyncio.wrap_future(taking)
        except SessionBusy as busy:
            log.info("%s", busy)
            return None
        except asyncio.CancelledError:
            taking.add_done_callback(self._give_back_unused)
            raise

    def _give_back_unused(self, taking: "Future[Lease]") -> None:
        """The lease came after this runner was cancelled."""
        if not taking.cancelled() and taking.exception() is None:
            self._shop.store.leases.give_back(taking.result())

    async def _outwait(self) -> Lease | None:
        """Follows the process that has the session, until it has answered everything or is gone."""
        follower = self._read(Lease(self.session, "", 0, 0.0))
        while follower.history.waiting:
            await asyncio.sleep(_LISTEN)
            for row in follower.foreign():
                self._shop.publish(row, foreign=True)
            if lease := await self._take():
                return lease
        return None

    def _read(self, lease: Lease) -> SessionJournal:
        shop = self._shop
        partial = shop.partial(self.session)
        journal = SessionJournal(
            shop.store,
            self.session,
            lease,
            publish=shop.publish,
            show=self._show,
            partial=partial,
        )
        journal.load()
        return journal

    async def _settle(self, journal: SessionJournal) -> tuple[ToolCall, ...]:
        """The crash rule: a turn without an end is closed, and no call is run again.

        A call that still waited for a person had not begun: it is returned, to be asked about once more.
        """
        history = journal.history
        if not history.open_turn and not history.open_calls:
            return ()
        journal.turn = history.open_turn
        carried = self._carried(history)
        results = [
            result
            for result in history.unfinished(UNKNOWN)
            if result.call_id not in carried
        ]
        ended: list[Event] = []
        if history.open_turn:
            await asyncio.to_thread(
                end_leftovers, self.session
            )  # what a killed process left running
            await self._shop.finish(history.open_turn, self._folder())
            ended = crashed(journal.partial())
        await journal.record(*results, *ended)
        journal.drop_partial()
        return tuple(carried.values())

    def _carried(self, history: ConversationHistory) -> dict[str, ToolCall]:
        """Calls whose question is still open, if there is somebody to answer it."""
        if not self._shop.desk.anybody:
            return {}
        asked = {
            call_id: request
            for call_id, request in history.asked_calls.items()
            if call_id in history.open_calls
        }
        return {
            call_id: history.open_calls[call_id]
            for call_id, request in asked.items()
            if self._shop.desk.left(request) != 0.0
        }

    async def _run_turn(
        self, journal: SessionJournal, carried: tuple[ToolCall, ...] = ()
    ) -> None:
        """Runs a turn for what waits, or to its end what a crash left `carried`: new words come after its results."""
        shop = self._shop
        cwd = self._folder()
        opening: list[Event] = (
            [] if journal.history.prompt else [await shop.prompt(self.session, cwd)]
        )
        runtime = shop.runtime(self.session, SessionApprovals(shop.desk, journal))
        journal.turn = shop.ids.turn()
        inputs = () if carried else tuple(journal.history.waiting)
        await journal.record(*opening, TurnStarted(inputs=inputs, runtime=runtime.name))
        self._turn = Turn(
            id=journal.turn,
            session=self.session,
            cwd=cwd,
            journal=journal,
            history=journal.history,
            budget=shop.budget(self.session),
        )
        self._turn.carried = carried
        if self._unwanted:
            self._turn.interrupt()
        self._closing = True  # from the end of the work on, with no pause in between
        try:
            ended = await self._to_the_end(runtime, self._turn)
        finally:
            self._turn, self._unwanted = None, False
        try:
            await self._close(journal, ended)
        finally:
            self._closing = False

    async def _close(self, journal: SessionJournal, ended: TurnEnded) -> None:
        shop = self._shop
        await journal.flush()
        await shop.finish(journal.turn, self._folder())
        untitled = not shop.store.sessions.title(self.session)
        titled = (
            [SessionTitled(title=first_words(journal.history), by="hermes")]
            if untitled
            else []
        )
        await journal.record(*journal.history.unfinished(_STOPPED), ended, *titled)
        if titled:
            shop.title(self.session, journal.history)
        if shop.snapshot is not None:
            await asyncio.to_thread(shop.snapshot, self.session)
        self.ended = ended

    def _folder(self) -> Path:
        return Path(self._shop.store.sessions.origin(self.session).cwd or ".")

    async def _to_the_end(self, runtime: Runtime, turn: Turn) -> TurnEnded:
        """The boundary of a turn: whatever goes wrong in it ends it, with words."""
        try:
            return await runtime.run(turn)
        except StoreError:
            raise
        except HermesError as error:
            return TurnEnded(
                reason="failed", detail=in_sentences(error), usage=turn.budget.used
            )
        except Exception as error:
            log.exception("turn of session %s failed", self.session)
            return TurnEnded(
                reason="failed",
                detail=f"{type(error).__name__}: {error}",
                usage=turn.budget.used,
            )

    async def _keep(self, lease: Lease) -> None:
        """The heartbeat."""
        while True:
            await asyncio.sleep(LEASE_TTL_S / 3)
            try:
                await asyncio.to_thread(self._shop.store.leases.renew, lease)
            except LeaseLost as lost:
                log.warning("%s", lost)
                self.interrupt()
                return
            except StoreError as error:
                self._shop.errors.note(
                    f"renewing the lease of session {self.session}", error
                )
            else:
                self._shop.errors.succeeded(
                    f"renewing the lease of session {self.session}"
                )

    async def _listen(self, journal: SessionJournal) -> None:
        """Acts on what other processes write: interrupts, answers; messages are in the history already."""
        while True:
            await asyncio.sleep(_LISTEN)
            await self._look(journal)

    async def look(self) -> bool:
        """Acts at once on what was written since the last look; False when it does not have the session."""
        if self._journal is None:
            return False
        await self._look(self._journal)
        return True

    async def _look(self, journal: SessionJournal) -> None:
        await journal.settled()  # so that none of our own rows is taken for another's
        what = f"reading what other processes write in session {self.session}"
        try:
            rows = journal.foreign()
        except StoreError as error:
            await asyncio.sleep(self._shop.errors.note(what, error))
            return
        self._shop.errors.succeeded(what)
        for row in rows:
            self._hear(row)

    def _hear(self, row: Row) -> None:
        self._shop.publish(row)
        match row.event:
            case InterruptRequested():
                self.interrupt()
            case (ApprovalAnswered() | QuestionAnswered()) as answer:
                self._shop.desk.resolve(self.session, answer)
            case _:
                pass

    def _show(self, event: Event) -> None:
        turn = self._journal.turn if self._journal else ""
        self._shop.show(self.session, turn, event)

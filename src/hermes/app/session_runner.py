"""Runs one session in this process: takes the lease, settles what a crash left, runs a turn for the messages that wait,
and reacts to what other processes write into the log."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

import msgspec

from hermes.app.app import App
from hermes.app.approvals import PendingQuestions, SessionApprovals
from hermes.app.partial_text import PartialText
from hermes.app.session_journal import OUTCOME_UNKNOWN, SessionJournal, crashed
from hermes.app.session_titles import first_words
from hermes.children.helper_programs import add_workspace
from hermes.core.budget import TurnBudget
from hermes.core.goal_progress import GoalProgress
from hermes.core.history import ConversationHistory
from hermes.core.ports import Approver
from hermes.core.turn import Runtime, Turn
from hermes.errors import (
    HermesError,
    LeaseLost,
    SessionBusy,
    StoreError,
    TitledAlready,
    in_sentences,
)
from hermes.primitives.tasks import BackgroundTasks
from hermes.schema.event_base import Event
from hermes.schema.events import (
    ApprovalAnswered,
    InterruptRequested,
    QuestionAnswered,
    SessionPrompted,
    SessionTitled,
    TurnEnded,
    TurnStarted,
)
from hermes.schema.goals import GoalPaused
from hermes.schema.messages import ToolCall, UserMessage
from hermes.settings.load import environment
from hermes.store.leases import LEASE_TTL_S, Lease
from hermes.store.log_row import Row
from hermes.store.ports import RowWatch
from hermes.tools.sandbox import read_only_programs

if TYPE_CHECKING:
    from hermes.app.goals.pursuit import GoalPursuit
    from hermes.app.turn_placement import TurnPlacement

log = logging.getLogger("hermes.app")

_LOG_POLL_INTERVAL_S = 0.15  # between reads of what other processes wrote
_FOLLOW_INTERVAL_S = 0.5  # between looks at a session that another process runs
_SAVE_FILES = "saving the files of a turn for undo"  # not translated
_STOPPED = "Stopped while running; what it had done by then remains."  # not translated


class TurnEngine(Protocol):
    """What a runner needs to run the turns of a session."""

    @property
    def attended(self) -> bool:
        """Whether somebody can be asked."""
        ...

    async def prompt(
        self, session: str, cwd: Path, agent: str = ""
    ) -> SessionPrompted: ...

    def adapted(self, session: str, prompt: SessionPrompted) -> SessionPrompted:
        """The prompt as the session's mode needs it now."""
        ...

    def runtime(
        self, session: str, approvals: Approver, agent: str = ""
    ) -> Runtime: ...

    def budget(self, session: str) -> TurnBudget: ...

    def written(self, row: Row) -> None:
        """Notes that a row of a turn is on disk."""

    def title(self, session: str, history: ConversationHistory) -> None:
        """Looks for a better title in the background."""


RunnerMode = Literal["run", "answer", "leave", "claim"]
"""How a runner begins:

- `run` takes the session, or waits until whoever has it has taken in all messages.
- `answer` does the same, but follows the answer of another process to its end.
- `leave` leaves the session to a worker as long as one works on it, and follows that to its end too.
- `claim` takes the session only if nobody has it, as a worker does.
"""


async def _begin_nothing(session: str, texts: Sequence[str]) -> None:
    """Does nothing: no command changes a turn."""


async def _prepare_nothing(session: str, history: ConversationHistory) -> None:
    """Does nothing: no session needs anything from the store."""


class RunnerDeps(msgspec.Struct, frozen=True):
    """What the runners of a process share."""

    app: App
    questions: PendingQuestions
    engine: Callable[[str], TurnEngine]
    """The engine that runs a session's turns from now on."""
    keep_files: Callable[[str, Path], Awaitable[None]]
    """Saves the state of the files at the end of a turn, for undo."""
    prepare: Callable[[str, ConversationHistory], Awaitable[None]] = _prepare_nothing
    """Takes what `engine` needs to know about a session from its history, and the rest from the store."""
    begin_turn: Callable[[str, Sequence[str]], Awaitable[None]] = _begin_nothing
    """Takes note of the messages that a turn is about; of none when it has ended."""
    placement: "TurnPlacement | None" = None
    """Decides whether a turn is left to a worker; without it, all turns run here."""
    goals: "Callable[[], GoalPursuit] | None" = None
    """Works towards goals; without it, they stay as they are."""


class Runner:
    """Runs one session until nothing waits any more."""

    def __init__(
        self, deps: RunnerDeps, session: str, mode: RunnerMode = "run"
    ) -> None:
        self._deps = deps
        self._mode: RunnerMode = mode
        self._is_following = False
        self._answered = 0
        self._app = deps.app
        self._journal: SessionJournal | None = None
        self._engine: TurnEngine | None = None  # of the running turn
        self._turn: Turn | None = None
        self._is_interrupted = False  # before the turn began
        self._is_closing = False
        self.stopping = False
        self.session = session
        self.ended: TurnEnded | None = None
        self.goal: GoalProgress | None = None
        """The goal as this runner left it."""
        self.settled = asyncio.Event()
        """Set once what a crash left is written down."""
        self.released = asyncio.Event()
        """Set once this runner has given the session back."""

    @property
    def journal(self) -> SessionJournal | None:
        """The journal, while this process holds the session."""
        return self._journal

    def interrupt(self) -> bool:
        """Stops the running turn, or the one that is about to begin. Returns False when no turn runs yet."""
        if self._is_following:
            return False  # whoever runs it reads the log
        if self._turn is None:
            self._is_interrupted = not self._is_closing  # the next turn is not meant
            return False
        self._turn.interrupt()
        return True

    def stop(self) -> None:
        """Ends the running turn and begins no other. What waits is answered when the session is resumed."""
        self.stopping = True
        self.interrupt()

    async def run(self) -> None:
        """Works until nothing waits any more. While another process runs the session, waits for that process.

        A runner that was stopped before only settles what a crash left.
        """
        await self._app.store.origin(self.session)  # cached from now on
        folder = self._folder()  # a workspace before any program is started
        programs = await asyncio.to_thread(read_only_programs, folder, environment())
        add_workspace(folder, programs)
        lease = None
        if self._mode != "leave" or self.stopping:
            lease = await self._take_lease()
        if lease is None and not self.stopping and self._mode != "claim":
            lease = await self._wait_for_lease()
        if lease is None:
            return
        try:
            await self._work(lease)
        finally:
            leases, answered = self._app.store.leases, self._answered
            giving_back = leases.give_back(lease, answered=answered)
            try:
                await asyncio.shield(asyncio.wrap_future(giving_back))
            finally:
                self.released.set()

    async def _work(self, lease: Lease) -> None:
        watch = self._app.store.watch(self.session, lease, is_read_next=True)
        try:
            self._journal = journal = await self._open_journal(lease)
        except BaseException:
            watch.close()
            raise
        helpers = BackgroundTasks("looking after a session")
        helpers.start(self._renew(lease))
        helpers.start(self._poll(journal, watch))
        try:
            carried = await self._close_crashed_turn(journal)
            self.settled.set()
            while not self.stopping:
                if carried or await self._has_messages(journal):
                    await self._run_turn(journal, carried)
                    carried = ()
                elif not await self._pursue_goal(journal):
                    break
            self.goal = journal.history.goal
            if not journal.history.waiting:
                self._answered = journal.read_up_to
        finally:
            self._journal = None  # right after the last look, so no message is missed
            helpers.cancel()
            watch.close()  # a helper that never began closes nothing
            journal.close()

    async def _pursue_goal(self, journal: SessionJournal) -> bool:
        """Lets the session's goal decide what comes next. Returns whether there is more to do."""
        if self._deps.goals is None or not journal.history.goal.is_open:
            return False
        try:
            await self._deps.prepare(self.session, journal.history)
            pursuit = self._deps.goals()
            return await pursuit.advance(journal, partial(self._has_messages, journal))
        except StoreError:
            raise
        except Exception as error:  # noqa: BLE001 - the boundary of a step
            why = self._failed(error).detail
            await journal.record(GoalPaused(reason=why, by="hermes"))
            return False

    async def _has_messages(self, journal: SessionJournal) -> bool:
        """Whether a message waits, also one that was written past the journal while the log was being read."""
        if not journal.history.waiting:
            for row in await journal.foreign():
                self._react(row)
        return bool(journal.history.waiting)

    async def _take_lease(self) -> Lease | None:
        taking = self._app.store.leases.take(self.session)
        try:
            return await asyncio.wrap_future(taking)
        except SessionBusy as busy:
            log.info("%s", busy)
            return None
        except asyncio.CancelledError:
            taking.add_done_callback(self._give_back_unused)
            raise

    def _give_back_unused(self, taking: "Future[Lease]") -> None:
        """Gives back a lease that came after this runner was cancelled."""
        if not taking.cancelled() and taking.exception() is None:
            self._app.store.leases.give_back(taking.result())

    async def _wait_for_lease(self) -> Lease | None:
        """Follows the process that has the session until it has answered everything (None) or is gone."""
        watch = self._app.store.watch(self.session, is_read_next=True)
        try:
            follower = await self._open_journal(Lease(self.session, "", 0, 0.0))
            self._is_following = True
            self.settled.set()
            return await self._follow(follower, watch)
        finally:
            self._is_following = False
            watch.close()

    async def _follow(self, follower: SessionJournal, watch: RowWatch) -> Lease | None:
        """Reads what the other process writes. Tries to take the session when that has been silent for a while."""
        loop = asyncio.get_running_loop()
        history = follower.history
        wants_end = self._mode in ("leave", "answer")
        looked_at = loop.time()
        while history.waiting or (wants_end and history.open_turn):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_FOLLOW_INTERVAL_S):
                    await watch.wait(_LOG_POLL_INTERVAL_S)
            rows = await follower.foreign() if watch.changed() else []
            self._note_progress(rows)
            if self._may_try(looked_at) and not self.stopping:
                if lease := await self._take_lease():
                    return lease
                looked_at = loop.time()
            if self.stopping:
                return None
        return None

    def _note_progress(self, rows: Sequence[Row]) -> None:
        """Publishes rows of another process, and notes what it has begun and ended."""
        self._app.writer.publish(*rows, foreign=True)
        for row in rows:
            if isinstance(row.event, TurnEnded):
                self.ended = row.event
            elif isinstance(row.event, TurnStarted) and self._deps.placement:
                self._deps.placement.note_begun(asyncio.get_running_loop().time())

    def _may_try(self, looked_at: float) -> bool:
        """Whether this process may try to take the session, which it last looked for at this time."""
        now = asyncio.get_running_loop().time()
        placement = self._deps.placement
        if self._mode == "leave" and placement is not None:
            return placement.is_due_here(looked_at, now)
        return now - looked_at >= _LOG_POLL_INTERVAL_S

    async def _open_journal(self, lease: Lease) -> SessionJournal:
        journal = SessionJournal(
            self._app,
            self.session,
            lease,
            partial=PartialText(self._app.home, self.session),
            on_written=self._written,
        )
        await journal.load()
        return journal

    def _written(self, row: Row) -> None:
        if self._engine is not None:
            self._engine.written(row)

    async def _close_crashed_turn(
        self, journal: SessionJournal
    ) -> tuple[ToolCall, ...]:
        """The crash rule: a turn without an end is closed, and no call is run again.

        A call that still waited for a person had not begun. Such calls are returned, to be asked about once more.
        """
        history = journal.history
        if not history.open_turn and not history.open_calls:
            return ()
        journal.turn = history.open_turn
        await self._deps.prepare(self.session, journal.history)
        carried = self._open_calls(history)
        results = [
            result
            for result in history.unfinished(OUTCOME_UNKNOWN)
            if result.call_id not in carried
        ]
        ended: list[Event] = []
        if history.open_turn:
            from hermes.children.process_tree import end_leftovers

            await self._attempt(
                asyncio.to_thread(end_leftovers, self.session),
                "ending the processes of a turn whose process is gone",  # not translated
            )
            await self._attempt(
                self._deps.keep_files(history.open_turn, self._folder()), _SAVE_FILES
            )
            ended = crashed(journal.partial())
        await journal.record(*results, *ended)
        journal.drop_partial()
        return tuple(carried.values())

    def _open_calls(self, history: ConversationHistory) -> dict[str, ToolCall]:
        """Calls whose question is still open, if there is somebody to answer it."""
        questions = self._deps.questions
        asked = {
            call_id: request
            for call_id, request in history.asked_calls.items()
            if call_id in history.open_calls
        }
        if not asked or not self._can_ask():
            return {}
        return {
            call_id: history.open_calls[call_id]
            for call_id, request in asked.items()
            if questions.seconds_left(request) != 0.0
        }

    def _can_ask(self) -> bool:
        if not self._deps.questions.has_surface:
            return False
        return self._deps.engine(self.session).attended

    async def _run_turn(
        self, journal: SessionJournal, carried: tuple[ToolCall, ...] = ()
    ) -> None:
        """Runs a turn for the messages that wait, or finishes the calls that a crash left."""
        try:
            engine, runtime, budget = await self._begin_turn(journal, carried)
        except StoreError:
            raise
        except Exception as error:  # noqa: BLE001 - the boundary of a turn
            await self._fail_to_begin(journal, self._failed(error))
            return
        self._turn = Turn(
            id=journal.turn,
            session=self.session,
            cwd=self._folder(),
            journal=journal,
            history=journal.history,
            budget=budget,
        )
        self._turn.carried = carried
        if self._is_interrupted:
            self._turn.interrupt()
        self._is_closing = True  # an interrupt after the end of the work is too late
        try:
            ended = await self._run_to_end(runtime, self._turn)
        finally:
            self._turn, self._is_interrupted = None, False
        try:
            await self._end_turn(engine, journal, ended)
        finally:
            self._is_closing = False
            await self._deps.begin_turn(self.session, ())

    async def _begin_turn(
        self, journal: SessionJournal, carried: tuple[ToolCall, ...]
    ) -> tuple[TurnEngine, Runtime, TurnBudget]:
        """Writes down that a turn begins. Returns what runs it, and its caps."""
        await self._deps.prepare(self.session, journal.history)
        await self._deps.begin_turn(self.session, _texts(journal.history, carried))
        self._engine = engine = self._deps.engine(self.session)
        opening: list[Event] = []
        prompt, agent = journal.history.prompt, journal.history.agent
        if not prompt or prompt.agent != agent:
            opening = [await engine.prompt(self.session, self._folder(), agent)]
        elif (adapted := engine.adapted(self.session, prompt)) is not prompt:
            opening = [adapted]
        questions = self._deps.questions
        approvals = SessionApprovals(questions, journal, attended=engine.attended)
        runtime = engine.runtime(self.session, approvals, agent)
        budget = self._budget(engine, journal)
        journal.turn = self._app.ids.turn()
        inputs = () if carried else tuple(journal.history.waiting)
        await journal.record(*opening, TurnStarted(inputs=inputs, runtime=runtime.name))
        return engine, runtime, budget

    async def _fail_to_begin(self, journal: SessionJournal, ended: TurnEnded) -> None:
        """Writes down a turn that failed before it began, so that every surface shows why."""
        journal.turn = self._app.ids.turn()
        await journal.record(TurnStarted(inputs=tuple(journal.history.waiting)))
        await journal.record(*journal.history.unfinished(_STOPPED), ended)
        self._is_interrupted = False
        self.ended = ended

    def _budget(self, engine: TurnEngine, journal: SessionJournal) -> TurnBudget:
        """The caps of the next turn, with that of the session's goal."""
        goal = journal.history.goal
        own = None
        if self._deps.goals is not None and goal.is_open:
            own = self._deps.goals().budget(self.session, goal)
        return own or engine.budget(self.session)

    async def _end_turn(
        self, engine: TurnEngine, journal: SessionJournal, ended: TurnEnded
    ) -> None:
        app, history = self._app, journal.history
        await journal.nothing_under_way()
        await self._attempt(
            self._deps.keep_files(journal.turn, self._folder()), _SAVE_FILES
        )
        titled: list[Event] = []
        if not history.title:
            titled = [SessionTitled(title=first_words(history), by="hermes")]
        last_rows = (*history.unfinished(_STOPPED), ended)
        try:
            await journal.record(*last_rows, *titled)
        except TitledAlready:  # the user named it a moment ago
            titled = []
            await journal.record(*last_rows)
        if titled:
            engine.title(self.session, history)
        if app.settings.sessions.write_json_snapshots:
            await self._attempt(
                asyncio.to_thread(app.snapshot, self.session),
                "writing the JSON snapshot of a session",  # not translated
            )
        self.ended = ended

    async def _attempt(self, work: Awaitable[object], what: str) -> None:
        """Does work whose failure must not fail the turn. An error is reported and counted."""
        try:
            await work
        except StoreError:
            raise
        except Exception as error:  # noqa: BLE001 - a turn must end
            self._app.errors.note(what, error)
        else:
            self._app.errors.succeeded(what)

    def _folder(self) -> Path:
        return self._app.store.sessions.origin(self.session).working_directory

    async def _run_to_end(self, runtime: Runtime, turn: Turn) -> TurnEnded:
        """The boundary of a turn: whatever fails in it ends it, with a reason."""
        try:
            return await runtime.run(turn)
        except StoreError:
            raise
        except Exception as error:  # noqa: BLE001 - the boundary of a turn
            failed = self._failed(error)
            return msgspec.structs.replace(failed, usage=turn.budget.used)

    def _failed(self, error: Exception) -> TurnEnded:
        """The end of a turn that an error stopped, in words for whoever watches."""
        if isinstance(error, HermesError):
            return TurnEnded(reason="failed", detail=in_sentences(error))
        log.error("turn of session %s failed", self.session, exc_info=error)
        detail = f"{type(error).__name__}: {error}"
        return TurnEnded(reason="failed", detail=detail)

    async def _renew(self, lease: Lease) -> None:
        """Renews the lease again and again. Not in a thread: turns may keep all of those busy."""
        errors = self._app.errors
        what = f"renewing the lease of session {self.session}"  # not translated
        while True:
            await asyncio.sleep(LEASE_TTL_S / 3)
            try:
                await asyncio.wrap_future(self._app.store.leases.extend(lease))
            except LeaseLost as lost:
                log.warning("%s", lost)
                self.interrupt()
                return
            except StoreError as error:
                errors.note(what, error)
            else:
                errors.succeeded(what)

    async def _poll(self, journal: SessionJournal, watch: RowWatch) -> None:
        try:
            while True:
                await watch.wait(_LOG_POLL_INTERVAL_S)
                if watch.changed() and not await self._read_others(journal):
                    watch.forget()
        finally:
            watch.close()

    async def read_others(self) -> bool:
        """Reacts now to what was written past the journal. Returns False when this runner does not have the session."""
        if self._journal is None:
            return False
        await self._read_others(self._journal)
        return True

    async def _read_others(self, journal: SessionJournal) -> bool:
        """Returns False if the log could not be read."""
        what = f"reading what other processes write in session {self.session}"  # not translated
        try:
            rows = await journal.foreign()
        except StoreError as error:
            await asyncio.sleep(self._app.errors.note(what, error))
            return False
        self._app.errors.succeeded(what)
        for row in rows:
            self._react(row)
        return True

    def _react(self, row: Row) -> None:
        """Acts on interrupts and answers. Messages are in the history already."""
        self._app.writer.publish(row)
        match row.event:
            case InterruptRequested():
                self.interrupt()
            case (ApprovalAnswered() | QuestionAnswered()) as answer:
                self._deps.questions.resolve(self.session, answer)
            case _:
                pass


def _texts(history: ConversationHistory, carried: Sequence[ToolCall]) -> list[str]:
    """The user's messages that a turn is about: those that wait, or the last one before a crash."""
    if not carried:
        return [message.text for message in history.waiting.values()]
    said = [one.text for one in history.messages if isinstance(one, UserMessage)]
    return said[-1:]

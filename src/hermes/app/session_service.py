"""The session service: what every surface calls to submit, steer, interrupt and answer.

When `submit` returns, the message is on disk. The turn that answers it belongs to the session, not to the caller.
"""

import asyncio
import contextlib
import logging
from collections.abc import Collection
from typing import Literal

from hermes.app.app import App
from hermes.app.approvals import AnswerFuture
from hermes.app.goals.waking import WaitingGoals
from hermes.app.session_journal import read_history
from hermes.app.session_runner import Runner, RunnerDeps, RunnerMode
from hermes.core.calls import writable
from hermes.errors import AnsweredAlready, HermesError, LeaseLost, StoreError
from hermes.primitives.tasks import BackgroundTasks, cancel_and_wait, running
from hermes.schema.event_base import Event
from hermes.schema.events import (
    ApprovalAnswered,
    ApprovalRequested,
    InterruptRequested,
    MessageWithdrawn,
    Mode,
    ModeChanged,
    PermissionsRevoked,
    QuestionAnswered,
    QuestionAsked,
    TurnEnded,
)
from hermes.schema.messages import Image, UserMessage
from hermes.store.leases import Lease

log = logging.getLogger("hermes.app")

_MAX_IDLE_RUNNERS = 256  # kept to say how their last turn ended
_ASK_AGAIN_TIMEOUT_S = 20.0  # for a turn to reach a question that was asked before
_TURN_STOP_TIMEOUT_S = 5.0  # for a turn to end in order
_RELEASE_TIMEOUT_S = 5.0  # for a session to be released once its turn has ended
_LOOK_FOR_RELEASE_S = 0.02  # between looks whether a session was released
_LOOK_AFTER_ANSWER_S = 0.1  # between looks whether an answer reached its turn
_MAX_LOOKS_AFTER_ANSWER = 50

Delivery = Literal["queue", "steer", "interrupt"]
Verdict = Literal["once", "session", "always", "deny"]


class SessionService:
    """Runs the sessions of this process."""

    def __init__(self, deps: RunnerDeps) -> None:
        self._app: App = deps.app
        self._deps = deps
        self._runners: dict[str, Runner] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._wanted: set[str] = set()
        self._next_modes: dict[str, RunnerMode] = {}
        self._failures: dict[str, HermesError] = {}
        self._waiting_goals = WaitingGoals(deps.app, self._start)
        self._parents: dict[str, str] = {}
        """Sessions that a person moved to the background, and the session they continued in."""
        self._handed_over: set[str] = set()
        self._background = BackgroundTasks("following an answer")

    async def submit(
        self,
        session: str,
        text: str,
        *,
        images: tuple[Image, ...] = (),
        recordings: tuple[str, ...] = (),
        delivery: Delivery = "queue",
        via: str = "",
    ) -> tuple[int, int]:
        """Writes a message to the log and has it answered. Returns the message's cursor `(epoch, seq)`."""
        kind: Literal["queue", "steer"] = "steer" if delivery == "steer" else "queue"
        message = UserMessage(
            text=writable(text),
            images=images,
            recordings=recordings,
            delivery=kind,
            via=via,
        )
        leave = await self._leaves(session)
        cursor = await self._record(session, message, offer=leave)
        if delivery == "interrupt":
            await self.interrupt(session, by="user")
        if leave and self._deps.placement is not None:
            self._deps.placement.offered(session)
        self._start(session, "leave" if leave else "answer")
        return cursor

    async def _leaves(self, session: str) -> bool:
        """Whether a message is left to a worker. A session that runs here goes on here."""
        runner = self._runners.get(session)
        if self._deps.placement is None or (runner and runner.journal):
            return False
        return await self._deps.placement.leaves(session)

    async def work_on(self, session: str) -> bool:
        """Answers what waits in a session, unless another process works on it. Returns whether this one did.

        Raises what stopped it.
        """
        if session not in self._tasks:
            self._runners[session] = Runner(self._deps, session, "claim")
            self._start_task(session)
        runner = self._runners[session]
        await self.idle(session)
        return runner.released.is_set()

    async def interrupt(self, session: str, *, by: str) -> None:
        """Stops the running turn, in whichever process it runs. Queued messages are still answered."""
        if await self.end_dead_turn(session):
            await self.answer_queued(session)
            return
        runner = self._runners.get(session)
        if runner:
            runner.interrupt()
        await self._record(session, InterruptRequested(by=by))

    async def answer(  # noqa: PLR0913 - what a person decided
        self,
        session: str,
        call_id: str,
        answer: Verdict,
        *,
        by: str,
        shown: str = "",
        reason: str = "",
        rule: str = "",
    ) -> bool:
        """Answers a request for approval, in whichever process it waits. Returns False when it is not open.

        `shown` is the `approval_hash` of the request that the person saw. Raises AnswerRefused if another request is
        waiting. The model reads the `reason` together with a denial. `rule` is the request's scope if `always` is to
        cover all of it.
        """
        answered = ApprovalAnswered(
            call_id=call_id,
            answer=answer,
            by=by,
            shown=shown,
            reason=writable(reason),
            rule=rule,
        )
        return await self._write_answer(session, answered)

    async def reply(
        self, session: str, call_id: str, text: str, *, by: str, plan: str = ""
    ) -> bool:
        """Answers a question of a tool, in whichever process it waits. Returns False when it is not open.

        `plan` is the plan that was asked about, as the user changed it.
        """
        answered = QuestionAnswered(
            call_id=call_id, text=writable(text), by=by, plan=writable(plan)
        )
        return await self._write_answer(session, answered)

    async def note_goal(self, session: str, *events: Event) -> None:
        """Writes a person's decision about a session's goal, and acts on it."""
        await self._record(session, *events)
        self._start(session)

    async def at_rest(self, session: str) -> TurnEnded | None:
        """As `idle`, and also waits while the session's goal waits for something."""
        while True:
            ended = await self.idle(session)
            if (rest := self._waiting_goals.find(session)) is None:
                return ended
            await asyncio.wait({rest})

    async def take_over_goal(self, session: str) -> None:
        """Continues a waiting goal whose process is gone."""
        if session not in self._tasks:
            self._waiting_goals.adopt(session)
            self._runners[session] = Runner(self._deps, session, "claim")
            self._start_task(session)

    def goal_waits(self, session: str) -> bool:
        """Whether this process waits with the goal of a session."""
        return self._waiting_goals.find(session) is not None

    def hand_over(self, sessions: Collection[str]) -> None:
        """Leaves these sessions to another process: their stop here is not reported as their end."""
        self._handed_over |= set(sessions)

    async def was_stopped(self, session: str) -> bool:
        """Whether the last turn of a session was stopped or cut off, and nothing waits to be answered."""
        if await self.end_dead_turn(session):
            return True
        history = await asyncio.to_thread(read_history, self._app.store, session)
        log = self._app.store.log
        ended = await asyncio.to_thread(log.latest, session, TurnEnded.topic)
        was_stopped = isinstance(ended, TurnEnded) and ended.reason in ("interrupted", "crashed")  # fmt: skip
        return was_stopped and not history.waiting

    async def note_mode(self, session: str, mode: Mode, *, by: str) -> None:
        """Writes down that a session's mode was changed."""
        await self._record(session, ModeChanged(mode=mode, by=by))

    async def withdraw(self, session: str, message: int, *, by: str) -> bool:
        """Takes back a message that waits. Returns False if a turn has read it."""
        try:
            await self._append(session, MessageWithdrawn(message=message, by=by))
        except AnsweredAlready:
            return False
        runner = self._runners.get(session)
        if runner is not None:
            await runner.read_others()
        return True

    async def revoke(
        self, session: str, permissions: Collection[str], *, by: str
    ) -> None:
        """Takes back answers for the rest of a session."""
        revoked = PermissionsRevoked(permissions=tuple(sorted(permissions)), by=by)
        await self._record(session, revoked)

    async def permissions(self, session: str) -> set[str]:
        """What the user has allowed for the rest of a session: scopes and shapes of calls."""
        runner = self._runners.get(session)
        if runner and runner.journal:
            return set(runner.journal.history.allowed)
        history = await asyncio.to_thread(read_history, self._app.store, session)
        return set(history.allowed)

    async def pending(self, session: str) -> list[ApprovalRequested | QuestionAsked]:
        """The questions of a session that wait for a person, in this process or another."""
        runner = self._runners.get(session)
        if runner and runner.journal:
            return list(runner.journal.history.asked_calls.values())
        if not await asyncio.to_thread(self._app.store.log.asked_since_reply, session):
            return []
        history = await asyncio.to_thread(read_history, self._app.store, session)
        return list(history.asked_calls.values())

    async def open_question(self, session: str) -> QuestionAsked | None:
        """The question of a tool that a message in this session would answer, also if its process is gone."""
        questions = await self.pending(session)
        return next((one for one in questions if isinstance(one, QuestionAsked)), None)

    async def _write_answer(
        self, session: str, answered: ApprovalAnswered | QuestionAnswered
    ) -> bool:
        """Writes the answer. Of several answers, also from other processes, the first one in the log counts."""
        future = self._deps.questions.find(session, answered.call_id)
        if future is None:
            elsewhere = await self._holder(session)
            waiting = any(
                request.call_id == answered.call_id
                for request in await self.pending(session)
            )
            if not waiting:
                return False
            if not elsewhere:
                future = await self._ask_again(session, answered.call_id)
                if future is None:
                    return False
        try:
            await self._append(session, answered)
        except AnsweredAlready:
            return False
        if future is None:  # the process that waits reads the log
            self._background.start(self._follow_answer(session, answered))
            return True
        runner = self._runners.get(session)
        if runner is None or not await runner.read_others():
            await asyncio.wait({future}, timeout=_TURN_STOP_TIMEOUT_S)
        return future.done() and future.result() == answered

    async def _follow_answer(
        self, session: str, answered: ApprovalAnswered | QuestionAnswered
    ) -> None:
        """Answers again if the process that has the session only ended a dead turn, for such a process reads no answers."""
        store = self._app.store
        for _ in range(_MAX_LOOKS_AFTER_ANSWER):
            await asyncio.sleep(_LOOK_AFTER_ANSWER_S)
            if await asyncio.to_thread(store.log.has_open_turn, session):
                continue
            if await asyncio.to_thread(store.leases.holder, session):
                continue
            if any(
                request.call_id == answered.call_id
                for request in await self.pending(session)
            ):
                await self._write_answer(session, answered)
            return

    async def _ask_again(self, session: str, call_id: str) -> AnswerFuture | None:
        """Resumes a session whose process is gone, so that it asks its question again. Returns the answer's future.

        Returns None if the question is not asked again: it has expired, or codex, which would have run the call, is
        gone too.
        """
        self._start(session)
        async with running(self._deps.questions.opened(session, call_id)) as opened:
            await asyncio.wait(
                {opened, self._tasks[session]},
                timeout=_ASK_AGAIN_TIMEOUT_S,
                return_when=asyncio.FIRST_COMPLETED,
            )
            return opened.result() if opened.done() else None

    async def _holder(self, session: str) -> Lease | None:
        """Who runs the session. A runner of this process that only ends a dead turn reads no answers; it is waited for."""
        while True:
            runner, task = self._runners.get(session), self._tasks.get(session)
            if runner and task and runner.stopping:
                await _first(runner.released, task)
            holder = await asyncio.to_thread(self._app.store.leases.holder, session)
            if (
                session not in self._tasks
                or (runner := self._runners.get(session)) is None
                or not runner.stopping
                or runner.released.is_set()
            ):
                return holder

    async def resume(self, session: str) -> None:
        """Settles what a crash left, and answers what still waits."""
        self._start(session)

    async def end_dead_turn(self, session: str) -> bool:
        """Ends the open turn of a session whose process is gone. Returns False if there was no such turn.

        Surfaces that show a session call this. Raises if the end can't be written.
        """
        if session in self._tasks or not await asyncio.to_thread(
            self._has_dead_turn, session
        ):
            return False
        if session in self._tasks:  # a runner that began meanwhile settles it too
            return False
        runner = self._runners[session] = Runner(self._deps, session)
        runner.stop()
        self._start_task(session)
        task = self._tasks[session]
        await _first(runner.released, task)  # the task may go on with new messages
        if runner.settled.is_set():
            return True
        if failure := self._failures.pop(session, None):
            raise failure
        if task.done() and not task.cancelled():
            task.result()
        return False  # another process was faster

    async def answer_queued(self, session: str) -> None:
        """Answers the messages that wait in a session whose process is gone, unless it waits for a person's answer."""
        history = await asyncio.to_thread(read_history, self._app.store, session)
        if history.waiting and not history.asked_calls:
            self._start(session)

    def _has_dead_turn(self, session: str) -> bool:
        store = self._app.store
        return store.leases.holder(session) is None and store.log.has_open_turn(session)

    async def recovered(self, session: str) -> None:
        """Waits until what a crash left of a resumed session is written down."""
        if (runner := self._runners.get(session)) and (
            task := self._tasks.get(session)
        ):
            await _first(runner.settled, task)

    def works_on(self, session: str) -> bool:
        """Whether this process works on the session."""
        return session in self._tasks

    async def is_busy(self, session: str) -> bool:
        """Returns whether a turn must be stopped before the session can be changed.

        The end of a turn is shown before its runner has released the session; the release is waited for.
        """
        if not await self._is_held(session):
            return False
        if await asyncio.to_thread(self._has_work, session):
            return True
        try:
            async with asyncio.timeout(_RELEASE_TIMEOUT_S):
                while await self._is_held(session):  # noqa: ASYNC110 - another process has no event to set
                    await asyncio.sleep(_LOOK_FOR_RELEASE_S)
        except TimeoutError:
            return True
        return False

    async def _is_held(self, session: str) -> bool:
        if self.works_on(session):
            return True
        holder = await asyncio.to_thread(self._app.store.leases.holder, session)
        return holder is not None

    def _has_work(self, session: str) -> bool:
        if self._app.store.log.has_open_turn(session):
            return True
        return bool(read_history(self._app.store, session).waiting)

    @property
    def working(self) -> tuple[str, ...]:
        """The sessions that this process works on."""
        return tuple(self._tasks)

    @property
    def turns(self) -> int:
        """How many sessions this process works on."""
        return len(self._tasks)

    async def idle(self, session: str) -> TurnEnded | None:
        """Waits until the session has nothing to do. Returns the end of its last turn here, or raises what stopped it."""
        while task := self._tasks.get(session):
            await asyncio.shield(task)
        if failure := self._failures.pop(session, None):
            raise failure
        runner = self._runners.get(session)
        return runner.ended if runner else None

    async def all_idle(self) -> None:
        """Waits until no session has anything to do."""
        while self._tasks:
            await asyncio.wait(set(self._tasks.values()))

    async def hold(self, session: str) -> None:
        """Ends the running turn. Queued messages wait until `resume` or the next message."""
        self._wanted.discard(session)
        task = self._tasks.get(session)
        if task is not None:
            self._runners[session].stop()
            await asyncio.wait({task}, timeout=_TURN_STOP_TIMEOUT_S)

    async def park(self) -> set[str]:
        """Abandons turns that wait for a person, as a crash would; whoever resumes them asks again. Returns their sessions."""
        waiting = {
            session: task
            for session, task in self._tasks.items()
            if self._deps.questions.waits(session)
        }
        await cancel_and_wait(*waiting.values(), timeout_s=_TURN_STOP_TIMEOUT_S)
        return set(waiting)

    async def close(self) -> None:
        """Ends the running turns, waits until they are written down, and begins no other."""
        await self._background.close()
        self._wanted.clear()
        await self._waiting_goals.close()
        for session in list(self._tasks):
            self._runners[session].stop()
        if self._tasks:
            await asyncio.wait(self._tasks.values(), timeout=_TURN_STOP_TIMEOUT_S)
        await cancel_and_wait(*self._tasks.values())

    async def _record(
        self,
        session: str,
        *events: Event,
        offer: bool = False,
    ) -> tuple[int, int]:
        """Writes events, all or none, through the runner while it has the session. Returns the first one's cursor."""
        runner = self._runners.get(session)
        journal = runner.journal if runner else None
        if journal is not None:
            # If the turn ends at this moment, they are written without the lease.
            with contextlib.suppress(LeaseLost):
                seqs = await journal.record(*events)
                return journal.epoch, seqs[0]
        return await self._append(session, *events, offer=offer)

    async def _append(
        self, session: str, *events: Event, offer: bool = False
    ) -> tuple[int, int]:
        """Writes events without a lease, as any process may. Returns the first one's cursor."""
        writing = asyncio.ensure_future(
            self._app.writer.write(session, *events, offer=offer)
        )
        rows = await asyncio.shield(writing)
        return rows[0].epoch, rows[0].seq

    def _start(self, session: str, mode: RunnerMode = "run") -> None:
        """Makes sure that a runner looks at the session after this moment."""
        runner = self._runners.get(session)
        if session in self._tasks and runner and runner.journal and not runner.stopping:
            return
        if session not in self._tasks:
            self._runners[session] = Runner(self._deps, session, mode)
            self._start_task(session)
        else:
            self._wanted.add(session)
            self._next_modes[session] = mode

    def _start_task(self, session: str) -> None:
        self._wanted.discard(session)
        self._failures.pop(session, None)
        self._tasks[session] = asyncio.ensure_future(self._drive(session))

    async def _drive(self, session: str) -> None:
        try:
            await self._runners[session].run()
            while session in self._wanted:
                self._wanted.discard(session)
                mode = self._next_modes.pop(session, "run")
                self._runners[session] = Runner(self._deps, session, mode)
                await self._runners[session].run()
        except HermesError as error:
            log.error("session %s stopped: %s", session, error)  # noqa: TRY400 - the message is enough
            self._failures[session] = error
        finally:
            await self._tell_parent(session)
            await self._rest(session)
            del self._tasks[session]
            if session in self._wanted:  # somebody wrote while its end was told
                self._start(session, self._next_modes.pop(session, "run"))
            self._forget()

    def report_end_to(self, child: str, parent: str) -> None:
        """From now on, the end of a session is also written to the log of another one."""
        self._parents[child] = parent

    async def _tell_parent(self, session: str) -> None:
        """Writes how a session ended to the log of the one that it worked for."""
        runner = self._runners.get(session)
        store = self._app.store
        try:
            origin = await store.origin(session)
            parent = self._parents.get(session) or (
                origin.parent if origin.kind == "child" else ""
            )
            if not parent or runner is None or not runner.settled.is_set():
                return
            if session in self._handed_over:
                return
            from hermes.app.child_sessions import ended_row, unreported_ends

            for one in await store.call(unreported_ends, self._app, parent, session):
                await self._record(parent, ended_row(one))
        except StoreError as error:
            log.warning("the end of session %s was not told: %s", session, error)

    async def tell_ends(self, session: str) -> None:
        """Writes down how the children of a session ended whose process was killed before it could."""
        from hermes.app.child_sessions import child_ids, ended_row, unreported_ends

        for child in await asyncio.to_thread(child_ids, self._app, session):
            if not self.works_on(child):
                await self.end_dead_turn(child)
        for one in await asyncio.to_thread(unreported_ends, self._app, session):
            if not self.works_on(one.id):
                await self._record(session, ended_row(one))

    async def _rest(self, session: str) -> None:
        """Waits with the session's goal, if it waits for something. A goal that waits no more is forgotten."""
        runner, goals = self._runners.get(session), self._deps.goals
        if runner is None or goals is None or runner.stopping or runner.goal is None:
            return
        if runner.goal.status == "waiting":
            rest = goals().rest(session, runner.goal)
            self._waiting_goals.begin(session, rest)
        else:
            await self._waiting_goals.end(session)

    def _forget(self) -> None:
        """Drops the runners of idle sessions, oldest first: a process may serve thousands."""
        done = [session for session in self._runners if session not in self._tasks]
        for session in done[: len(done) - _MAX_IDLE_RUNNERS]:
            del self._runners[session]
            self._failures.pop(session, None)


async def _first(event: asyncio.Event, task: "asyncio.Task[None]") -> None:
    """Waits for an event, or for the end of the task that would set it."""
    async with running(event.wait()) as waiting:
        await asyncio.wait({waiting, task}, return_when=asyncio.FIRST_COMPLETED)

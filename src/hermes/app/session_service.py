"""The session service: what every surface calls. Submit, steer, interrupt, answer, watch.

When `submit` returns, the words are on disk; the turn that answers them belongs to the session, not to the caller.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from typing import Any, Literal

from hermes.app.app import App
from hermes.app.approvals import Waiting
from hermes.app.session_log import read_history
from hermes.app.session_runner import Runner, Workshop
from hermes.core.calls import writable
from hermes.errors import AnsweredAlready, HermesError, LeaseLost
from hermes.primitives.tasks import cancel_and_wait, running
from hermes.schema.event import Event
from hermes.schema.events import (
    ApprovalAnswered,
    ApprovalRequested,
    InterruptRequested,
    QuestionAnswered,
    QuestionAsked,
    TurnEnded,
)
from hermes.schema.messages import Image, UserMessage

log = logging.getLogger("hermes.app")

_REMEMBERED = 256  # sessions whose last end is known
_ASKED_AGAIN_S = 20.0  # for a turn to get to a question that was asked before
_PATIENCE = 5.0  # seconds for a turn to end in order

_QUESTIONS = frozenset(
    kind.topic
    for kind in (ApprovalRequested, ApprovalAnswered, QuestionAsked, QuestionAnswered)
)

Delivery = Literal["queue", "steer", "interrupt"]
Verdict = Literal["once", "session", "always", "deny"]


class SessionService:
    """Runs the sessions of this process."""

    def __init__(self, app: App, workshop: Workshop) -> None:
        self._app = app
        self._shop = workshop
        self._runners: dict[str, Runner] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._wanted: set[str] = set()
        self._failures: dict[str, HermesError] = {}

    async def submit(
        self,
        session: str,
        text: str,
        *,
        images: tuple[Image, ...] = (),
        delivery: Delivery = "queue",
        via: str = "",
    ) -> tuple[int, int]:
        """Accepts a message and sees to it that it is answered. Returns its cursor `(epoch, seq)`, on disk."""
        kind: Literal["queue", "steer"] = "steer" if delivery == "steer" else "queue"
        message = UserMessage(
            text=writable(text), images=images, delivery=kind, via=via
        )
        cursor = await self._record(session, message)
        if delivery == "interrupt":
            await self.interrupt(session, by="user")
        self._start(session)
        return cursor

    async def interrupt(self, session: str, *, by: str) -> None:
        """Stops the running turn, wherever it runs. What was queued is still answered."""
        if await self.settle(session):
            return
        runner = self._runners.get(session)
        if runner:
            runner.interrupt()
        await self._record(session, InterruptRequested(by=by))

    async def answer(
        self,
        session: str,
        call_id: str,
        answer: Verdict,
        *,
        by: str,
        shown: str = "",
        reason: str = "",
    ) -> bool:
        """Answers a request for approval, wherever it waits; False when it is not open (any more).

        `shown` is the `approval_hash` of the request the person saw. Raises AnswerRefused if another one is waiting.
        The model reads the `reason` together with a denial.
        """
        answered = ApprovalAnswered(
            call_id=call_id, answer=answer, by=by, shown=shown, reason=writable(reason)
        )
        return await self._settle(session, answered)

    async def reply(self, session: str, call_id: str, text: str, *, by: str) -> bool:
        """Answers a question of a tool, wherever it waits; False when it is not open (any more)."""
        return await self._settle(
            session, QuestionAnswered(call_id=call_id, text=writable(text), by=by)
        )

    async def pending(self, session: str) -> list[ApprovalRequested | QuestionAsked]:
        """The questions of a session that wait for a person, in this process or another."""
        runner = self._runners.get(session)
        if runner and runner.journal:
            return list(runner.journal.history.asked_calls.values())
        history = await asyncio.to_thread(read_history, self._app.store, session)
        return list(history.asked_calls.values())

    async def _settle(
        self, session: str, answered: ApprovalAnswered | QuestionAnswered
    ) -> bool:
        """The log decides: of several answers, also of other processes, the first that is written down counts."""
        place = self._shop.desk.find(session, answered.call_id)
        if place is None:
            elsewhere = await asyncio.to_thread(self._app.store.leases.holder, session)
            waiting = any(
                request.call_id == answered.call_id
                for request in await self.pending(session)
            )
            if not waiting:
                return False
            if not elsewhere:
                place = await self._asked_again(session, answered.call_id)
                if place is None:
                    return False
        try:
            await self._append(session, answered)
        except AnsweredAlready:
            return False
        if place is None:
            return True  # the process that waits reads the log
        runner = self._runners.get(session)
        if runner is None or not await runner.look():
            await asyncio.wait({place}, timeout=_PATIENCE)
        return place.done() and place.result() == answered

    async def _asked_again(self, session: str, call_id: str) -> Waiting | None:
        """Continues a session whose process is gone, asks its question again, and returns the future for the answer.

        None if the question is not asked again: it has expired, or codex, which would have run the call, is gone too.
        """
        self._start(session)
        async with running(self._shop.desk.opened(session, call_id)) as opened:
            await asyncio.wait(
                {opened, self._tasks[session]},
                timeout=_ASKED_AGAIN_S,
                return_when=asyncio.FIRST_COMPLETED,
            )
            return opened.result() if opened.done() else None

    async def resume(self, session: str) -> None:
        """Settles what a crash left, and answers what still waits."""
        self._start(session)

    async def settle(self, session: str) -> bool:
        """Ends the session's open turn if its process is gone, and begins no other. False if there was no such turn.

        Surfaces that show a session call this. Raises when the end can't be written.
        """
        if session in self._tasks or not await asyncio.to_thread(
            self._has_dead_turn, session
        ):
            return False
        if session in self._tasks:  # begun meanwhile; that settles it too
            return False
        runner = self._runners[session] = Runner(self._shop, session)
        runner.stop()
        self._drive_on(session)
        task = self._tasks[session]
        await _first(runner.released, task)  # new words may keep the task busy for long
        if runner.settled.is_set():
            return True
        if failure := self._failures.pop(session, None):
            raise failure
        if task.done() and not task.cancelled():
            task.result()
        return False  # another process was faster

    def _has_dead_turn(self, session: str) -> bool:
        store = self._app.store
        return store.leases.holder(session) is None and store.log.has_open_turn(session)

    async def settled(self, session: str) -> None:
        """Waits until what a crash left of the session is written down, if it was resumed."""
        if (runner := self._runners.get(session)) and (
            task := self._tasks.get(session)
        ):
            await _first(runner.settled, task)

    def works_on(self, session: str) -> bool:
        """Whether this process has something to do in the session."""
        return session in self._tasks

    @property
    def turns(self) -> int:
        """How many sessions this process has something to do in."""
        return len(self._tasks)

    async def idle(self, session: str) -> TurnEnded | None:
        """Waits until the session has nothing left to do; how its last turn here ended. Raises what stopped it."""
        while task := self._tasks.get(session):
            await asyncio.shield(task)
        if failure := self._failures.pop(session, None):
            raise failure
        runner = self._runners.get(session)
        return runner.ended if runner else None

    async def all_idle(self) -> None:
        """Waits until no session has anything left to do."""
        while self._tasks:
            await asyncio.wait(set(self._tasks.values()))

    async def watch(
        self, session: str, *, after: int = 0
    ) -> AsyncIterator[dict[str, Any]]:
        """Everything of a session from a cursor on, as envelopes: first what was, then what happens, without end.

        Rows come from the log, in order, without holes or doubles; the bus only says when to look. Transient events
        come as they are published. Questions of sessions that work for this one come too, under their own id.
        """
        last = after
        async with self._app.bus.stream("**", 10_000) as live:
            async for row in _rows(self._app, session, last):
                yield self._app.envelope(row)
                last = row.seq
            async for event in live:
                if event["type"] == "gap" or (
                    event.get("session_id") == session and event.get("seq", 0) > last
                ):
                    async for row in _rows(self._app, session, last):
                        yield self._app.envelope(row)
                        last = row.seq
                elif (event.get("session_id") == session and "seq" not in event) or (
                    event.get("root_session_id") == session
                    and event["type"] in _QUESTIONS
                ):
                    yield dict(event)

    async def hold(self, session: str) -> None:
        """Ends the running turn. What waits behind it goes on waiting, until `resume` or the next words."""
        self._wanted.discard(session)
        task = self._tasks.get(session)
        if task is not None:
            self._runners[session].stop()
            await asyncio.wait({task}, timeout=_PATIENCE)

    async def park(self) -> set[str]:
        """Lets go of turns that wait for a person, as a crash would: whoever resumes them asks once more. Which."""
        waiting = {
            session: task
            for session, task in self._tasks.items()
            if self._shop.desk.waits(session)
        }
        await cancel_and_wait(*waiting.values(), timeout_s=_PATIENCE)
        return set(waiting)

    async def close(self) -> None:
        """Ends what runs, waits for it to be written down, and begins nothing new."""
        self._wanted.clear()
        for session in list(self._tasks):
            self._runners[session].stop()
        if self._tasks:
            await asyncio.wait(self._tasks.values(), timeout=_PATIENCE)
        await cancel_and_wait(*self._tasks.values())

    async def _record(
        self, session: str, event: UserMessage | InterruptRequested
    ) -> tuple[int, int]:
        """Writes the event, through the runner while it has the session. Returns its cursor."""
        runner = self._runners.get(session)
        journal = runner.journal if runner else None
        if journal is not None:
            with contextlib.suppress(
                LeaseLost
            ):  # the turn ended at this very moment: written without it, then
                (seq,) = await journal.record(event)
                return journal.epoch, seq
        return await self._append(session, event)

    async def _append(self, session: str, event: Event) -> tuple[int, int]:
        """Writes the event as any process may, whoever has the session. Returns its cursor."""
        rows = await asyncio.shield(
            asyncio.wrap_future(self._app.store.log.submit(session, event))
        )
        self._app.recorded(session, rows)
        return rows[0].epoch, rows[0].seq

    def _start(self, session: str) -> None:
        """Sees to it that a runner looks at the session after this moment."""
        runner = self._runners.get(session)
        if session in self._tasks and runner and runner.journal and not runner.stopping:
            return
        if session not in self._tasks:
            self._runners[session] = Runner(self._shop, session)
            self._drive_on(session)
        else:
            self._wanted.add(session)

    def _drive_on(self, session: str) -> None:
        self._wanted.add(session)
        self._failures.pop(session, None)
        self._tasks[session] = asyncio.ensure_future(self._drive(session))

    async def _drive(self, session: str) -> None:
        try:
            while session in self._wanted:
                self._wanted.discard(session)
                await self._runners[session].run()
                if session in self._wanted:
                    self._runners[session] = Runner(self._shop, session)
        except HermesError as error:
            log.error("session %s stopped: %s", session, error)  # noqa: TRY400 - the words say it all
            self._failures[session] = error
        finally:
            del self._tasks[session]
            self._forget()

    def _forget(self) -> None:
        """Drops what is remembered of sessions that are done, the oldest first: a process may serve thousands."""
        done = [session for session in self._runners if session not in self._tasks]
        for session in done[: len(done) - _REMEMBERED]:
            del self._runners[session]
            self._failures.pop(session, None)


async def _first(event: asyncio.Event, task: "asyncio.Task[None]") -> None:
    """Waits for an event, or for the end of the task that would set it."""
    async with running(event.wait()) as waiting:
        await asyncio.wait({waiting, task}, return_when=asyncio.FIRST_COMPLETED)


async def _rows(app: App, session: str, after: int) -> AsyncIterator[Any]:
    while page := await asyncio.to_thread(app.store.log.events, session, after=after):
        for row in page:
            yield row
        after = page[-1].seq

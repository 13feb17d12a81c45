"""Runs the rows of a batch, a few at a time. Each is an ordinary session in a folder of its own."""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable

import msgspec

from hermes.app.agent import Agent
from hermes.app.agent_pool import AgentPool, SessionLimits, session_cap
from hermes.app.app import App
from hermes.app.batches.allowance import Allowance
from hermes.app.batches.batch import Batch, Batches
from hermes.app.batches.dataset import BatchRow
from hermes.app.batches.row_state import RowState, row_state, row_states
from hermes.app.session_journal import read_history
from hermes.app.unattended_turn import answer_within
from hermes.errors import HermesError, reason_of
from hermes.primitives.tasks import cancel_and_wait
from hermes.schema.events import SessionCreated, SessionScored, SessionTitled
from hermes.schema.messages import AssistantMessage
from hermes.settings import Secrets
from hermes.text.translation import translator
from hermes.tools.toolsets import BATCH_SURFACE

t = translator(__name__)


CONTINUE = "Hermes was stopped while you worked on this. Go on where you were, and finish the task."  # not translated
_FATAL = ("auth", "forbidden", "billing", "not_found")
"""Failures that every other row would meet too."""
_MAX_TITLE_CHARS = 80
_GRANT_INTERVAL_S = 0.2  # between looks whether a running row gave something back


class BatchProgress(msgspec.Struct, frozen=True, kw_only=True):
    """The progress of a batch."""

    rows: int
    done: int = 0
    failed: int = 0
    running: int = 0
    finished_now: int = 0
    """Rows that this run has finished."""
    cost_usd: float = 0.0
    tokens: int = 0
    unpriced_calls: int = 0


class BatchRunner:
    """A batch that this process runs. `on_row` is called with each row that has ended, `on_change` whenever a number has."""

    def __init__(
        self,
        app: App,
        secrets: Secrets,
        batch: Batch,
        *,
        retry: bool = False,
        on_row: Callable[[RowState], None] = lambda _: None,
        on_change: Callable[[BatchProgress], None] = lambda _: None,
    ) -> None:
        self._app = app
        self._batch = batch
        self._batches = Batches(app.home)
        self._pool = AgentPool(app, secrets)
        self._retry = retry
        self._on_row, self._on_change = on_row, on_change
        self._allowance = Allowance(batch.options)
        self._rows: list[BatchRow] = []
        self._states: dict[int, RowState] = {}
        self._running: dict[str, Agent] = {}
        self._cut: set[int] = set()
        """Rows that used up their share of the budget once."""
        self._finished_now = 0
        self._stopping = asyncio.Event()
        self.stopped_by = ""
        """Why the batch ended early; empty if it did not."""

    @property
    def states(self) -> list[RowState]:
        """Every row as this run knows it."""
        return list(self._states.values())

    @property
    def progress(self) -> BatchProgress:
        """The progress so far."""
        states = self._states.values()
        return BatchProgress(
            rows=self._batch.rows,
            done=sum(one.status == "done" for one in states),
            failed=sum(one.is_over and one.status != "done" for one in states),
            running=len(self._running),
            finished_now=self._finished_now,
            cost_usd=sum(one.cost_usd + one.earlier_usd for one in states),
            tokens=sum(one.tokens + one.earlier_tokens for one in states),
            unpriced_calls=sum(one.unpriced_calls for one in states),
        )

    async def run(self) -> BatchProgress:
        """Runs every row that needs it. Raises HermesError if there is no model at all."""
        self._rows = await asyncio.to_thread(self._batches.rows, self._batch)
        states = await asyncio.to_thread(row_states, self._app, self._batch)
        self._states = {one.number: one for one in states}
        for one in states:
            self._allowance.count(one)
        async with self._pool.agent(self._limits("", ())) as agent:
            agent.describe()  # no row begins if there is no model
            self._on_change(self.progress)
            await self._run_all()
        return self.progress

    async def _run_all(self) -> None:
        queue = deque(filter(self._needs_work, self._states.values()))
        workers = [
            asyncio.ensure_future(self._work(queue))
            for _ in range(self._batch.options.workers)
        ]
        try:
            await asyncio.gather(*workers)
        finally:
            await cancel_and_wait(*workers)

    def _needs_work(self, state: RowState) -> bool:
        if state.needs_work(retry=self._retry):
            return True
        row = self._rows[state.number - 1]
        is_checked = row.expected or row.check or self._batch.options.check
        return state.status == "done" and state.score is None and bool(is_checked)

    async def stop(self, reason: str) -> None:
        """Ends the running turns in order and begins no other row. What they were doing goes on with `resume`."""
        self.stopped_by = self.stopped_by or reason
        self._stopping.set()
        for session, agent in list(self._running.items()):
            with contextlib.suppress(HermesError):
                await agent.service.hold(session)

    async def _work(self, queue: deque[RowState]) -> None:
        """One worker: takes one row after another."""
        while queue and not self._stopping.is_set():
            state = queue.popleft()
            used = self._allowance.used_by(state) if not state.is_over else 0.0
            cap = await self._grant(state.number, used)
            if cap is None or self._stopping.is_set():
                self._allowance.release(state.number)
                return
            ended = await self._run_row(state, cap)
            self._allowance.settle(state.number, used, ended)
            self._states[state.number] = ended
            self._on_change(self.progress)
            if ended.is_over:
                await self._row_is_over(ended)
            elif not self._stopping.is_set():
                await self._row_was_cut(ended, queue)

    async def _row_is_over(self, ended: RowState) -> None:
        self._finished_now += 1
        self._on_row(ended)
        self._on_change(self.progress)
        if ended.failure in _FATAL and not self._stopping.is_set():
            why = t.logged(
                "row {number} failed, and so would the others: {detail}",
                number=ended.number,
                detail=ended.detail,
            )
            await self.stop(why)

    async def _row_was_cut(self, ended: RowState, queue: deque[RowState]) -> None:
        """Puts a row back that used up its share of the budget. The second time it had all that was left."""
        if ended.number in self._cut:
            if self._batch.options.shares_budget:
                await self.stop(self._budget_is_spent)
            return
        self._cut.add(ended.number)
        queue.append(ended)

    @property
    def _budget_is_spent(self) -> str:
        budget = self._batch.options.budget
        if self._allowance.is_untouched:
            return t.logged(
                "the budget of {budget} is too small for one model call", budget=budget
            )
        return t.logged("the budget of {budget} is used up", budget=budget)

    async def _grant(self, number: int, used: float) -> str | None:
        """The cap of the next row. Waits while other rows hold all that is left."""
        while not self._stopping.is_set():
            idle = self._batch.options.workers - len(self._running)
            if number in self._cut:  # it needs all that is left
                idle = 0 if self._running else 1
            cap = self._allowance.grant(number, used, idle) if idle else None
            if cap is not None:
                return cap
            if self._allowance.is_spent and not self._running:
                self.stopped_by = self.stopped_by or self._budget_is_spent
                return None
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_GRANT_INTERVAL_S):
                    await self._stopping.wait()
        return None

    def _limits(self, cap: str, toolsets: tuple[str, ...]) -> SessionLimits:
        options = self._batch.options
        return SessionLimits(
            model=options.model,
            approvals=options.approvals,
            budget=session_cap(cap, self._app.settings.budget.per_session),
            toolsets=toolsets,
            max_steps=options.max_steps,
        )

    async def _run_row(self, state: RowState, cap: str) -> RowState:
        """Runs a row, or continues it. Whatever happens, returns the state of the row."""
        row = self._rows[state.number - 1]
        is_done = state.status == "done"  # and only has no score yet
        attempt = state.attempt + (state.is_over and not is_done)
        session = self._batch.session(state.number, attempt)
        toolsets = self._batch.toolsets_of(state.number, row)
        async with self._pool.agent(self._limits(cap, toolsets)) as agent:
            self._running[session] = agent
            self._on_change(self.progress)
            try:
                if not is_done:
                    await self._answer(agent, row, state.number, attempt)
                return await self._scored(agent, row, state, attempt)
            except (HermesError, OSError) as error:
                return RowState(
                    number=state.number,
                    session=session,
                    attempt=attempt,
                    status="failed",
                    detail=reason_of(error),
                )
            finally:
                del self._running[session]

    async def _scored(
        self, agent: Agent, row: BatchRow, before: RowState, attempt: int
    ) -> RowState:
        """The state of a row that has ended, with its score."""
        ended = await self._look(before, attempt)
        if ended.status != "done" or ended.score is not None:
            return ended
        try:
            await self._score(agent, row, ended)
        except HermesError as error:
            return msgspec.structs.replace(
                ended, detail=f"not scored: {reason_of(error)}"
            )
        return await self._look(before, attempt)

    async def _look(self, before: RowState, attempt: int) -> RowState:
        found = await asyncio.to_thread(
            row_state, self._app, self._batch, before.number, attempt
        )
        usd, tokens = before.earlier_usd, before.earlier_tokens
        if attempt != before.attempt:
            usd, tokens = usd + before.cost_usd, tokens + before.tokens
        return msgspec.structs.replace(found, earlier_usd=usd, earlier_tokens=tokens)

    async def _answer(
        self, agent: Agent, row: BatchRow, number: int, attempt: int
    ) -> None:
        """Brings the session of a row to the end of its turn, wherever an earlier process left it."""
        session = self._batch.session(number, attempt)
        await asyncio.to_thread(self._begin, row, number, attempt)
        service, store = agent.service, self._app.store
        await service.end_dead_turn(session)
        history = await asyncio.to_thread(read_history, store, session)
        text: str | None = CONTINUE if history.messages else row.prompt
        if history.waiting or await asyncio.to_thread(store.leases.holder, session):
            text = None  # a message waits, or another process works on it
        limit_s = self._batch.options.time_limit_s
        await answer_within(service, session, text, limit_s, by=BATCH_SURFACE)

    def _begin(self, row: BatchRow, number: int, attempt: int) -> None:
        """Creates the session, unless an earlier process has."""
        app, session = self._app, self._batch.session(number, attempt)
        folder = self._batches.make_workspace(self._batch, number, attempt)
        if not app.store.sessions.missing([session]):
            return
        created = SessionCreated(surface=BATCH_SURFACE, cwd=str(folder))
        app.begin(created, session)
        words = " ".join(row.prompt.split())[:_MAX_TITLE_CHARS]
        title = f"{self._batch.name} {number}: {words}"
        app.record(session, SessionTitled(title=title, by="hermes"))

    async def _score(self, agent: Agent, row: BatchRow, ended: RowState) -> None:
        """Judges a finished row: by the command that checks it, or by the answer that was expected."""
        command = row.check or self._batch.options.check
        store, session = self._app.store, ended.session
        if command:
            folder = self._batches.workspace(self._batch, ended.number, ended.attempt)
            check = await agent.engine(session).verify(session, folder, command)
            if check.outcome == "not_run":
                raise HermesError(
                    t.later("The check did not run: {detail}.", detail=check.detail)
                )
            found = float(check.outcome == "passed")
            scored = SessionScored(score=found, by="check", detail=check.output[-2000:])
        elif row.expected:
            answer = await asyncio.to_thread(
                store.log.latest, session, AssistantMessage.topic
            )
            text = answer.text if isinstance(answer, AssistantMessage) else ""
            is_there = _folded(row.expected) in _folded(text)
            scored = SessionScored(score=float(is_there), by="expected")
        else:
            return
        await asyncio.to_thread(self._app.record, session, scored)


def _folded(text: str) -> str:
    """The text without differences that don't matter: case, and how many spaces."""
    return " ".join(text.casefold().split())

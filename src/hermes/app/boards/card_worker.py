"""One run of a card: a separate session, with the card's agent, budget and time limit, until the card is closed."""

import asyncio
import contextlib

import msgspec

from hermes.app.agent import Agent
from hermes.app.agent_pool import AgentPool, SessionLimits
from hermes.app.app import App
from hermes.app.boards.board_service import Boards
from hermes.app.boards.card_context import reminder, task_message
from hermes.app.boards.card_rules import RunEnding
from hermes.app.boards.claims import ClaimedCard
from hermes.app.boards.workspaces import CardWorkspace, prepare_workspace
from hermes.app.engine import ApprovalMode
from hermes.app.unattended_turn import answer_within
from hermes.errors import (
    HermesError,
    NotFound,
    Refused,
    SettingsError,
    in_sentences,
    reason_of,
)
from hermes.schedules.tokens import length
from hermes.schema.boards import (
    KANBAN_SURFACE,
    PLAIN_AGENT,
    Card,
    CardRun,
    CardRunStarted,
)
from hermes.schema.events import (
    SessionAgentChosen,
    SessionCreated,
    SessionTitled,
    TurnEnded,
)
from hermes.settings.boards import BoardSettings
from hermes.store.boards import BoardTransaction
from hermes.text.translation import translator

t = translator(__name__)


MAX_NUDGES = 2
_QUOTA = ("rate_limited", "billing")
HERMES_STOPPED = t.logged("Hermes was stopped while it ran")


class CardWorker:
    """A run in progress."""

    def __init__(
        self,
        app: App,
        boards: Boards,
        agents: AgentPool,
        claimed: ClaimedCard,
        settings: BoardSettings,
    ) -> None:
        self._app = app
        self._boards = boards
        self._agents = agents
        self._settings = settings
        self.card: Card = claimed.card
        self.run_id = claimed.run.id
        self._run: CardRun = claimed.run
        self._agent: Agent | None = None
        self._stop = ""
        self.session = ""

    @property
    def is_asking(self) -> bool:
        """Whether the worker waits for a person's answer."""
        agent = self._agent
        return agent is not None and agent.questions.waits(self.session)

    async def stop(self, reason: str) -> None:
        """Interrupts the worker. Its run ends as stopped."""
        self._stop = self._stop or reason
        if self._agent is not None and self.session:
            await self._agent.service.interrupt(self.session, by="kanban")

    async def work(self) -> RunEnding:
        """Runs the card. A failure becomes its ending; only a cancellation raises."""
        try:
            workspace = await asyncio.to_thread(self._prepare)
        except (HermesError, OSError) as error:
            return _blocked(error)
        limits = SessionLimits(
            model=self.card.model,
            approvals=msgspec.convert(self._settings.approvals, ApprovalMode),
            boards=self._settings,
        )
        if self._stop:
            return RunEnding(outcome="stopped", reason=self._stop)
        async with self._agents.agent(limits) as agent:
            self._agent = agent
            try:
                return await self._run_in(agent, workspace)
            except asyncio.CancelledError:
                await self._give_up(agent)
                return await self._closing() or RunEnding(
                    outcome="stopped", reason=HERMES_STOPPED, keeps=True
                )
            except HermesError as error:
                return await self._closing() or RunEnding(
                    outcome="failed", reason=in_sentences(error)
                )
            finally:
                self._agent = None

    def _prepare(self) -> CardWorkspace:
        board = self._boards.read(lambda reader: reader.board(self.card.board))
        return prepare_workspace(self._app, self.card, board)

    async def _give_up(self, agent: Agent) -> None:
        """Ends the turn cleanly, so that nothing of it continues without this process."""
        if self.session:
            with contextlib.suppress(HermesError, asyncio.CancelledError):
                await asyncio.shield(agent.service.hold(self.session))

    async def _run_in(self, agent: Agent, workspace: CardWorkspace) -> RunEnding:
        await self._end_earlier(agent)
        agent.describe()
        try:
            await asyncio.to_thread(self._begin, agent, workspace)
        except (NotFound, Refused, SettingsError) as error:
            return _blocked(error)
        text = await asyncio.to_thread(
            task_message, self._app, self._boards, self.card, self._run
        )
        limit_s = self.card.time_limit or self._settings.time_limit
        deadline = asyncio.get_running_loop().time() + limit_s
        nudges = self.card.goal_max_turns or 20 if self.card.goal_mode else MAX_NUDGES
        for _ in range(nudges + 1):
            if self._stop:
                return RunEnding(outcome="stopped", reason=self._stop)
            left_s = max(0.0, deadline - asyncio.get_running_loop().time())
            ended, in_time = await answer_within(
                agent.service, self.session, text, left_s, by="kanban"
            )
            ending = await self._ending(ended, in_time=in_time, limit_s=limit_s)
            if ending is not None:
                return ending
            text = reminder(self._run)
        reason = t.logged(
            "it stopped working without closing its card, although it was reminded {count} time",
            "it stopped working without closing its card, although it was reminded {count} times",
            count=nudges,
        )
        return RunEnding(outcome="unclosed", reason=reason)

    async def _end_earlier(self, agent: Agent) -> None:
        """Cleans up after the previous run if its process vanished: ends its turn and the programs that still run."""
        earlier = await asyncio.to_thread(
            self._boards.read, lambda reader: reader.runs(self.card.id, 2)
        )
        for run in earlier:
            if run.id != self.run_id and run.session:
                with contextlib.suppress(HermesError):
                    await agent.service.end_dead_turn(run.session)

    def _begin(self, agent: Agent, workspace: CardWorkspace) -> None:
        """Starts the session, and records that it works on the card before it does."""
        app, name = self._app, self._run.agent
        if name != PLAIN_AGENT:  # before there is a session
            agent.prompt_files.find(workspace.folder, "agent", name)
        created = SessionCreated(
            surface=KANBAN_SURFACE, cwd=str(workspace.folder), parent=self.card.origin
        )
        session = app.ids.session()
        run = self._boards.change(lambda tx: self._belongs(tx, session, workspace))
        self._stop = self._stop or run.stop
        app.begin(created, session)
        app.record(session, SessionTitled(title=self.card.title[:200], by="hermes"))
        if name != PLAIN_AGENT:
            file = agent.prompt_files.find(workspace.folder, "agent", name)
            agent.check_agent(session, file)
            app.record(session, SessionAgentChosen(agent=file.name))
        self.session = session

    def _belongs(
        self, tx: BoardTransaction, session: str, workspace: CardWorkspace
    ) -> CardRun:
        run, card = tx.run(self.run_id), tx.card(self.card.id)
        if run is None or run.outcome != "running" or card is None:
            raise HermesError(t.later("The run was ended by another process."))
        tx.put_run(
            msgspec.structs.replace(
                run, session=session, workspace=str(workspace.folder)
            )
        )
        if workspace.branch:
            tx.put(msgspec.structs.replace(card, branch=workspace.branch))
        tx.note(
            CardRunStarted(
                board=run.board, card=run.card, run=run.id, agent=run.agent, session=session
            )
        )  # fmt: skip
        return run

    async def _closing(self) -> RunEnding | None:
        """Returns how the worker closed its card, if it did."""
        run = await asyncio.to_thread(
            self._boards.read, lambda reader: reader.run(self.run_id)
        )
        if run is None or not run.closing:
            return None
        return msgspec.json.decode(run.closing, type=RunEnding)

    async def _ending(
        self, ended: TurnEnded | None, *, in_time: bool, limit_s: float
    ) -> RunEnding | None:
        """Returns how the run ended with this turn; None if the worker should be reminded of its card."""
        if closed := await self._closing():
            return closed
        if self._stop:
            return RunEnding(outcome="stopped", reason=self._stop)
        if not in_time:
            reason = t.logged("it took longer than {time}", time=length(limit_s))
            return RunEnding(outcome="timed_out", reason=reason)
        return _ending_of(ended)


def _ending_of(ended: TurnEnded | None) -> RunEnding | None:
    """Returns how a run ended whose worker did not close its card; None if the worker merely finished its turn."""
    if ended is None:
        reason = t.logged("it ended without a turn")
        return RunEnding(outcome="failed", reason=reason)
    if ended.reason == "done":
        return None
    detail = ended.detail or ended.reason
    if ended.reason == "interrupted":
        reason = t.logged("stopped in its session by a person")
        return RunEnding(outcome="stopped", reason=reason)
    if ended.reason == "budget" or ended.reason == "crashed":  # noqa: PLR1714 - narrows
        return RunEnding(outcome=ended.reason, reason=detail)
    is_quota = ended.failure in _QUOTA
    return RunEnding(outcome="quota" if is_quota else "failed", reason=detail)


def _blocked(error: Exception) -> RunEnding:
    """Returns the ending for a card that can't start at all. It waits for a person, because a retry would not help."""
    return RunEnding(outcome="blocked", reason=reason_of(error), kind="capability")

"""One run of a job: its own session, with its own caps and tools. Nobody can be asked, so calls that need an approval are
denied."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Literal, NamedTuple

from hermes.app.agent import Agent
from hermes.app.agent_pool import AgentPool, SessionLimits
from hermes.app.app import App
from hermes.app.schedules.jobs import answer_of, refused_calls
from hermes.app.unattended_turn import answer_within
from hermes.errors import HermesError, in_sentences
from hermes.schedules.tokens import length
from hermes.schema.events import SessionCreated, SessionTitled, TurnEnded
from hermes.schema.schedules import NOWHERE, Instant, Job
from hermes.settings import Secrets
from hermes.text.translation import translator

t = translator(__name__)

SILENT = "[SILENT]"
"""What a job answers when there is nothing to deliver."""

_TASK = (
    "You were started by a schedule ({schedule}); nobody is there to answer questions or to approve anything. Do the "
    "task to its end. Your answer is the result{where}. If there is nothing worth telling, answer with exactly "
    f"{SILENT}\n\n"  # not translated
)


class JobOutcome(NamedTuple):
    """How a run ended, and its answer."""

    state: Literal["done", "failed"]
    reason: str = ""
    text: str = ""


class JobRun:
    """A run in progress."""

    def __init__(self, app: App, secrets: Secrets, job: Job, instant: Instant) -> None:
        self._app = app
        self._secrets = secrets
        self._job = job
        self._instant = instant
        self.session = ""

    async def run(self, began: Callable[[str], Awaitable[None]]) -> JobOutcome:
        """Runs the job to its end. `began` receives the session. A failure is the outcome."""
        job = self._job
        if job.cwd and not await asyncio.to_thread(Path(job.cwd).is_dir):
            reason = t.logged("its folder {folder} is gone", folder=job.cwd)
            return JobOutcome("failed", reason)
        limits = SessionLimits(
            model=job.model,
            approvals=self._app.settings.schedules.approvals,
            budget=job.budget,
            toolsets=job.toolsets,
        )
        async with AgentPool(self._app, self._secrets).agent(limits) as agent:
            try:
                agent.describe()
                self.session = await asyncio.to_thread(self._begin)
                await began(self.session)
                return await self._work(agent)
            except HermesError as error:
                return JobOutcome("failed", in_sentences(error))

    def _begin(self) -> str:
        session = self._app.begin(
            SessionCreated(surface="cron", cwd=self._job.cwd or str(Path.home()))
        ).session
        self._app.record(session, SessionTitled(title=self._job.name, by="hermes"))
        return session

    async def _work(self, agent: Agent) -> JobOutcome:
        job, service = self._job, agent.service
        where = (
            "" if job.deliver == NOWHERE else f" and is delivered to {job.deliver}"
        )  # not translated
        task = _TASK.format(schedule=job.schedule, where=where) + job.prompt
        ended, in_time = await answer_within(
            service, self.session, task, job.timeout, by="schedule"
        )
        if not in_time:
            text, _ = await asyncio.to_thread(self._answer)
            reason = t.logged(
                "stopped: it took longer than {time}", time=length(job.timeout)
            )
            return JobOutcome("failed", reason, text)
        text, denied = await asyncio.to_thread(self._answer)
        return _outcome(ended, text, denied)

    def _answer(self) -> tuple[str, int]:
        """The last answer of the session, and how many calls were denied because nobody could be asked."""
        return answer_of(self._app, self.session), refused_calls(
            self._app, self.session
        )


def _outcome(ended: TurnEnded | None, text: str, denied: int) -> JobOutcome:
    refused = ""
    if denied:
        refused = t.logged(
            "{count} call was not made: nobody was there to approve it",
            "{count} calls were not made: nobody was there to approve them",
            count=denied,
        )
    if ended is None:
        return JobOutcome("failed", t.logged("it ended without a turn"), text)
    if ended.reason == "done":
        return JobOutcome("done", refused, text)
    return JobOutcome(
        "failed",
        ". ".join(part for part in (ended.detail or ended.reason, refused) if part),
        text,
    )

"""One run of a job: its own session, with its own caps and tools. Nobody can be asked, so calls that need an approval are
denied."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from hermes.app.agent import Agent
from hermes.app.app import App
from hermes.app.schedules.jobs import answer_of, refused_calls
from hermes.errors import HermesError, in_sentences
from hermes.schedules.tokens import length
from hermes.schema.events import SessionCreated, SessionTitled, TurnEnded
from hermes.schema.schedules import NOWHERE, Instant, Job
from hermes.settings import Secrets, Settings
from hermes.tools.toolsets import TOOLSETS

SILENT = "[SILENT]"
"""What a job answers when there is nothing to deliver."""

_JOB_STOP_TIMEOUT_S = 30.0  # after the time of the job was up
_TASK = (
    "You were started by a schedule ({schedule}); nobody is there to answer questions or to approve anything. Do the "
    "task to its end. Your answer is the result{where}. If there is nothing worth telling, answer with exactly "
    f"{SILENT}\n\n"
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
            return JobOutcome("failed", f"its folder {job.cwd} is gone")
        app = self._app.with_settings(_settings_of(self._app.settings, job))
        agent = Agent(
            app,
            self._secrets,
            approvals=app.settings.schedules.approvals,
            model=job.model,
        )
        try:
            agent.describe()
            self.session = await asyncio.to_thread(self._begin)
            await began(self.session)
            return await self._work(agent)
        except HermesError as error:
            return JobOutcome("failed", in_sentences(error))
        finally:
            await agent.close()

    def _begin(self) -> str:
        session = self._app.begin(
            SessionCreated(surface="cron", cwd=self._job.cwd or str(Path.home()))
        ).session
        self._app.record(session, SessionTitled(title=self._job.name, by="hermes"))
        return session

    async def _work(self, agent: Agent) -> JobOutcome:
        job, service = self._job, agent.service
        where = "" if job.deliver == NOWHERE else f" and is delivered to {job.deliver}"
        await service.submit(
            self.session, _TASK.format(schedule=job.schedule, where=where) + job.prompt
        )
        working = asyncio.ensure_future(service.idle(self.session))
        done, _ = await asyncio.wait({working}, timeout=job.timeout)
        if not done:
            await service.interrupt(self.session, by="schedule")
            await asyncio.wait({working}, timeout=_JOB_STOP_TIMEOUT_S)
            working.cancel()
            text, _ = await asyncio.to_thread(self._answer)
            return JobOutcome(
                "failed", f"stopped: it took longer than {length(job.timeout)}", text
            )
        ended = await working
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
        calls = "1 call was" if denied == 1 else f"{denied} calls were"
        refused = f"{calls} not made: nobody was there to approve {'it' if denied == 1 else 'them'}"
    if ended is None:
        return JobOutcome("failed", "it ended without a turn", text)
    if ended.reason == "done":
        return JobOutcome("done", refused, text)
    return JobOutcome(
        "failed",
        ". ".join(part for part in (ended.detail or ended.reason, refused) if part),
        text,
    )


def _settings_of(settings: Settings, job: Job) -> Settings:
    """The settings with the caps and the tools of the job."""
    budget, tools = settings.budget, settings.tools
    if job.budget:
        budget = msgspec.structs.replace(budget, per_session=job.budget)
    if job.toolsets:
        others = tuple(one.name for one in TOOLSETS if one.name not in job.toolsets)
        tools = msgspec.structs.replace(
            tools, enabled=job.toolsets, disabled=(*tools.disabled, *others)
        )
    return msgspec.structs.replace(settings, budget=budget, tools=tools)

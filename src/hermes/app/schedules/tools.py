"""The tools `schedules` and `schedule`. Creating a job needs an approval, which spells out what the job means. A job
can't create jobs. A job's result goes to the chat or session in which the job was created, or nowhere."""

import asyncio
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from msgspec import Meta

from hermes.app.app import App
from hermes.app.schedules.delivery import delivery_target
from hermes.app.schedules.jobs import JobBook, JobDraft
from hermes.core.ports import Tool, ToolContext
from hermes.errors import HermesError, ToolFailed
from hermes.schedules.due_and_missed import following
from hermes.schedules.time_zones import on_the_clock
from hermes.schedules.tokens import length
from hermes.schema.schedules import Instant, Job
from hermes.schema.tool_spec import ToolResult
from hermes.text.translation import translator
from hermes.tools.tool import tool

t = translator(__name__)

_BY_AGENT = t.logged("by the agent")
_MAX_JOBS = 200  # that were created by agents


def schedule_tools(app: App, surface: str) -> tuple[Tool, ...]:
    """The tools of a session; a job has none."""
    made = ScheduleTools(app)
    return () if surface == "cron" else (made.schedules, made.schedule)


def _about(owner: Any, arguments: Mapping[str, Any]) -> str:
    return owner.describe_call(arguments) if isinstance(owner, ScheduleTools) else ""


class ScheduleTools:
    """The tools of one session."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._book = JobBook(app)

    @tool("schedules", effect="read")
    def schedules(self) -> ToolResult:
        """Lists the jobs: id, name, schedule, next run, how the last one ended."""
        return ToolResult(
            text="\n".join(map(self._line, self._book.store.jobs()))
            or "There are no jobs."
        )

    @tool("schedule", effect="other", about=_about)
    async def schedule(
        self,
        context: ToolContext,
        action: Literal["add", "remove", "pause", "resume"],
        when: Annotated[
            str,
            Meta(
                description="`every weekday at 9:00`, `in 20 minutes`, `tomorrow at 17:30`, `0 9 * * 1-5`"
            ),
        ] = "",
        task: Annotated[
            str,
            Meta(
                description="For add: all that an agent with a fresh context needs to know."
            ),
        ] = "",
        job: Annotated[
            str, Meta(description="For remove, pause, resume: its id.")
        ] = "",
        deliver: Annotated[
            Literal["here", "none"], Meta(description="Where the result goes.")
        ] = "here",
    ) -> ToolResult:
        """Makes a job: a task that an agent does at certain times, also when nobody is there. The user is asked."""
        try:
            draft = self._draft(context, when, task, deliver)
            return ToolResult(
                text=await asyncio.to_thread(self._do, action, job, draft)
            )
        except HermesError as error:
            raise ToolFailed(error.message, hint=error.hint) from error

    def describe_call(self, arguments: Mapping[str, Any]) -> str:
        """What a call would do, for the person who decides about it."""
        try:
            if arguments.get("action") != "add":
                job = self._book.store.find(str(arguments.get("job", "")))
                return (
                    f"{arguments.get('action')} the job {job.name!r} ({job.schedule})"
                )
            draft = JobDraft(
                schedule=str(arguments.get("when", "")),
                prompt=str(arguments.get("task", "")),
            )
            made = self._book.preview(draft)
        except HermesError as error:
            return f"(this would fail: {error.message})"
        planned = following(made, self._app.clock.now())
        first = (
            f"the first run is on {_local(made, planned)}"
            if planned
            else "it never runs"
        )
        cap = f"at most {made.budget}" if made.budget else "no limit"
        return f"a job, {made.schedule}; {first} ({made.zone}); {cap}, {length(made.timeout)} at most"

    def _draft(
        self, context: ToolContext, when: str, task: str, deliver: str
    ) -> JobDraft:
        target = (
            delivery_target(self._app, context.session) if deliver == "here" else "none"
        )
        return JobDraft(
            schedule=when,
            prompt=task,
            deliver=target,
            cwd=str(context.cwd),
            by=context.session,
        )

    def _do(self, action: str, job: str, draft: JobDraft) -> str:
        match action:
            case "remove":
                return f"Job {self._book.remove(job).id} is removed."
            case "pause":
                return f"Job {self._book.pause(job, why=_BY_AGENT).id} is paused."
            case "resume":
                found, planned = self._book.resume(job)
                return f"Job {found.id} runs again, next on {_local(found, planned)}."
            case _:
                return self._add(draft)

    def _add(self, draft: JobDraft) -> str:
        if (
            sum(job.by not in ("user", "import") for job in self._book.store.jobs())
            >= _MAX_JOBS
        ):
            raise ToolFailed(
                f"There are {_MAX_JOBS} jobs of agents already.",
                hint="Remove some first.",
            )
        made, planned = self._book.add(draft)
        when = (
            f"; it runs next on {_local(made, planned)} ({made.zone})"
            if planned
            else ""
        )
        return f"Created job {made.id}{when}. It runs while `hermes gateway run` or `hermes cron daemon` does."

    def _line(self, job: Job) -> str:
        planned = next(iter(self._book.store.planned(job.id)), None)
        last = next(iter(self._book.store.history(job.id, limit=1)), None)
        state = _local(job, planned) if planned else "ended"
        if job.paused:
            state = f"paused ({job.paused})"
        ended = f"; last: {last.state} {last.reason}".rstrip() if last else ""
        return f"{job.id} {job.name}: {job.schedule}; next: {state}{ended}"


def _local(job: Job, planned: Instant) -> str:
    return on_the_clock(planned.starts, job.zone).strftime("%a %d %b %Y %H:%M")

"""Routes of scheduled jobs: list, preview, create, edit, run and remove them."""

import asyncio
from itertools import islice
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from hermes.app.machines import WaitingWork, waiting_jobs
from hermes.app.schedules.form import JobForm
from hermes.app.schedules.jobs import BY_PERSON, JobBook, JobState, ListedJob, listed
from hermes.app.schedules.scheduler import SchedulerCheck
from hermes.commands.command import Command
from hermes.commands.jobs import (
    add_job,
    edit_job,
    pause_job,
    remove_job,
    resume_job,
)
from hermes.schedules.parse import understand
from hermes.schedules.recurrence import instants
from hermes.schedules.time_zones import ScheduleError
from hermes.schedules.tokens import length
from hermes.schema.schedules import CatchUp, Cause, Instant, Job, State
from hermes.surfaces.dashboard.dashboard import Dashboard
from hermes.surfaces.dashboard.routes.commands import run_command
from hermes.surfaces.web.endpoint import Acknowledged, Endpoint, EndpointCall
from hermes.surfaces.web.errors import Refusal
from hermes.text.translation import shown_reason, translator

t = translator(__name__)


_SHOWN_RUNS = 5  # planned runs that are listed in advance


class JobInstant(msgspec.Struct, frozen=True):
    """A planned run of a job, and its outcome."""

    due: float
    state: State
    cause: Cause
    reason: str
    repeats: Annotated[int, Meta(description="So many in a row, from `due` on.")]
    session: str
    began: float
    ended: float
    delivery: Annotated[
        str, Meta(description="Where the result went, `waiting`, or why it did not go.")
    ]
    not_delivered: Annotated[
        str, Meta(description="Why the result did not go, for a person.")
    ] = ""


class JobRow(msgspec.Struct, frozen=True, kw_only=True):
    """A job. Editable fields have the form in which a person types them."""

    id: str
    name: str
    prompt: str
    schedule: str
    zone: str
    state: JobState
    paused: Annotated[str, Meta(description="Why it does not run; empty when it does.")]
    running: bool
    next: Annotated[
        float | None, Meta(description="When it starts next, unix seconds.")
    ]
    last: Annotated[JobInstant | None, Meta(description="How it ended last.")]
    deliver: str
    budget: str
    timeout: str
    jitter: str
    catch_up: CatchUp
    tools: str
    model: str
    cwd: str
    place: Annotated[
        str, Meta(description="The only machine that runs it; empty for any.")
    ]
    times: int
    by: str
    created: float
    waiting: Annotated[
        WaitingWork | None,
        Meta(description="Since when it waits for its machine, if that is away."),
    ] = None


class JobList(msgspec.Struct, frozen=True):
    """`watched`: whether a process runs due jobs. `zone` and `folder`: the defaults of jobs that name none."""

    jobs: list[JobRow]
    watched: bool
    zone: str
    folder: str


class JobQuery(msgspec.Struct, frozen=True):
    limit: Annotated[int, Meta(ge=1, le=1000)] = 100


class JobView(msgspec.Struct, frozen=True):
    """A job with its next runs, and its past and current ones, newest first."""

    job: JobRow
    next: list[float]
    history: list[JobInstant]
    watched: bool


class Trial(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A schedule to preview."""

    schedule: str
    zone: str = ""


class Meaning(msgspec.Struct, frozen=True):
    """When the schedule would run; or why it can't be parsed, and how much of it could."""

    zone: str
    next: list[float]
    problem: str = ""
    hint: str = ""


class ScheduleRoutes:
    """Handlers over one dashboard."""

    def __init__(self, dashboard: Dashboard) -> None:
        self._board = dashboard
        self._app = dashboard.app
        self._book = JobBook(dashboard.app)
        self._scheduler = SchedulerCheck(dashboard.app.home)

    def endpoints(self) -> list[Endpoint]:
        one = "/api/schedules/{id}"
        return [
            Endpoint("GET", "/api/schedules", "observe", self.jobs, answer=JobList),
            Endpoint(
                "POST", "/api/schedules", "admin", self.add, body=JobForm, answer=JobRow
            ),
            Endpoint(
                "POST",
                "/api/schedules/preview",
                "observe",
                self.preview,
                body=Trial,
                answer=Meaning,
            ),
            Endpoint("GET", one, "observe", self.job, JobQuery, answer=JobView),
            Endpoint("PATCH", one, "admin", self.edit, body=JobForm, answer=JobRow),
            Endpoint("DELETE", one, "admin", self.remove, answer=Acknowledged),
            Endpoint("POST", f"{one}/pause", "approve", self.pause, answer=JobRow),
            Endpoint("POST", f"{one}/resume", "approve", self.resume, answer=JobRow),
            Endpoint("POST", f"{one}/run", "approve", self.run, answer=JobRow),
        ]

    def jobs(self) -> JobList:
        """Every job, the one that runs next first, and whether a process runs due jobs."""
        waiting = waiting_jobs(self._app)
        rows = [_row(one, waiting.get(one.job.id)) for one in self._listed()]
        return JobList(
            rows, self._scheduler.is_running(), self._book.zone, str(self._board.folder)
        )

    def job(self, call: EndpointCall) -> JobView:
        """One job with its next runs, and the outcomes of past ones."""
        found = self._find(call.path["id"])
        coming = [] if found.state != "active" else self._coming(found.job)
        past = self._book.store.history(found.job.id, limit=call.query.limit)
        row = _row(found, waiting_jobs(self._app).get(found.job.id))
        runs = [_run(one) for one in past]
        return JobView(row, coming, runs, self._scheduler.is_running())

    def preview(self, call: EndpointCall) -> Meaning:
        """Previews a schedule. One that can't be parsed is not an error: the response says how much was understood."""
        now, zone = self._app.clock.now(), call.body.zone or self._book.zone
        try:
            rule, zone = understand(call.body.schedule, now, zone)
            return Meaning(zone, list(islice(instants(rule, zone, now), _SHOWN_RUNS)))
        except ScheduleError as error:
            return Meaning(zone, [], error.message, error.hint)

    def add(self, call: EndpointCall) -> JobRow:
        """Creates a job."""
        wanted = {"schedule": "", "prompt": "", "cwd": str(self._board.folder)}
        return self._change(add_job, **wanted | _fields(call))

    def edit(self, call: EndpointCall) -> JobRow:
        """Changes a job. Omitted fields stay unchanged."""
        return self._change(edit_job, job=self._id(call), **_fields(call))

    def remove(self, call: EndpointCall) -> Acknowledged:
        """Removes a job. A current run continues, and the sessions of its runs stay."""
        run_command(self._app, remove_job, job=self._id(call))
        return Acknowledged()

    def pause(self, call: EndpointCall) -> JobRow:
        """Pauses a job."""
        return self._change(pause_job, job=self._id(call))

    def resume(self, call: EndpointCall) -> JobRow:
        """Resumes a job from its next planned run on."""
        return self._change(resume_job, job=self._id(call))

    def _change(self, command: Command, **arguments: Any) -> JobRow:
        """Runs a command that changes a job; returns the job as it is then."""
        return self._row_of(run_command(self._app, command, **arguments).job)

    async def run(self, call: EndpointCall) -> JobRow:
        """Runs a job now, even if it is paused: in this process, or on the machine that has its folder."""
        job, instant = await asyncio.to_thread(
            lambda: self._book.by_hand(self._id(call))
        )
        if not self._book.is_here(job):
            await asyncio.to_thread(self._book.store.plan, instant)
        elif not await self._board.jobs.start(job, instant):
            raise Refusal(
                409,
                t("{name} is running.", name=job.name),
                t("Wait until it ends; its history shows when."),
            )
        return await asyncio.to_thread(self._row_of, job)

    def _listed(self) -> list[ListedJob]:
        """The jobs. Ends runs whose process is gone, in case no scheduler is running."""
        if not self._app.has_log:
            return []
        self._book.store.settle()
        return listed(self._book.store)

    def _find(self, name: str) -> ListedJob:
        found = next((one for one in self._listed() if one.job.id == name), None)
        if found is None:
            raise Refusal(
                404,
                t("There is no job {name}.", name=name),
                t("It may have been removed."),
            )
        return found

    def _id(self, call: EndpointCall) -> str:
        """The job named in the URL, by its whole id."""
        return self._find(call.path["id"]).job.id

    def _row_of(self, job: Job) -> JobRow:
        """The job after a change."""
        return _row(self._find(job.id), waiting_jobs(self._app).get(job.id))

    def _coming(self, job: Job) -> list[float]:
        try:
            return list(
                islice(instants(job.rule, job.zone, self._app.clock.now()), _SHOWN_RUNS)
            )
        except (
            ScheduleError
        ):  # its time zone is gone; the scheduler reports that and pauses it
            return []


def _fields(call: EndpointCall) -> dict[str, Any]:
    """The fields that a request gives."""
    given = msgspec.structs.asdict(call.body)
    return {name: value for name, value in given.items() if value is not None}


def _row(one: ListedJob, waiting: WaitingWork | None) -> JobRow:
    job = one.job
    return msgspec.convert(
        msgspec.structs.asdict(job)
        | {
            "state": one.state,
            "running": one.is_running,
            "next": one.planned.starts if one.planned else None,
            "last": _run(one.last) if one.last else None,
            "timeout": length(job.timeout),
            "jitter": length(job.jitter) if job.jitter else "",
            "tools": ", ".join(job.toolsets),
            "waiting": waiting,
            "paused": BY_PERSON
            if job.paused == BY_PERSON
            else shown_reason(job.paused),
        },
        JobRow,
    )


def _run(one: Instant) -> JobInstant:
    run = msgspec.convert(one, JobInstant, from_attributes=True)
    delivery = shown_reason(one.delivery) if one.delivery.startswith("not ") else ""
    return msgspec.structs.replace(
        run, reason=shown_reason(one.reason), not_delivered=delivery
    )

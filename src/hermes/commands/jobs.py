"""Scheduled jobs: making, listing and changing them, their next runs, and how past runs ended."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from typing import Annotated, Any, TypedDict, Unpack

import msgspec

from hermes.app.machines import WaitingWork, waiting_jobs
from hermes.app.schedules.form import JobForm, parsed_fields
from hermes.app.schedules.jobs import (
    JobBook,
    JobDraft,
    answer_of,
    next_by_job,
    starts,
    state_of,
)
from hermes.commands.command import Arg, command
from hermes.commands.context import CommandContext
from hermes.commands.hosts import waiting_view
from hermes.commands.views import (
    Block,
    Column,
    Line,
    Look,
    Record,
    Span,
    line,
    table,
)
from hermes.errors import NotFound, UsageError
from hermes.schedules.parse import understand
from hermes.schedules.recurrence import instants
from hermes.schedules.time_zones import ScheduleError, on_the_clock
from hermes.schedules.tokens import length
from hermes.schema.schedules import CatchUp, Instant, Job
from hermes.settings.gateway import CHAT_PLATFORMS
from hermes.settings.load import current_folder
from hermes.store.schedules import ScheduleStore
from hermes.text.formats import first_line
from hermes.text.translation import shown_reason, to_translate, translator

t = translator(__name__)


EXAMPLES = to_translate("""\
examples:
  hermes cron add "every weekday at 9" "summarize what is new in my inbox folder"
  hermes cron add "every 2 hours" "check the disk" --deliver telegram:123456 --budget '$0.10'
  hermes cron add "0 8 1 * *" "write the monthly report" --name report --deliver file:~/report.md
  hermes cron list                      every job, and when it runs next
  hermes cron next "on the last friday of each month at 16:00"
  hermes cron history report            how each run ended, and why
  hermes cron run report                now, here
  hermes cron daemon                    run what is due; `hermes gateway run` does it too
""")
_NO_JOBS = to_translate(
    "There are no jobs yet. Add one: hermes cron add 'every weekday at 9' 'what to do'"
)
_WHO_RUNS = to_translate(
    "Due jobs are run by `hermes gateway run`, or by `hermes cron daemon`."
)
_LOOKS: Mapping[str, Look] = {
    "done": "good",
    "failed": "bad",
    "missed": "warn",
    "skipped": "warn",
}
_STATES = {
    "active": to_translate("active"),
    "paused": to_translate("paused"),
    "ended": to_translate("ended"),
}
_MISSED = {
    "skip": to_translate("are skipped"),
    "once": to_translate("only the last one is caught up on"),
    "all": to_translate("are all caught up on"),
}
_MAX_SHOWN_TIMES = 1000

JobName = Annotated[str, Arg("its id, the beginning of it, or its name", metavar="JOB")]


class JobOptions(TypedDict, total=False):
    """What a job can have besides its schedule and its task."""

    name: Annotated[str | None, "a name for the job"]
    zone: Annotated[
        str | None, "time zone, such as Europe/Berlin (default: this machine's)"
    ]
    deliver: Annotated[
        str | None,
        Arg(
            "none, file:PATH, session:ID, or a chat: telegram:123456", metavar="TARGET"
        ),
    ]
    catch_up: Annotated[CatchUp | None, "what to do about missed runs"]
    jitter: Annotated[
        str | None,
        Arg("delay each run by a random time up to this, such as 5m", metavar="TIME"),
    ]
    timeout: Annotated[
        str | None, Arg("stop a run after this time, such as 10m", metavar="TIME")
    ]
    budget: Annotated[
        str | None,
        Arg("the most one run may use: '$0.50' or '200k tokens'", metavar="AMOUNT"),
    ]
    tools: Annotated[
        str | None,
        Arg("only these toolsets: files,web; see `hermes tools`", metavar="SETS"),
    ]
    model: Annotated[str | None, "another model, such as openai:gpt-5-mini"]
    cwd: Annotated[
        str | None, Arg("the folder to work in (default: this one)", metavar="DIR")
    ]
    times: Annotated[
        int | None, Arg("end the job after this many runs", metavar="NUMBER")
    ]


class JobChange(msgspec.Struct, frozen=True, kw_only=True):
    """A job that was made or changed."""

    job: Job
    planned: Instant | None
    what: str
    note: str = ""

    def document(self) -> Any:
        return job_document(self.job, self.planned)

    def view(self, now: float) -> Iterable[Block]:
        job = self.job
        yield line(
            t(
                "Job {id} ({name}) {what}.",
                id=job.id,
                name=first_line(job.name),
                what=self.what,
            )
        )
        if self.planned is not None:
            when = f"{_from_now(self.planned.starts, now)}, {local_time(self.planned.starts, job.zone)}"
            yield line(t("Next run: {when} ({zone})", when=when, zone=job.zone))
        for note in self.note.splitlines():
            yield line(note)


class JobListing(msgspec.Struct, frozen=True, kw_only=True):
    """The jobs and when they run next."""

    jobs: tuple[tuple[Job, Instant | None], ...]
    ended: int
    waiting: Mapping[str, WaitingWork] = {}

    def document(self) -> Any:
        return {
            "jobs": [
                job_document(job, planned, self.waiting.get(job.id))
                for job, planned in self.jobs
            ]
        }

    def view(self, now: float) -> Iterable[Block]:
        if not self.jobs:
            ended = t(
                "No job is active; {ended} have ended: hermes cron list --all",
                ended=self.ended,
            )
            yield line(ended if self.ended else t.marked(_NO_JOBS))
            return
        columns = (
            Column(t("JOB")),
            Column(t("NAME"), widest=20),
            Column(t("SCHEDULE"), widest=24),
            Column(t("NEXT RUN")),
        )
        ordered = sorted(self.jobs, key=lambda one: starts(one[1]))
        rows = [
            (job.id, job.name, job.schedule, self._next(job, planned, now))
            for job, planned in ordered
        ]
        yield table(columns, rows, narrow=((0, 1), (3,)))
        yield from waiting_view(tuple(self.waiting.values()), now)

    def _next(self, job: Job, planned: Instant | None, now: float) -> str:
        found = self.waiting.get(job.id)
        return _waits(found) if found else _coming(job, planned, now)


class JobDetails(msgspec.Struct, frozen=True, kw_only=True):
    """A job, its next run and its last ones."""

    job: Job
    planned: Instant | None
    past: tuple[Instant, ...]
    waiting: WaitingWork | None = None

    def document(self) -> Any:
        document = job_document(self.job, self.planned, self.waiting)
        return document | {"history": self.past}

    def view(self, now: float) -> Iterable[Block]:
        job, planned = self.job, self.planned
        limits = [
            t("stopped after {time}", time=length(job.timeout)),
            t("at most {amount}", amount=job.budget) if job.budget else t("no limit"),
        ]
        if job.jitter:
            limits.append(t("starts up to {length} later", length=length(job.jitter)))
        yield line(f"{job.id}  {first_line(job.name)}", "bold")
        state = _paused(job) or t.marked(_STATES[state_of(job, planned)])
        if self.waiting is not None:
            state = _waits(self.waiting)
        facts = (
            (t("schedule"), f"{job.schedule} ({job.zone})"),
            (t("state"), state),
            (t("missed runs"), t.marked(_MISSED[job.catch_up])),
            (t("delivered to"), job.deliver),
            (t("limits"), ", ".join(limits)),
            (t("tools"), ", ".join(job.toolsets) or t("the usual ones")),
            (t("model"), job.model or t("the usual one")),
            (t("folder"), job.cwd or t("your home folder")),
            (t("made by"), job.by),
            *(((t("machine"), job.place),) if job.place else ()),
        )
        yield Record(facts, indent=2)
        yield from waiting_view((self.waiting,) if self.waiting else (), now)
        yield line(f"\n{job.prompt}\n")
        if planned and not job.paused:
            yield line(
                t(
                    "Next: {from_now}, {local_time}",
                    from_now=_from_now(planned.starts, now),
                    local_time=local_time(planned.starts, job.zone),
                )
            )
        yield from _runs(self.past, {job.id: job})


class JobRuns(msgspec.Struct, frozen=True, kw_only=True):
    """How runs ended, the newest first, each with its answer."""

    past: tuple[Instant, ...]
    jobs: dict[str, Job]
    answers: dict[str, str]
    last_answer: str = ""

    def document(self) -> Any:
        history = [
            msgspec.to_builtins(one) | {"answer": self.answers.get(one.session, "")}
            for one in self.past
        ]
        return {"history": history}

    def view(self, _now: float) -> Iterable[Block]:
        yield from _runs(self.past, self.jobs)
        if not self.past:
            yield line(t("No runs yet."))
        elif self.last_answer:
            yield line(
                t("\nThe last answer:\n{last_answer}", last_answer=self.last_answer)
            )


class ComingRuns(msgspec.Struct, frozen=True, kw_only=True):
    """When a job runs, or a schedule would."""

    zone: str
    rule: Any
    next: tuple[float, ...]

    def view(self, now: float) -> Iterable[Block]:
        for at in self.next:
            yield line(f"{local_time(at, self.zone)}  {_from_now(at, now)}")
        yield line(f"({self.zone})", "dim")


class Jobs:
    """The jobs of a home. Nothing is created on disk until there is something to store."""

    def __init__(self, context: CommandContext) -> None:
        self.app = context.app
        self.book = JobBook(self.app)

    @property
    def store(self) -> ScheduleStore:
        return self.book.store

    def find(self, name: str) -> Job:
        if not self.app.has_log:
            raise NotFound(
                t("There is no job {name!r}.", name=name), hint=t.marked(_NO_JOBS)
            )
        return self.store.find(name)


@command("cron add", scope="admin")
def add_job(
    context: CommandContext,
    schedule: Annotated[str, "when: in words, an interval or a cron expression"],
    prompt: Annotated[str, "what to do"],
    **options: Unpack[JobOptions],
) -> JobChange:
    """Add a job."""
    fields: dict[str, Any] = {"schedule": schedule, "prompt": prompt, **options}
    form = JobForm(**fields)
    jobs = Jobs(context)
    is_first = not jobs.app.has_log or not jobs.store.any()
    with _schedule_errors():
        wanted = parsed_fields(form)
        wanted.setdefault("cwd", str(current_folder()))
        job, planned = jobs.book.add(msgspec.convert(wanted, JobDraft))
    notes = (t.marked(_WHO_RUNS) if is_first else "", _undeliverable(context, job))
    note = "\n".join(filter(None, notes))
    return JobChange(job=job, planned=planned, what=t("was added"), note=note)


def _undeliverable(context: CommandContext, job: Job) -> str:
    """A notice if the job delivers to a chat platform whose secrets are not set yet."""
    platform = job.deliver.partition(":")[0]
    secrets = context.secrets
    missing = [
        name for name in CHAT_PLATFORMS.get(platform, ()) if not secrets.get(name)
    ]
    if not missing:
        return ""
    return t(
        "{platform} is not connected: results wait until you set {missing}"
        " (hermes config set {first}) and start `hermes gateway run`.",
        platform=platform,
        missing=t(" and ").join(missing),
        first=missing[0],
    )


@command("cron list", slash="jobs", role="owner", scope="observe", group="Sessions", private=True)  # fmt: skip
def list_jobs(
    context: CommandContext,
    *,
    all_: Annotated[bool, "also those that have ended"] = False,
) -> JobListing:
    """List the jobs and when they run next."""
    jobs = Jobs(context)
    found = jobs.store.jobs() if jobs.app.has_log else []
    planned = next_by_job(jobs.store) if found else {}
    shown = [
        (job, planned.get(job.id))
        for job in found
        if all_ or state_of(job, planned.get(job.id)) != "ended"
    ]
    return JobListing(
        jobs=tuple(shown),
        ended=len(found) - len(shown),
        waiting=waiting_jobs(jobs.app) if shown else {},
    )


@command("cron show", scope="observe")
def show_job(context: CommandContext, job: JobName) -> JobDetails:
    """Show a job, its next runs and its last ones."""
    jobs = Jobs(context)
    found = jobs.find(job)
    return JobDetails(
        job=found,
        planned=next(iter(jobs.store.planned(found.id)), None),
        past=tuple(jobs.store.history(found.id, limit=5)),
        waiting=waiting_jobs(jobs.app).get(found.id),
    )


@command("cron pause", scope="approve")
def pause_job(context: CommandContext, job: JobName) -> JobChange:
    """Pause a job."""
    jobs = Jobs(context)
    jobs.find(job)
    return JobChange(job=jobs.book.pause(job), planned=None, what=t("was paused"))


@command("cron resume", scope="approve")
def resume_job(context: CommandContext, job: JobName) -> JobChange:
    """Resume a paused job."""
    jobs = Jobs(context)
    jobs.find(job)
    with _schedule_errors():
        changed, planned = jobs.book.resume(job)
    return JobChange(job=changed, planned=planned, what=t("was resumed"))


@command("cron remove", scope="admin")
def remove_job(context: CommandContext, job: JobName) -> JobChange:
    """Remove a job; its runs stay in the history."""
    jobs = Jobs(context)
    jobs.find(job)
    return JobChange(job=jobs.book.remove(job), planned=None, what=t("was removed"))


@command("cron edit", scope="admin")
def edit_job(
    context: CommandContext,
    job: JobName,
    *,
    schedule: Annotated[str | None, "another time"] = None,
    prompt: Annotated[str | None, "the new task"] = None,
    **options: Unpack[JobOptions],
) -> JobChange:
    """Change a job."""
    fields: dict[str, Any] = {"schedule": schedule, "prompt": prompt, **options}
    form = JobForm(**fields)
    jobs = Jobs(context)
    with _schedule_errors():
        wanted = parsed_fields(form)
        if not wanted:
            raise UsageError(
                t("What should be changed?"),
                hint=t("Such as: hermes cron edit JOB --schedule 'at 9'"),
            )
        jobs.find(job)
        changed, planned = jobs.book.edit(job, **wanted)
    note = _undeliverable(context, changed)
    return JobChange(job=changed, planned=planned, what=t("was changed"), note=note)


@command("cron history", scope="observe")
def show_job_history(
    context: CommandContext,
    job: Annotated[str, Arg("one job (default: all)", metavar="JOB")] = "",
    *,
    limit: Annotated[
        int, Arg("how many (default: 20)", metavar="NUMBER", at_least=1)
    ] = 20,
) -> JobRuns:
    """Show how each run ended, the newest first."""
    jobs = Jobs(context)
    only = jobs.find(job).id if job else ""
    past = jobs.store.history(only, limit=limit) if jobs.app.has_log else []
    every = jobs.store.jobs(removed=True) if past else []
    answers = {one.session: answer_of(jobs.app, one.session) for one in past}
    return JobRuns(
        past=tuple(past),
        jobs={one.id: one for one in every},
        answers=answers,
        last_answer=answers[past[0].session] if only and past else "",
    )


@command("cron next", scope="observe")
def show_coming_runs(
    context: CommandContext,
    what: Annotated[str, Arg("a job, or a schedule in quotes", metavar="JOB|SCHEDULE")],
    *,
    zone: Annotated[str, "such as Europe/Berlin"] = "",
    count: Annotated[
        int, Arg("how many times (default: 5)", metavar="NUMBER", at_least=1)
    ] = 5,
) -> ComingRuns:
    """Show when a job runs, or a schedule would."""
    jobs = Jobs(context)
    now = jobs.app.clock.now()
    rule, where = _rule(jobs, what, zone, now)
    coming = islice(instants(rule, where, now), min(count, _MAX_SHOWN_TIMES))
    return ComingRuns(zone=where, rule=rule, next=tuple(coming))


def job_document(
    job: Job, planned: Instant | None, waiting: WaitingWork | None = None
) -> dict[str, Any]:
    """A job for a program."""
    coming = planned.starts if planned else None
    facts = {"next": coming, "state": state_of(job, planned)}
    if waiting is not None:
        facts["waiting"] = msgspec.to_builtins(waiting)
    return msgspec.to_builtins(job) | facts


def _waits(found: WaitingWork) -> str:
    return t("waits for {place}", place=found.place)


def local_time(at: float, zone_name: str) -> str:
    """An instant as a clock in that time zone shows it."""
    return on_the_clock(at, zone_name).strftime("%a %d %b %Y %H:%M")


@contextmanager
def _schedule_errors() -> Iterator[None]:
    """Turns a schedule that can't be understood into wrong usage."""
    try:
        yield
    except ScheduleError as error:
        raise UsageError(error.words, hint=error.hint_words) from error


def _rule(jobs: Jobs, what: str, zone: str, now: float) -> tuple[Any, str]:
    """The rule of a job, or of a schedule that is tried out."""
    if jobs.app.has_log:
        try:
            job = jobs.find(what)
        except NotFound:
            pass
        else:
            return job.rule, zone or job.zone
    with _schedule_errors():
        return understand(what, now, zone or jobs.book.zone)


def _from_now(at: float, now: float) -> str:
    """How far away an instant is."""
    seconds = at - now
    if seconds <= 0:
        return t("now")
    if seconds >= 2 * 86_400:
        return t("in {count} day", "in {count} days", count=round(seconds / 86_400))
    if seconds >= 3_600:
        return t("in {count} hour", "in {count} hours", count=round(seconds / 3_600))
    if seconds >= 60:
        return t("in {count} minute", "in {count} minutes", count=round(seconds / 60))
    return t("in less than a minute")


def _paused(job: Job) -> str:
    """Why a job is paused; empty if it is not."""
    return t("paused: {why}", why=shown_reason(job.paused)) if job.paused else ""


def _coming(job: Job, planned: Instant | None, now: float) -> str:
    if job.paused:
        return _paused(job)
    if planned is None:
        return t.marked(_STATES["ended"])
    moment = on_the_clock(planned.starts, job.zone)
    is_this_year = moment.year == on_the_clock(now, job.zone).year
    form = "%a %d %b %H:%M" if is_this_year else "%d %b %Y %H:%M"
    return f"{_from_now(planned.starts, now)}, {moment.strftime(form)}"


def _runs(past: Iterable[Instant], jobs: Mapping[str, Job]) -> Iterator[Block]:
    """How runs ended, a line each."""
    for one in past:
        job = jobs.get(one.job)
        many = f" x{one.repeats:,}" if one.repeats > 1 else ""
        took = ""
        if one.began and one.ended:
            took = f" {length(max(1, round(one.ended - one.began)))}"
        cause = one.cause if one.cause != "schedule" else ""
        facts = (cause, shown_reason(one.reason), _delivered(one), one.session)
        more = "; ".join(first_line(fact) for fact in facts if fact)
        when = local_time(one.due, job.zone if job else "UTC")
        name = first_line(job.name)[:24] if job else one.job
        state = Span(f"{one.state}{many}", _LOOKS.get(one.state, "dim"))
        rest = Span(f"  {more}" if more else "", "dim")
        yield Line((Span(f"{when}  "), state, Span(f"{took}  {name}"), rest))


def _delivered(one: Instant) -> str:
    if one.delivery == "waiting":
        return t("waiting for a gateway to deliver it")
    if not one.delivery or one.delivery.startswith("not "):
        return shown_reason(one.delivery)
    return t("to {place}", place=one.delivery)

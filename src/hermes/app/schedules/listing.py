"""The list of jobs: their state, the next run, and how the last run ended."""

from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from hermes.schema.schedules import Instant, Job

if TYPE_CHECKING:
    from hermes.store.schedules import ScheduleStore

JobState: TypeAlias = Literal["active", "paused", "ended"]


class ListedJob(NamedTuple):
    """A job in the list."""

    job: Job
    state: JobState
    planned: Instant | None
    last: Instant | None
    is_running: bool


def listed(store: "ScheduleStore") -> list[ListedJob]:
    """Every job, the one that runs next first."""
    planned, last = next_by_job(store), {one.job: one for one in store.latest()}
    running = {one.job for one in store.running()}
    rows = [
        ListedJob(
            job,
            state_of(job, planned.get(job.id)),
            planned.get(job.id),
            last.get(job.id),
            job.id in running,
        )
        for job in store.jobs()
    ]
    return sorted(rows, key=lambda row: starts(row.planned))


def next_by_job(store: "ScheduleStore") -> dict[str, Instant]:
    """The next planned instant of each job that has one."""
    found: dict[str, Instant] = {}
    for instant in store.planned():
        found.setdefault(instant.job, instant)
    return found


def state_of(job: Job, planned: Instant | None) -> JobState:
    """Whether a job runs again."""
    if job.paused:
        return "paused"
    return "active" if planned else "ended"


def starts(planned: Instant | None) -> float:
    """When a job starts, for sorting. Jobs that never start come last."""
    return planned.starts if planned else float("inf")

"""Due jobs that only another machine can run, while nothing runs jobs there: whoever gets their results is told once."""

import logging
from collections.abc import Sequence

from hermes.app.app import App
from hermes.app.machines import WaitingWork, read_machines
from hermes.app.schedules.delivery import JobDeliveries
from hermes.app.schedules.jobs import JobBook
from hermes.schedules.time_zones import on_the_clock
from hermes.schema.schedules import Instant, Job, ScheduleWaiting
from hermes.store.hosts import GONE_AFTER_S
from hermes.text.translation import translator

t = translator(__name__)

log = logging.getLogger("hermes.schedules")


class WaitingJobs:
    """Reports the waiting jobs of one store. Only one of its processes reports each."""

    def __init__(self, app: App, book: JobBook, deliveries: JobDeliveries) -> None:
        self._app = app
        self._book = book
        self._deliveries = deliveries

    def tell(self, away: Sequence[tuple[Job, Instant]], now: float) -> None:
        """Reports jobs that have waited for a while, each instant once."""
        late = [
            (job, instant)
            for job, instant in away
            if not instant.reason and now - instant.starts > GONE_AFTER_S
        ]
        if not late:
            return
        machines = read_machines(self._app)
        for job, instant in late:
            if machines.runs_jobs(job.place):
                continue
            found = machines.waiting(
                "job", (job.id, job.name), job.place, instant.starts
            )
            if now - found.seen > GONE_AFTER_S:
                self._tell(job, instant, found)

    def _tell(self, job: Job, instant: Instant, found: WaitingWork) -> None:
        why = t.logged(
            "waits for {machine}, which has its folder: {state}",
            machine=job.place,
            state=_state(job, found),
        )
        if not self._book.store.note_waiting(instant, why):
            return  # another process was faster
        log.warning("job %s (%s) %s", job.id, job.name, why)
        due = on_the_clock(instant.starts, job.zone).strftime("%a %d %b %Y %H:%M")
        text = t.logged(
            "The scheduled job “{name}” was due on {due} and {why}. It runs once `hermes gateway run` or `hermes worker`"
            " is started there. To run it on another machine, type there: {command}",
            name=job.name,
            due=due,
            why=why,
            command=f"hermes cron edit {job.id} --cwd DIR",
        )
        self._deliveries.announce(job, text)
        waiting = ScheduleWaiting(
            job=job.id, name=job.name, due=instant.due, place=job.place, reason=text
        )
        self._book.publish(waiting)


def _state(job: Job, found: WaitingWork) -> str:
    """What is known about a machine."""
    if found.is_draining:
        return t.logged("it is being stopped and begins nothing new")
    if not found.seen:
        return t.logged("nothing runs jobs there")
    seen = on_the_clock(found.seen, job.zone).strftime("%a %d %b %Y %H:%M")
    return t.logged("it was last heard from on {when}", when=seen)

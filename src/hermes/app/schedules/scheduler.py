"""The scheduler: a task that runs due jobs, in the gateway or alone. Several processes may have one; each instant is run
by one of them."""

import asyncio
import contextlib
import logging
import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec

from hermes.app.app import App
from hermes.app.schedules.delivery import JobDeliveries
from hermes.app.schedules.job_run import JobOutcome, JobRun
from hermes.app.schedules.jobs import JobBook
from hermes.app.schedules.waiting_jobs import WaitingJobs
from hermes.errors import HermesError, StoreDamaged, StoreError, in_sentences
from hermes.primitives.file_lock import FileLock
from hermes.primitives.tasks import cancel_and_wait, run_until_first, running
from hermes.schedules.due_and_missed import (
    DAY_S,
    GRACE_S,
    backlog,
    following,
    restarted_interval,
)
from hermes.schema.schedules import Instant, Job, ScheduleEnded, ScheduleStarted
from hermes.settings import Home, Secrets
from hermes.store.leases import LEASE_TTL_S
from hermes.text.translation import translator

t = translator(__name__)

log = logging.getLogger("hermes.schedules")

POLL_INTERVAL_S = 2.0
"""Seconds between checks for changes by other processes."""

_SLEPT_AFTER_S = 60.0  # between two steps; then the machine must have slept
_RAN = ("running", "done", "failed")
_LOOKING = "checking schedules"
_MAX_REPEATED_INSTANTS = 1000  # after the clock was set back
_TOO_LONG = t.logged("the previous run had not ended")
_STOPPED = t.logged("Hermes was stopped while it ran")
_SCHEDULER_LOCK_TIMEOUT_S = 5.0  # others hold it exclusively only while they look


class ScheduleLoop:
    """Runs due jobs until it is stopped."""

    def __init__(self, app: App, secrets: Secrets) -> None:
        self._app = app
        self._secrets = secrets
        self._deliveries = JobDeliveries(app)
        self._book = JobBook(app)
        self._waiting = WaitingJobs(app, self._book, self._deliveries)
        self._runs: dict[tuple[str, float], asyncio.Task[None]] = {}
        self._bell = asyncio.Event()
        self._looked = 0.0
        self._watching_since = 0.0

    def use(self, secrets: Secrets) -> None:
        """Uses other keys from the next run on."""
        self._secrets = secrets

    @property
    def running(self) -> int:
        """How many jobs run here now."""
        return len(self._runs)

    async def run(self, stop: asyncio.Event) -> None:
        """Runs until `stop` is set. Jobs that run then are stopped, and their runs say so."""
        try:
            with scheduler_lock(self._app.home):
                while not stop.is_set():
                    pause = await self._looked_after()
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(pause):
                            await run_until_first(stop.wait(), self._bell.wait())
                    self._bell.clear()
        finally:
            await self.close()

    async def close(self) -> None:
        """Stops the jobs that run here."""
        await cancel_and_wait(*self._runs.values())
        await self._deliveries.close()

    async def _looked_after(self) -> float:
        """One step. An error is reported once, and the step is tried again."""
        try:
            pause = await self.step()
        except HermesError as error:
            return max(
                POLL_INTERVAL_S, self._app.errors.note(_LOOKING, in_sentences(error))
            )
        except Exception as error:  # the boundary of this task
            log.exception("schedules can't be checked; will try again")
            return max(POLL_INTERVAL_S, self._app.errors.note(_LOOKING, error))
        self._app.errors.succeeded(_LOOKING)
        return pause

    async def step(self) -> float:
        """Runs what is due now. Returns how long to wait for the next step."""
        now = self._app.clock.now()
        if (
            not self._looked
            or now - self._looked > _SLEPT_AFTER_S
            or now < self._looked
        ):
            self._watching_since = now
            await asyncio.to_thread(self._clear_up)
        self._looked = now
        if gone := await asyncio.to_thread(self._book.store.settle):
            jobs = {job.id: job for job in self._book.store.jobs(removed=True)}
            for one in gone:
                self._ended(one, jobs.get(one.job))
        self._deliveries.begin()
        while await self._begin_due(now):
            pass
        coming = await asyncio.to_thread(self._book.store.coming, now)
        return (
            POLL_INTERVAL_S
            if coming is None
            else max(0.0, min(POLL_INTERVAL_S, coming - self._app.clock.now()))
        )

    def _clear_up(self) -> None:
        """Deletes old instants. Plans jobs that have no plan, for example after damage of the database, or whose plan was
        made by a clock that was ahead."""
        store, now = self._book.store, self._app.clock.now()
        store.forget(now - self._app.settings.schedules.keep_days * DAY_S)
        planned: dict[str, list[Instant]] = {}
        for one in store.planned():
            planned.setdefault(one.job, []).append(one)
        for job in store.jobs():
            coming = self._next_new(job, now)
            if coming is None:
                continue
            if (
                rule := restarted_interval(job, coming.due, now, self._ran(job))
            ) is not None:
                self._book.restart_interval(job, rule)
            elif job.id not in planned:
                store.plan(coming)
            elif all(
                one.cause == "schedule" and one.due > coming.due
                for one in planned[job.id]
            ):
                self._book.replan(job, coming)

    def _next_new(self, job: Job, now: float) -> Instant | None:
        """The next instant of a job that has not run yet. A clock that was set back shows some hours twice."""
        if not self._is_sound(job, now):
            return None
        ran = self._ran(job)
        coming = following(job, now)
        while coming is not None and coming.due in ran:
            coming = following(job, coming.due)
        return coming

    def _ran(self, job: Job) -> set[float]:
        """The instants of a job that have run."""
        return {
            one.due
            for one in self._book.store.history(job.id, limit=_MAX_REPEATED_INSTANTS)
            if one.state in _RAN
        }

    def _is_sound(self, job: Job, now: float) -> bool:
        """Whether a job's next instant can be computed. A job whose time zone is gone is paused, and delays no other job."""
        try:
            following(job, now)
        except HermesError as error:
            log.warning(
                "job %s (%s) is paused: %s", job.id, job.name, in_sentences(error)
            )
            self._book.pause_broken(job, error.message)
            return False
        return True

    async def _begin_due(self, now: float) -> bool:
        """Handles everything that is due. Returns True if that planned new instants."""
        due = await asyncio.to_thread(self._book.store.due, now)
        if not due:
            return False
        jobs = {
            job.id: job
            for job in await asyncio.to_thread(self._book.store.jobs, removed=True)
        }
        busy = {one.job for one in await asyncio.to_thread(self._book.store.running)}
        again = False
        away: list[tuple[Job, Instant]] = []
        for instant in due:
            job = jobs.get(instant.job)
            if job is None:
                continue
            if not self._book.is_here(job):
                away.append((job, instant))
                continue
            if not await asyncio.to_thread(self._is_sound, job, now):
                continue
            if self._is_late(instant, now):
                again = (
                    await asyncio.to_thread(self._catch_up, job, instant, now) or again
                )
            elif instant.job in busy:
                await self._wait_or_skip(job, instant, now)
            elif len(
                self._runs
            ) < self._app.settings.schedules.at_once and await self.start(job, instant):
                busy.add(instant.job)
        if away:
            await asyncio.to_thread(self._waiting.tell, away, now)
        return again

    def _is_late(self, instant: Instant, now: float) -> bool:
        """Whether no scheduler ran when it was due. A scheduler that was busy does not count."""
        unseen = instant.starts < self._watching_since
        return unseen and instant.cause == "schedule" and now - instant.starts > GRACE_S

    def _catch_up(self, job: Job, instant: Instant, now: float) -> bool:
        """Applies the job's policy to missed instants. Returns True if some of them are to be run now."""
        work = backlog(job, instant.due, now)
        coming = following(job, now)
        self._book.store.close(work.over, (*work.run, *((coming,) if coming else ())))
        for one in work.over:
            self._ended(one, job)
        return bool(work.run)

    async def _wait_or_skip(self, job: Job, instant: Instant, now: float) -> None:
        """While a job runs, its next regular instant is skipped, and a requested one waits."""
        if instant.cause != "schedule":
            return
        skipped = msgspec.structs.replace(
            instant, state="skipped", reason=_TOO_LONG, ended=now
        )
        coming = following(job, now)
        await asyncio.to_thread(
            self._book.store.close, (skipped,), (coming,) if coming else ()
        )
        self._ended(skipped, job)

    async def start(self, job: Job, instant: Instant) -> bool:
        """Claims an instant and begins to run it here. Returns False if another process was faster, or the job runs."""
        taken = await asyncio.to_thread(self.claim, job, instant)
        if taken is None:
            return False
        task = asyncio.ensure_future(self.carry_out(job, taken))
        self._runs[job.id, taken.due] = task
        task.add_done_callback(lambda _: self._over(job, taken))
        return True

    def _over(self, job: Job, instant: Instant) -> None:
        self._runs.pop((job.id, instant.due), None)
        self._bell.set()

    def claim(self, job: Job, instant: Instant) -> Instant | None:
        """Claims an instant and plans the next one. Returns None if another process has it."""
        if instant.cause == "hand":
            return self._book.store.claim(instant)
        ends = False

        def after(found: Job) -> tuple[Job, Instant | None]:
            nonlocal ends
            left = self._book.ran(found)
            coming = (
                following(left, instant.due) if instant.cause == "schedule" else None
            )
            ends = coming is None and instant.cause == "schedule"
            return left, coming

        taken = self._book.store.claim(instant, after)
        if taken is not None and ends:
            self._book.changed(job, "ended")
        return taken

    async def carry_out(self, job: Job, instant: Instant) -> None:
        """Runs a claimed instant to its end and delivers the result. The table always gets an end."""
        run = JobRun(self._app, self._secrets, job, instant)

        async def began(session: str) -> None:
            await asyncio.to_thread(self._book.store.belongs_to, instant, session)
            self._book.publish(
                ScheduleStarted(
                    job=job.id,
                    name=job.name,
                    due=instant.due,
                    session=session,
                    cause=instant.cause,
                )
            )

        async with (
            running(run.run(began)) as working,
            running(self._beat(instant, working)),
        ):
            try:
                outcome = await working
            except asyncio.CancelledError:
                await cancel_and_wait(working)
                outcome = JobOutcome("failed", _STOPPED)
            except Exception as error:  # the boundary of a run
                log.exception("job %s failed", job.id)
                outcome = JobOutcome("failed", f"{type(error).__name__}: {error}")
        delivery = await asyncio.to_thread(
            self._deliveries.deliver, job, instant, outcome
        )
        ended = msgspec.structs.replace(
            instant,
            state=outcome.state,
            reason=outcome.reason,
            session=run.session,
            delivery=delivery,
        )
        if await self._end(ended):
            self._ended(ended, job)
            self._deliveries.begin()

    async def _end(self, ended: Instant) -> bool:
        """Writes the end of a run, again and again until it succeeds: until then the job does not run again."""
        what = f"saving the end of a run of job {ended.job}"  # not translated
        while True:
            try:
                ours = await asyncio.to_thread(
                    self._book.store.end,
                    ended,
                    ended.state,
                    ended.reason,
                    ended.delivery,
                )
            except StoreDamaged:
                raise
            except StoreError as error:
                await asyncio.sleep(self._app.errors.note(what, error))
            else:
                self._app.errors.succeeded(what)
                return ours

    async def _beat(
        self, instant: Instant, working: "asyncio.Future[JobOutcome]"
    ) -> None:
        """Renews the claim on a run. If others have given it up, it is stopped."""
        while True:
            await asyncio.sleep(LEASE_TTL_S / 3)
            try:
                ours = await asyncio.to_thread(self._book.store.renew, instant)
            except StoreError as error:
                log.warning("the run of job %s was not renewed: %s", instant.job, error)
                continue
            if not ours:
                log.warning(
                    "another process has given up the run of job %s; it is stopped",
                    instant.job,
                )
                working.cancel()
                return

    def _ended(self, instant: Instant, job: Job | None) -> None:
        """Publishes the end of an instant, and logs it unless all went well."""
        name = job.name if job else instant.job
        if instant.state != "done":
            log.warning(
                "job %s (%s) %s: %s", instant.job, name, instant.state, instant.reason
            )
        self._book.publish(
            ScheduleEnded(
                job=instant.job,
                name=name,
                due=instant.due,
                state=instant.state,
                reason=instant.reason,
                repeats=instant.repeats,
                session=instant.session,
                delivery=instant.delivery,
            )
        )


@contextlib.contextmanager
def scheduler_lock(home: Home) -> Iterator[None]:
    """Marks this process as a scheduler: holds a shared lock on a file, which the system releases when the process ends,
    however it ends.
    """
    with contextlib.ExitStack() as stack:
        try:
            home.ensure(_path(home).parent)
            lock = stack.enter_context(FileLock(_path(home)))
            if not lock.acquire(_SCHEDULER_LOCK_TIMEOUT_S, shared=True):
                raise TimeoutError(t.logged("another process holds the lock"))
        except (OSError, HermesError) as error:
            # Jobs run all the same; only others can't see this process.
            log.warning("others can't see that this process runs schedules: %s", error)
        yield


class SchedulerCheck:
    """Looks for a process that runs due jobs. Only one look at a time, as two would take each other for a scheduler."""

    def __init__(self, home: Home) -> None:
        self._file = _path(home)
        self._looking = threading.Lock()

    def is_running(self) -> bool:
        """Whether there is one now."""
        with self._looking:
            try:
                with FileLock(self._file, create=False) as lock:
                    return not lock.try_acquire()
            except OSError:  # there never was one, or the file can't be read
                return False


def _path(home: Home) -> Path:
    return home.root / "run" / "schedules.lock"

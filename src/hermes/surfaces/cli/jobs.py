"""Jobs run without a gateway: `hermes cron run` and `hermes cron daemon`."""

import asyncio
import signal
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from hermes.app import App
from hermes.app.presence import Presence
from hermes.app.schedules.jobs import JobBook, answer_of, refused_calls
from hermes.app.schedules.scheduler import ScheduleLoop
from hermes.commands.command import command
from hermes.commands.context import CommandContext
from hermes.commands.jobs import JobName, Jobs
from hermes.errors import HermesError
from hermes.primitives.tasks import running
from hermes.schema.schedules import Instant, Job
from hermes.settings.load import load_secrets
from hermes.surfaces.cli.answer import DONE, FAILED, REFUSED
from hermes.surfaces.cli.logs import start as start_log
from hermes.surfaces.terminal.stderr_message import say
from hermes.surfaces.terminal.text import clean, one_line
from hermes.text.translation import shown_reason, translator

t = translator(__name__)


@command("cron run")
async def run_job(context: CommandContext, job: JobName) -> int:
    """Run a job now, here, and print its answer; exit code 3 if a call was not approved."""
    start_log()  # warnings go there; what runs is printed
    jobs = Jobs(context)
    jobs.find(job)
    app, book = jobs.app, jobs.book
    found, instant = book.by_hand(job)
    if not book.is_here(found):
        raise HermesError(
            t(
                "Job {id} runs on {place}, which has its folder.",
                id=found.id,
                place=found.place,
            ),
            hint=t(
                "Run it there, or move it here: hermes cron edit {id} --cwd DIR",
                id=found.id,
            ),
        )
    loop = _scheduler(app)
    book.store.settle()  # a run that a killed process left would be in the way
    taken = loop.claim(found, instant)
    if taken is None:
        raise HermesError(
            t("Job {id} is running.", id=found.id),
            hint=t("Wait until it ends; `hermes cron history` shows when."),
        )
    run = asyncio.ensure_future(loop.carry_out(found, taken))
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, run.cancel)
    await asyncio.wait({run})
    return _print_end(app, book, found, taken)


@command("cron daemon")
async def run_due_jobs(context: CommandContext) -> int:
    """Run what is due, until it is stopped."""
    start_log()
    app = context.app
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    app.bus.subscribe("schedule.started", lambda event: _print_run(event, "runs"))
    app.bus.subscribe(
        "schedule.ended", lambda event: _print_run(event, str(event["state"]))
    )
    loop = _scheduler(app)
    print(t("Running jobs when they are due. Ctrl-C stops."), flush=True)
    async with running(Presence(app, "cron").run()):
        await loop.run(stop)
    print(
        t(
            "Stopped. Jobs run again once `hermes cron daemon` or `hermes gateway run` is started."
        )
    )
    return DONE


@command("cron run-loop")
async def run_loop(context: CommandContext) -> int:
    """The same as daemon."""
    return await run_due_jobs.function(context)


def _print_end(app: App, book: JobBook, job: Job, taken: Instant) -> int:
    ended = next(one for one in book.store.history(job.id) if one.due == taken.due)
    refused = refused_calls(app, ended.session)
    if answer := answer_of(app, ended.session):
        print(clean(answer))
    if ended.reason:
        say(
            f"{job.name}: {ended.state}, {shown_reason(ended.reason)}.",
            alarming=ended.state != "done" or refused > 0,
        )
    if ended.delivery == "waiting":
        say(
            t(
                "The answer will be sent to {deliver} once a gateway is running.",
                deliver=job.deliver,
            ),
            alarming=False,
        )
    if ended.state != "done":
        return FAILED
    return REFUSED if refused else DONE


def _scheduler(app: App) -> ScheduleLoop:
    """The scheduler of this process, whose events others can see."""
    secrets = load_secrets(home=app.home)
    app.go_live(secrets, "cron")
    return ScheduleLoop(app, secrets)


def _print_run(event: Mapping[str, Any], what: str) -> None:
    at = datetime.fromtimestamp(float(event["ts"])).astimezone()
    reason = f": {one_line(str(event['reason']))}" if event.get("reason") else ""
    job = f"{event['job']} {one_line(str(event['name']))}"
    print(f"{at.strftime('%d %b %H:%M')}  {job}  {what}{reason}", flush=True)

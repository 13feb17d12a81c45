"""`hermes cron run` and `hermes cron daemon`: jobs run without a gateway."""

import argparse
import asyncio
import signal
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from hermes.app import App
from hermes.app.schedules.jobs import JobBook, answer_of, refused_calls
from hermes.app.schedules.scheduler import ScheduleLoop
from hermes.errors import HermesError
from hermes.schema.schedules import Instant, Job
from hermes.settings.load import load_secrets
from hermes.surfaces.cli.answer import DONE, FAILED, REFUSED
from hermes.surfaces.cli.cron_list import open_book
from hermes.surfaces.cli.logs import start as start_log
from hermes.surfaces.terminal.stderr_message import say
from hermes.surfaces.terminal.text import clean, one_line


def run(args: argparse.Namespace) -> int:
    start_log()  # warnings belong there; what runs is told in lines
    app, book = open_book()
    with app:
        return asyncio.run(
            _run_now(app, book, args.job) if args.action == "run" else _daemon(app)
        )


async def _run_now(app: App, book: JobBook, name: str) -> int:
    """Runs one job here, whatever the plan says. Ctrl-C stops it, and the history says so."""
    job, instant = book.by_hand(name)
    loop = _loop(app)
    book.store.settle()  # a run that a killed process left would be in the way
    taken = loop.claim(job, instant)
    if taken is None:
        raise HermesError(
            f"Job {job.id} is running.",
            hint="Wait for it; `hermes cron history` says when it has ended.",
        )
    running = asyncio.ensure_future(loop.carry_out(job, taken))
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, running.cancel)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, running.cancel)
    await asyncio.wait({running})
    return _say_end(app, book, job, taken)


def _say_end(app: App, book: JobBook, job: Job, taken: Instant) -> int:
    ended = next(one for one in book.store.history(job.id) if one.due == taken.due)
    refused = refused_calls(app, ended.session)
    if answer := answer_of(app, ended.session):
        print(clean(answer))
    if ended.reason:
        say(
            f"{job.name}: {ended.state}, {ended.reason}.",
            alarming=ended.state != "done" or refused > 0,
        )
    if ended.delivery == "waiting":
        say(
            f"The answer goes to {job.deliver} as soon as a gateway runs.",
            alarming=False,
        )
    if ended.state != "done":
        return FAILED
    return REFUSED if refused else DONE


async def _daemon(app: App) -> int:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    app.bus.subscribe("schedule.started", lambda event: _line(event, "runs"))
    app.bus.subscribe("schedule.ended", lambda event: _line(event, str(event["state"])))
    loop = _loop(app)
    print("Jobs run when they are due. Ctrl-C ends it.", flush=True)
    await loop.run(stop)
    print("Ended. Jobs rest until something runs them again.")
    return 0


def _loop(app: App) -> ScheduleLoop:
    """The loop of this process, which the outside can see."""
    secrets = load_secrets(home=app.home)
    app.go_live(secrets, "cron")
    return ScheduleLoop(app, secrets)


def _line(event: Mapping[str, Any], what: str) -> None:
    now = (
        datetime.fromtimestamp(float(event["ts"])).astimezone().strftime("%d %b %H:%M")
    )
    reason = f": {one_line(str(event['reason']))}" if event.get("reason") else ""
    print(
        f"{now}  {event['job']} {one_line(str(event['name']))}  {what}{reason}",
        flush=True,
    )

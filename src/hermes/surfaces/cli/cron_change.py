"""`hermes cron add`, `edit`, `pause`, `resume` and `remove`."""

import argparse
from typing import Any

import msgspec

from hermes.app import App
from hermes.app.schedules.form import JobForm, given
from hermes.app.schedules.jobs import JobBook, JobDraft
from hermes.errors import UsageError
from hermes.schedules.time_zones import ScheduleError
from hermes.schema.schedules import Instant, Job
from hermes.settings.load import current_folder
from hermes.surfaces.cli.cron_list import as_json, in_words, job_data, local, open_book
from hermes.surfaces.terminal.text import one_line

_WHO_RUNS = "Due jobs are run by `hermes gateway run`, or by `hermes cron daemon`."


def run(args: argparse.Namespace) -> int:
    app, book = open_book()
    with app:
        try:
            return _change(app, book, args)
        except ScheduleError as error:
            raise UsageError(error.message, hint=error.hint) from error


def _change(app: App, book: JobBook, args: argparse.Namespace) -> int:
    match args.action:
        case "add":
            first = not app.has_log or not book.store.any()
            wanted = _given(args)
            if "cwd" not in wanted:
                wanted["cwd"] = str(current_folder())
            job, planned = book.add(msgspec.convert(wanted, JobDraft))
            _tell(app, args, job, planned, "is made")
            if first and not args.json:
                print(_WHO_RUNS)
        case "edit":
            wanted = _given(args)
            if not wanted:
                raise UsageError(
                    "What should be changed?",
                    hint="Such as: hermes cron edit JOB --schedule 'at 9'",
                )
            job, planned = book.edit(args.job, **wanted)
            _tell(app, args, job, planned, "is changed")
        case "pause":
            _tell(app, args, book.pause(args.job), None, "is paused")
        case "resume":
            job, planned = book.resume(args.job)
            _tell(app, args, job, planned, "runs again")
        case _:
            _tell(app, args, book.remove(args.job), None, "is removed")
    return 0


def _given(args: argparse.Namespace) -> dict[str, Any]:
    """The fields of a job that the command line names."""
    named = {
        name: value
        for name in JobForm.__struct_fields__
        if (value := getattr(args, name)) is not None
    }
    return given(JobForm(**named))


def _tell(
    app: App, args: argparse.Namespace, job: Job, planned: Instant | None, what: str
) -> None:
    if args.json:
        as_json(job_data(job, planned))
        return
    print(f"Job {job.id} ({one_line(job.name)}) {what}.")
    if planned is not None:
        print(
            f"Next run: {in_words(planned.starts, app.clock.now())}, {local(planned.starts, job.zone)} ({job.zone})"
        )

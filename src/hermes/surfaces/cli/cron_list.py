"""`hermes cron list`, `show`, `next` and `history`: which jobs there are, when they run, and what became of it."""

import argparse
from collections.abc import Iterable
from itertools import islice
from typing import Any

import msgspec

from hermes.app import App, build
from hermes.app.schedules.jobs import JobBook, answer_of
from hermes.app.schedules.listing import next_by_job, starts, state_of
from hermes.errors import UsageError
from hermes.schedules.parse import understand
from hermes.schedules.recurrence import instants
from hermes.schedules.time_zones import ScheduleError, on_the_clock
from hermes.schedules.tokens import length
from hermes.schema.schedules import Instant, Job
from hermes.settings.load import find_home, load
from hermes.surfaces.terminal.text import (
    TextScreen,
    clean,
    cut,
    one_line,
    stdout_screen,
    table,
)

_NONE = (
    "There are no jobs yet. Make one: hermes cron add 'every weekday at 9' 'what to do'"
)
_STATES = {"done": "green", "failed": "red", "missed": "yellow", "skipped": "yellow"}


def open_book() -> tuple[App, JobBook]:
    """The app and its jobs. Nothing is made before there is something to keep."""
    home = find_home()
    app = build(load(home=home), home)
    return app, JobBook(app)


def run(args: argparse.Namespace) -> int:
    app, book = open_book()
    with app:
        match args.action:
            case "next":
                return _next(app, book, args)
            case "show":
                return _show(app, book, args)
            case "history":
                return _history(app, book, args)
            case _:
                return _list(app, book, args)


def in_words(at: float, now: float) -> str:
    """How far away an instant is."""
    seconds = at - now
    if seconds <= 0:
        return "now"
    for unit, size in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= size * (2 if unit == "day" else 1):
            count = round(seconds / size)
            return f"in {count} {unit}{'s' if count != 1 else ''}"
    return "in less than a minute"


def local(at: float, zone_name: str) -> str:
    """An instant on the clock on the wall."""
    return on_the_clock(at, zone_name).strftime("%a %d %b %Y %H:%M")


def _soon(at: float, zone_name: str, now: float) -> str:
    """The same without the year, if that is this one."""
    moment = on_the_clock(at, zone_name)
    same = moment.year == on_the_clock(now, zone_name).year
    return moment.strftime("%a %d %b %H:%M" if same else "%d %b %Y %H:%M")


def as_json(data: Any) -> None:
    print(msgspec.json.format(msgspec.json.encode(data), indent=2).decode())


def job_data(job: Job, planned: Instant | None) -> dict[str, Any]:
    """A job for a program."""
    coming = planned.starts if planned else None
    return msgspec.to_builtins(job) | {"next": coming, "state": state_of(job, planned)}


def _list(app: App, book: JobBook, args: argparse.Namespace) -> int:
    jobs = book.store.jobs() if app.has_log else []
    planned = next_by_job(book.store) if jobs else {}
    show_all = getattr(args, "all", False)
    shown = [
        job for job in jobs if show_all or state_of(job, planned.get(job.id)) != "ended"
    ]
    if getattr(args, "json", False):
        as_json({"jobs": [job_data(job, planned.get(job.id)) for job in shown]})
        return 0
    screen = stdout_screen()
    if not shown:
        ended = len(jobs) - len(shown)
        print(
            f"No job is active; {ended} have ended: hermes cron list --all"
            if ended
            else _NONE
        )
        return 0
    now = app.clock.now()
    rows = [("JOB", "NAME", "SCHEDULE", "NEXT RUN")]
    rows += [
        _row(job, planned.get(job.id), now)
        for job in sorted(shown, key=lambda job: starts(planned.get(job.id)))
    ]
    for number, line in enumerate(_lines(rows, screen)):
        print(screen.style.bold(line) if not number and not screen.is_narrow else line)
    return 0


def _lines(rows: list[tuple[str, str, str, str]], screen: TextScreen) -> Iterable[str]:
    if not screen.is_narrow:
        return (cut(line, screen.columns) for line in table(rows))
    return (
        line
        for row in rows[1:]
        for line in (cut(f"{row[0]}  {row[1]}", screen.columns), f"  {row[3]}")
    )


def _row(job: Job, planned: Instant | None, now: float) -> tuple[str, str, str, str]:
    coming = f"paused: {job.paused}" if job.paused else "ended"
    if planned and not job.paused:
        coming = (
            f"{in_words(planned.starts, now)}, {_soon(planned.starts, job.zone, now)}"
        )
    return (
        job.id,
        cut(one_line(job.name), 20),
        cut(one_line(job.schedule), 24),
        one_line(coming),
    )


def _show(app: App, book: JobBook, args: argparse.Namespace) -> int:
    job = book.store.find(args.job)
    planned = next(iter(book.store.planned(job.id)), None)
    past = book.store.history(job.id, limit=5)
    if args.json:
        as_json(job_data(job, planned) | {"history": past})
        return 0
    style, now = stdout_screen().style, app.clock.now()
    limits = [
        f"stopped after {length(job.timeout)}",
        f"at most {job.budget}" if job.budget else "no cap of its own",
    ]
    limits += [f"starts up to {length(job.jitter)} later"] if job.jitter else []
    facts = [
        ("schedule", f"{job.schedule} ({job.zone})"),
        ("state", f"paused: {job.paused}" if job.paused else state_of(job, planned)),
        (
            "missed runs",
            {
                "skip": "are left out",
                "once": "the last is made up for",
                "all": "are made up for",
            }[job.catch_up],
        ),
        ("delivered to", job.deliver),
        ("limits", ", ".join(limits)),
        ("tools", ", ".join(job.toolsets) or "the usual ones"),
        ("model", job.model or "the usual one"),
        ("folder", job.cwd or "your home folder"),
        ("made by", job.by),
    ]
    print(style.bold(f"{job.id}  {one_line(job.name)}"))
    for name, value in facts:
        print(f"  {name:<13} {one_line(value)}")
    print(f"\n{clean(job.prompt)}\n")
    if planned and not job.paused:
        print(
            f"Next: {in_words(planned.starts, now)}, {local(planned.starts, job.zone)}"
        )
    for line in _past(past, {job.id: job}):
        print(line)
    return 0


def _next(app: App, book: JobBook, args: argparse.Namespace) -> int:
    now = app.clock.now()
    rule, where = _meant(app, book, args, now)
    coming = list(islice(instants(rule, where, now), max(1, min(args.count, 1000))))
    if args.json:
        as_json({"zone": where, "rule": rule, "next": coming})
        return 0
    for at in coming:
        print(f"{local(at, where)}  {in_words(at, now)}")
    print(stdout_screen().style.dim(f"({where})"))
    return 0


def _meant(
    app: App, book: JobBook, args: argparse.Namespace, now: float
) -> tuple[Any, str]:
    """The rule of a job, or of a schedule that is tried out."""
    if app.has_log:
        try:
            job = book.store.find(args.what)
        except UsageError as error:
            if "may be any of" in error.message:
                raise
        else:
            return job.rule, args.zone or job.zone
    try:
        return understand(args.what, now, args.zone or book.zone)
    except ScheduleError as error:
        raise UsageError(error.message, hint=error.hint) from error


def _history(app: App, book: JobBook, args: argparse.Namespace) -> int:
    job = book.store.find(args.job).id if args.job else ""
    past = book.store.history(job, limit=max(1, args.limit)) if app.has_log else []
    if args.json:
        answers = [
            msgspec.to_builtins(one) | {"answer": answer_of(app, one.session)}
            for one in past
        ]
        as_json({"history": answers})
        return 0
    jobs = {one.id: one for one in book.store.jobs(removed=True)} if past else {}
    for line in _past(past, jobs):
        print(line)
    if not past:
        print("Nothing has run yet.")
    elif job and past[0].session and (answer := answer_of(app, past[0].session)):
        print(f"\nThe last answer:\n{clean(answer)}")
    return 0


def _past(past: list[Instant], jobs: dict[str, Job]) -> Iterable[str]:
    """What became of instants, a line each."""
    style = stdout_screen().style
    colours = {"green": style.green, "red": style.red, "yellow": style.yellow}
    for one in past:
        job = jobs.get(one.job)
        colour = colours.get(_STATES.get(one.state, ""), style.dim)
        took = (
            f" {length(max(1, round(one.ended - one.began)))}"
            if one.began and one.ended
            else ""
        )
        many = f" x{one.repeats:,}" if one.repeats > 1 else ""
        facts = [
            one.cause if one.cause != "schedule" else "",
            one.reason,
            _delivered(one),
            one.session,
        ]
        more = "; ".join(one_line(fact) for fact in facts if fact)
        when = local(one.due, job.zone if job else "UTC")
        name = cut(one_line(job.name), 24) if job else one.job
        yield f"{when}  {colour(f'{one.state}{many}')}{took}  {name}{style.dim(f'  {more}') if more else ''}"


def _delivered(one: Instant) -> str:
    if one.delivery == "waiting":
        return "waits for a gateway to deliver it"
    return (
        one.delivery
        if not one.delivery or one.delivery.startswith("not ")
        else f"to {one.delivery}"
    )

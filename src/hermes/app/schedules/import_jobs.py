"""Imports the schedules of other agents as jobs. They are paused until the user has looked at them, because two agents
with the same job would do everything twice."""

from datetime import datetime

import msgspec

from hermes.app.schedules.jobs import JobBook, JobDraft
from hermes.errors import HermesError
from hermes.learning.imports.json_fields import Object, moment, text
from hermes.learning.imports.sources import SkippedItem
from hermes.primitives.untyped import object_in
from hermes.settings.gateway import CHAT_PLATFORMS
from hermes.text.translation import translator

t = translator(__name__)


RESTING = t.logged("imported; look at it, then resume it")
_MIN_INTERVAL_MINUTES = 1


class _Schedule(msgspec.Struct):
    kind: str = ""
    expr: str = ""
    minutes: float = 0
    run_at: str = ""


class _Origin(msgspec.Struct):
    platform: str = ""
    chat_id: str | int = ""


class _Repeat(msgspec.Struct):
    times: int | None = None
    completed: int = 0


class _Job(msgspec.Struct):
    name: str | None = ""
    prompt: str | None = ""
    schedule: _Schedule | str | None = None
    skills: list[str] | None = None
    script: str | None = None
    deliver: str | None = ""
    origin: _Origin | None = None
    repeat: _Repeat | None = None


class _File(msgspec.Struct):
    jobs: list[msgspec.Raw] = []


def read_jobs(content: str, left: list[SkippedItem]) -> tuple[JobDraft, ...]:
    """The jobs in a `jobs.json` of Hermes Agent (Nous Research), as drafts. Those that can't be imported are named."""
    try:
        entries = msgspec.json.decode(content, type=_File).jobs
    except msgspec.MsgspecError:
        left.append(SkippedItem("schedules", t.logged("the file can't be read")))
        return ()
    found: list[JobDraft] = []
    for number, entry in enumerate(entries, 1):
        try:
            found.append(_draft(msgspec.json.decode(entry, type=_Job)))
        except (msgspec.MsgspecError, ValueError) as error:
            left.append(SkippedItem(f"schedule {number}", str(error)))
    return tuple(found)


def read_openclaw_jobs(
    jobs: list[Object], default_agent: str, left: list[SkippedItem]
) -> tuple[JobDraft, ...]:
    """The jobs of OpenClaw as drafts. Those that can't be imported are named."""
    found: list[JobDraft] = []
    for job in jobs:
        try:
            found.append(_openclaw_draft(job, default_agent))
        except (ValueError, OverflowError) as error:
            name = text(job.get("name")) or text(job.get("id"))
            left.append(SkippedItem(f"schedule {name[:60]}", str(error)))
    return tuple(found)


def _openclaw_draft(job: Object, default_agent: str) -> JobDraft:
    payload, schedule = object_in(job, "payload"), object_in(job, "schedule")
    if payload.get("kind") not in ("agentTurn", "systemEvent"):
        raise ValueError(
            t.logged(
                "it is a job of the kind {text}",
                text=repr(text(payload.get("kind"))[:40]),
            )
        )
    name, agent = text(job.get("name")), text(job.get("agentId")) or default_agent
    delivery = object_in(job, "delivery")
    channel, to = text(delivery.get("channel")), text(delivery.get("to"))
    is_sent = delivery.get("mode") == "announce" and channel in CHAT_PLATFORMS and to
    return JobDraft(
        schedule=_openclaw_schedule(schedule),
        prompt=(text(payload.get("message")) or text(payload.get("text"))).strip(),
        name=name if agent == default_agent or not name else f"{name} ({agent})",
        zone=text(schedule.get("tz")),
        deliver=f"{channel}:{to}" if is_sent else "none",
        by="import",
    )


def _openclaw_schedule(schedule: Object) -> str:
    every, at = schedule.get("everyMs"), schedule.get("at") or schedule.get("atMs")
    match schedule.get("kind"):
        case "cron" if text(schedule.get("expr")):
            return text(schedule.get("expr"))
        case "every" if isinstance(every, int | float) and every > 0:
            minutes = max(_MIN_INTERVAL_MINUTES, round(every / 60_000))
            return f"every {minutes} minutes"
        case "at" if moment(at) > 0:
            local = datetime.fromtimestamp(moment(at)).astimezone()
            return local.strftime("%Y-%m-%d %H:%M")
        case _:
            raise ValueError(t.logged("it has no schedule"))


def fitting(
    book: JobBook, drafts: tuple[JobDraft, ...], known: bool, left: list[SkippedItem]
) -> tuple[JobDraft, ...]:
    """The drafts that are valid and do not exist yet. `known` tells whether there is a database to look in."""
    jobs = book.store.jobs() if known else []
    here, names = (
        {(job.prompt, job.schedule) for job in jobs},
        {job.name.casefold() for job in jobs},
    )
    found: list[JobDraft] = []
    for draft in drafts:
        what = f"schedule {draft.name or draft.prompt[:40]}"
        try:
            job = book.preview(draft)
        except HermesError as error:
            left.append(SkippedItem(what, error.message))
            continue
        if (job.prompt, job.schedule) in here:
            left.append(SkippedItem(what, t.logged("it is already here")))
        elif job.name.casefold() in names:
            left.append(
                SkippedItem(what, t.logged("there is already a job with that name"))
            )
        else:
            names.add(job.name.casefold())
            found.append(draft)
    return tuple(found)


def _draft(job: _Job) -> JobDraft:
    if job.script:
        raise ValueError(t.logged("it runs a script of the other agent"))
    skills = "".join(
        f"Use the skill {name}. " for name in job.skills or ()
    )  # not translated
    left = (
        (job.repeat.times or 0) - job.repeat.completed
        if job.repeat and job.repeat.times
        else 0
    )
    return JobDraft(
        schedule=_schedule_text(job.schedule),
        prompt=f"{skills}{job.prompt or ''}".strip(),
        name=job.name or "",
        deliver=_target(job),
        times=max(0, left),
        by="import",
    )


def _schedule_text(schedule: _Schedule | str | None) -> str:
    match schedule:
        case str():
            return schedule
        case _Schedule(kind="cron"):
            return schedule.expr
        case _Schedule(kind="interval"):
            return (
                f"every {max(_MIN_INTERVAL_MINUTES, round(schedule.minutes))} minutes"
            )
        case _Schedule(kind="once", run_at=at) if at:
            moment = datetime.fromisoformat(at)
            local = moment.astimezone() if moment.tzinfo else moment
            return local.strftime("%Y-%m-%d %H:%M")
        case _:
            raise ValueError(t.logged("it has no schedule"))


def _target(job: _Job) -> str:
    """Where a job delivers. Only the other agent knows what `origin` or a platform alone means."""
    target = job.deliver or "local"
    if target == "origin" and job.origin and job.origin.platform:
        return f"{job.origin.platform}:{job.origin.chat_id}"
    return target if ":" in target else "none"

"""Decides which instant of a job comes next, and what happens to missed ones."""

import hashlib
from datetime import datetime
from itertools import takewhile
from typing import NamedTuple

from msgspec.structs import replace

from hermes.schedules.recurrence import instants, next_after
from hermes.schedules.time_zones import zone
from hermes.schema.schedules import Days, Every, Instant, Job, Rule
from hermes.text.translation import translator

t = translator(__name__)


GRACE_S = 90.0
"""Seconds that an instant may be late and still count as on time."""

DAY_S = 86_400.0
_MAX_COUNTED_INSTANTS = 100_000  # consecutive ones, counted one by one
_MAX_MISSED_ROWS = (
    100  # missed instants that get a row each; more become one row with a count
)

_NOTHING_RAN = t.logged("nothing ran the schedules at that time")


class Backlog(NamedTuple):
    """What an overdue job has to do now: the instants to run, and how the others ended."""

    run: tuple[Instant, ...]
    over: tuple[Instant, ...]


def following(job: Job, after: float) -> Instant | None:
    """Returns the job's next instant after a moment; None if there is none, or the job is paused or
    over.
    """
    if job.paused or job.removed:
        return None
    due = next_after(job.rule, job.zone, after)
    return (
        None if due is None else Instant(job.id, due, due + delay(job, due), "schedule")
    )


def restarted_interval(
    job: Job, due: float, now: float, ran: set[float]
) -> Rule | None:
    """Returns the rule restarted from now, if the job's next instant is further away than its
    interval; else None.

    That happens when a clock that was ahead is set back. No instant runs twice.
    """
    rule = job.rule
    if isinstance(rule, Every) and due - now > rule.seconds + 1:
        step = rule.seconds / (
            len(ran) + 1
        )  # at least one of these starts repeats no instant that has run
        since = now
        while any((at - since) % rule.seconds == 0 for at in ran):
            since += step
        return Every(rule.seconds, since)
    if isinstance(rule, Days) and due - now > (rule.days + 1) * DAY_S:
        today = datetime.fromtimestamp(now, zone(job.zone)).date().isoformat()
        return replace(rule, since=today) if today < rule.since else None
    return None


def delay(job: Job, due: float) -> float:
    """Returns the jitter of one instant, the same in every process: jobs with one schedule don't
    start together.
    """
    digest = hashlib.sha256(f"{job.id} {due}".encode()).digest()
    return job.jitter * int.from_bytes(digest[:8], "big") / 2**64


def backlog(job: Job, due: float, now: float) -> Backlog:
    """Applies the job's policy to `due`, which is late, and to every instant since."""
    late = [due]
    for at in takewhile(lambda at: at <= now, instants(job.rule, job.zone, due)):
        late.append(at)
        if len(late) == _MAX_COUNTED_INSTANTS:
            break
    most = {"skip": 0, "once": 1, "all": job.catch_up_most}[job.catch_up]
    split = max(0, len(late) - most)
    chosen = tuple(Instant(job.id, at, now, "catch-up") for at in late[split:])
    return Backlog(chosen, _missed(job, late[:split], now, replaced=bool(chosen)))


def _missed(
    job: Job, late: list[float], now: float, *, replaced: bool
) -> tuple[Instant, ...]:
    if not late:
        return ()
    policy = t.logged("catch-up is off for this job")
    if replaced:
        policy = t.logged("later ones are caught up on")
    reason = f"{_NOTHING_RAN}; {policy}"
    if len(late) <= _MAX_MISSED_ROWS:
        return tuple(_ended(job, at, now, reason, 1) for at in late)
    count = t.logged("{count:,} instants in a row", count=len(late))
    if len(late) == _MAX_COUNTED_INSTANTS:
        count = t.logged("at least {count:,} instants in a row", count=len(late))
    return (_ended(job, late[0], now, f"{reason} ({count})", len(late)),)


def _ended(job: Job, due: float, now: float, reason: str, repeats: int) -> Instant:
    return Instant(job.id, due, due, "schedule", "missed", reason, repeats, ended=now)

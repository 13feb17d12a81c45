"""Schedules as data: rules, jobs, their instants, and their events."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, TypeAlias

import msgspec
from msgspec import Meta

from hermes.schema.event_base import Event

CatchUp: TypeAlias = Literal["skip", "once", "all"]
State: TypeAlias = Literal["planned", "running", "done", "failed", "skipped", "missed"]
Cause: TypeAlias = Literal["schedule", "catch-up", "hand"]
NOWHERE = "none"
"""The delivery target of a job whose result is only stored."""


class Cron(msgspec.Struct, frozen=True, tag="cron"):
    """Fires whenever one of these cron expressions (five fields) matches the wall clock."""

    expressions: tuple[str, ...]


class Every(msgspec.Struct, frozen=True, tag="every"):
    """Fires after so many seconds, counted from an instant."""

    seconds: float
    since: float


class Days(msgspec.Struct, frozen=True, tag="days"):
    """Fires every so many days, counted from a day (YYYY-MM-DD), at wall-clock times (HH:MM)."""

    days: int
    since: str
    times: tuple[str, ...]


class Once(msgspec.Struct, frozen=True, tag="once"):
    """Fires at one instant."""

    at: float


Rule: TypeAlias = Cron | Every | Days | Once


class Job(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Work that is done at set times."""

    id: str
    name: str
    prompt: str
    schedule: str
    """As the user wrote it."""
    rule: Rule
    zone: str
    created: float
    catch_up: CatchUp = "once"
    """What happens to missed instants."""
    catch_up_most: int = 10
    """With `all`: the maximum, newest first."""
    jitter: float = 0.0
    """Seconds within which the start is delayed, by a different amount for each instant."""
    timeout: float = 3_600.0
    budget: str = ""
    """The most that one run may use: `$0.50` or `200k tokens`."""
    deliver: str = NOWHERE
    """Where the result goes: `none`, `file:PATH`, `session:ID`, or a chat such as `telegram:123`."""
    toolsets: tuple[str, ...] = ()
    """The only toolsets it has; empty for the usual ones."""
    model: str = ""
    cwd: str = ""
    place: str = ""
    """The only machine that runs it, because its folder is there; empty for any."""
    times: int = 0
    """How many more runs; 0 for no end."""
    by: str = "user"
    """Who created it: `user`, `import`, or the session of an agent."""
    paused: str = ""
    """Why it is paused; empty if it is not."""
    removed: bool = False


class Instant(msgspec.Struct, frozen=True):
    """One time a job was planned for, and its result. `repeats` more than 1: so many in a row, from
    `due` on.
    """

    job: str
    due: float
    starts: float
    cause: Cause
    state: State = "planned"
    reason: str = ""
    repeats: int = 1
    session: str = ""
    owner: str = ""
    expires: float = 0.0
    began: float = 0.0
    ended: float = 0.0
    delivery: str = ""


class ScheduleChanged(Event, frozen=True, kw_only=True):
    """A job was created, changed, paused, resumed or removed."""

    topic: ClassVar[str] = "schedule.changed"
    durable: ClassVar[bool] = False
    sensitive: ClassVar[tuple[str, ...]] = ("name",)

    job: Annotated[str, Meta(description="Id of the job.")]
    name: Annotated[str, Meta(description="Its name.")]
    change: Annotated[
        Literal["added", "edited", "paused", "resumed", "removed", "ended"],
        Meta(description="What happened to it."),
    ]
    next: Annotated[float | None, Meta(description="When it runs next.")] = None


class ScheduleStarted(Event, frozen=True, kw_only=True):
    """A job started to run."""

    topic: ClassVar[str] = "schedule.started"
    durable: ClassVar[bool] = False
    sensitive: ClassVar[tuple[str, ...]] = ("name",)

    job: Annotated[str, Meta(description="Id of the job.")]
    name: Annotated[str, Meta(description="Its name.")]
    due: Annotated[float, Meta(description="The instant it was planned for.")]
    session: Annotated[str, Meta(description="Session that does the work.")]
    cause: Annotated[
        Cause, Meta(description="Its schedule, catching up, or somebody by hand.")
    ] = "schedule"


class ScheduleEnded(Event, frozen=True, kw_only=True):
    """A planned instant is over; the table of instants says the same."""

    topic: ClassVar[str] = "schedule.ended"
    reasons: ClassVar[tuple[str, ...]] = ("reason", "delivery")
    durable: ClassVar[bool] = False
    sensitive: ClassVar[tuple[str, ...]] = ("name", "reason")

    job: Annotated[str, Meta(description="Id of the job.")]
    name: Annotated[str, Meta(description="Its name.")]
    due: Annotated[float, Meta(description="The instant it was planned for.")]
    state: Annotated[
        State, Meta(description="How it ended: done, failed, skipped or missed.")
    ]
    reason: Annotated[str, Meta(description="Why, in words.")] = ""
    repeats: Annotated[
        int, Meta(description="How many instants in a row this stands for.")
    ] = 1
    session: Annotated[str, Meta(description="Session that did the work.")] = ""
    delivery: Annotated[
        str, Meta(description="Where the result went, or why it did not.")
    ] = ""


class ScheduleWaiting(Event, frozen=True, kw_only=True):
    """A planned instant is due, and waits for the machine that has the job's folder: nothing runs jobs there."""

    topic: ClassVar[str] = "schedule.waiting"
    reasons: ClassVar[tuple[str, ...]] = ("reason",)
    durable: ClassVar[bool] = False
    sensitive: ClassVar[tuple[str, ...]] = ("name",)

    job: Annotated[str, Meta(description="Id of the job.")]
    name: Annotated[str, Meta(description="Its name.")]
    due: Annotated[float, Meta(description="The instant it was planned for.")]
    place: Annotated[str, Meta(description="The machine that it waits for.")]
    reason: Annotated[str, Meta(description="Why, and what to do, in words.")]


SCHEDULE_EVENTS: tuple[type[Event], ...] = (
    ScheduleChanged,
    ScheduleStarted,
    ScheduleWaiting,
    ScheduleEnded,
)

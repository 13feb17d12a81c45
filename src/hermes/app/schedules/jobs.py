"""Jobs: created, edited, paused, resumed and removed. Each change plans the job's next instant in the same transaction,
so that the table always shows what is planned."""

import hashlib
import itertools
import re
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import msgspec

from hermes.app.app import App
from hermes.app.turn_placement import place_of, this_place
from hermes.core.budget import parse_amount
from hermes.errors import StoreError, UsageError
from hermes.schedules.due_and_missed import following
from hermes.schedules.parse import understand
from hermes.schedules.time_zones import ScheduleError, local_zone
from hermes.schema.event_base import Event, payload_of
from hermes.schema.events import ApprovalAnswered
from hermes.schema.messages import AssistantMessage
from hermes.schema.schedules import (
    NOWHERE,
    CatchUp,
    Instant,
    Job,
    Rule,
    ScheduleChanged,
)
from hermes.settings.gateway import CHAT_PLATFORMS
from hermes.settings.load import environment
from hermes.text.translation import translator

if TYPE_CHECKING:
    from hermes.store.schedules import ScheduleStore

t = translator(__name__)

_MAX_NAME_CHARS = 60
_DONE = t.logged("it has made all its runs")
BY_PERSON = t.logged("by you")
"""The reason of a job that a person paused, which the page leaves out."""
_SET_BACK = t.logged("the clock was set back")

Change: TypeAlias = Literal["added", "edited", "paused", "resumed", "removed", "ended"]
JobState: TypeAlias = Literal["active", "paused", "ended"]


class JobDraft(msgspec.Struct, frozen=True, kw_only=True):
    """A job to be created. Omitted fields are taken from the settings."""

    schedule: str
    prompt: str
    name: str = ""
    zone: str = ""
    catch_up: CatchUp | None = None
    jitter: float = 0.0
    timeout: float | None = None
    budget: str | None = None
    deliver: str = NOWHERE
    toolsets: tuple[str, ...] = ()
    model: str = ""
    cwd: str = ""
    times: int = 0
    by: str = "user"


class JobBook:
    """The jobs of one home."""

    def __init__(self, app: App) -> None:
        self._app = app

    @property
    def store(self) -> "ScheduleStore":
        """The tables."""
        return self._app.store.schedules

    @cached_property
    def zone(self) -> str:
        """The time zone of schedules that name none."""
        return self._app.settings.schedules.timezone or local_zone(environment())

    def add(self, draft: JobDraft, *, paused: str = "") -> tuple[Job, Instant | None]:
        """Creates a job. Returns it with its first instant. Raises ScheduleError."""
        job = msgspec.structs.replace(self.preview(draft), paused=paused)
        name = self._free_name(job.name, given=bool(draft.name.strip()))
        job = msgspec.structs.replace(job, id=self._free_id(job.id), name=name)
        planned = following(job, self._app.clock.now())
        self.store.put(job, dropped="", following=planned)
        self.changed(job, "added", planned)
        return job, planned

    def preview(self, draft: JobDraft) -> Job:
        """The job that a draft would become. Raises ScheduleError; writes nothing."""
        settings, now = self._app.settings.schedules, self._app.clock.now()
        rule, zone = understand(draft.schedule, now, draft.zone or self.zone)
        name = " ".join((draft.name or draft.prompt).split())
        return self._checked(
            Job(
                id=self._new_id(),
                name=name
                if len(name) <= _MAX_NAME_CHARS
                else f"{name[: _MAX_NAME_CHARS - 1]}…",
                prompt=draft.prompt.strip(),
                schedule=" ".join(draft.schedule.split()),
                rule=rule,
                zone=zone,
                created=now,
                catch_up=draft.catch_up or settings.catch_up,
                jitter=draft.jitter,
                timeout=settings.timeout if draft.timeout is None else draft.timeout,
                budget=settings.budget if draft.budget is None else draft.budget,
                deliver=draft.deliver or NOWHERE,
                toolsets=draft.toolsets,
                model=draft.model,
                cwd=draft.cwd,
                place=self._place(draft.cwd, draft.deliver),
                times=draft.times,
                by=draft.by,
            )
        )

    def _new_id(self) -> str:
        return hashlib.sha256(self._app.ids.session().encode()).hexdigest()[:6]

    def _free_id(self, made: str) -> str:
        """The id, if no job has it or had it; otherwise another one. A job is saved over one of the same id."""
        taken = {job.id for job in self.store.jobs(removed=True)}
        while made in taken:
            made = self._new_id()
        return made

    def edit(self, name: str, /, **changes: Any) -> tuple[Job, Instant | None]:
        """Changes the given fields of a job. A new schedule or time zone is parsed again."""
        found = self.store.find(name)
        if {"schedule", "zone"} & changes.keys():
            schedule, zone = (
                changes.get("schedule", found.schedule),
                changes.get("zone") or found.zone,
            )
            changes["rule"], changes["zone"] = understand(
                schedule, self._app.clock.now(), zone
            )
        if "name" in changes:
            changes["name"] = self._free_name(changes["name"], given=True, but=found.id)
        if {"cwd", "deliver"} & changes.keys():
            changes["place"] = self._place_after(found, changes)
        self._checked(msgspec.structs.replace(found, **changes))
        return self._change(found, "edited", t.logged("the job was changed"), **changes)

    def pause(self, name: str, *, why: str = BY_PERSON) -> Job:
        """Pauses a job until it is resumed."""
        return self._change(
            self.store.find(name), "paused", t.logged("the job was paused"), paused=why
        )[0]

    def pause_broken(self, job: Job, why: str) -> None:
        """Pauses a job that can't run as it is."""
        self._change(job, "paused", why, paused=why)

    def replan(self, job: Job, coming: Instant) -> None:
        """Replaces an instant that was planned by a clock which was ahead."""
        now = self._app.clock.now()

        def plan(found: Job) -> Instant | None:
            return coming if found == job else following(found, now)

        found, planned = self.store.change(
            job.id, lambda found: found, plan, dropped=_SET_BACK
        )
        self.changed(found, "edited", planned)

    def restart_interval(self, job: Job, rule: Rule) -> None:
        """Restarts a job's interval from now, after the clock was set back."""
        self._change(job, "edited", _SET_BACK, rule=rule)

    def resume(self, name: str) -> tuple[Job, Instant]:
        """Resumes a job, from its next instant on."""
        found, now = self.store.find(name), self._app.clock.now()

        def plan(job: Job) -> Instant:
            planned = following(job, now)
            if planned is None:
                hint = t.later(
                    "Give it another: {command}",
                    command=t.later(
                        "hermes cron edit {id} --schedule '...'", id=job.id
                    ),
                )
                raise ScheduleError(
                    t.later("{name!r} has no runs left.", name=job.name), hint=hint
                )
            return planned

        job, planned = self.store.change(
            found.id, _awake, plan, dropped=t.logged("the job was resumed")
        )
        self.changed(job, "resumed", planned)
        return job, planned

    def remove(self, name: str) -> Job:
        """Removes a job. Its past runs stay in the history."""
        return self._change(
            self.store.find(name),
            "removed",
            t.logged("the job was removed"),
            removed=True,
        )[0]

    def by_hand(self, name: str) -> tuple[Job, Instant]:
        """An instant for now, also of a paused job. The caller claims it, or plans it for the loop."""
        job, now = self.store.find(name), self._app.clock.now()
        return job, Instant(job.id, now, now, "hand")

    def is_here(self, job: Job) -> bool:
        """Whether this machine may run a job."""
        is_alone = not self._app.settings.store.url
        return is_alone or job.place in ("", this_place(self._app))

    def _place_after(self, found: Job, changes: Mapping[str, Any]) -> str:
        """The machine of a job after an edit. Only another folder moves a job that works in a machine's own folder."""
        if "cwd" not in changes and place_of(self._app, found.cwd):
            return found.place
        folder = changes.get("cwd", found.cwd)
        return self._place(folder, changes.get("deliver", found.deliver))

    def _place(self, folder: str, target: str) -> str:
        """The machine that has the folder of a job, and the file for its results."""
        kind, _, path = target.partition(":")
        file = path if kind == "file" else ""
        return place_of(self._app, folder) or place_of(self._app, file)

    def ran(self, job: Job) -> Job:
        """The job after it has begun another scheduled run."""
        if not job.times:
            return job
        left = job.times - 1
        return msgspec.structs.replace(job, times=left, paused="" if left else _DONE)

    def changed(self, job: Job, change: Change, planned: Instant | None = None) -> None:
        """Tells the bus."""
        self.publish(
            ScheduleChanged(
                job=job.id,
                name=job.name,
                change=change,
                next=planned.due if planned else None,
            )
        )

    def publish(self, event: Event) -> None:
        """Publishes an event of the schedules."""
        self._app.bus.publish(event.topic, payload_of(event))

    def _free_name(self, name: str, *, given: bool, but: str = "") -> str:
        """The name, if no other job has it. Otherwise a generated name gets a number, and a given one is rejected."""
        taken = {
            job.name.casefold(): job.id for job in self.store.jobs() if job.id != but
        }
        if name.casefold() not in taken:
            return name
        if given:
            hint = t.later(
                "Choose another name, or change the existing job: {command}",
                command=f"hermes cron edit {taken[name.casefold()]}",
            )
            raise ScheduleError(
                t.later(
                    "There is already a job called {name!r} ({taken}).",
                    name=name,
                    taken=taken[name.casefold()],
                ),
                hint=hint,
            )
        numbered = (f"{name} ({number})" for number in itertools.count(2))
        return next(one for one in numbered if one.casefold() not in taken)

    def _checked(self, job: Job) -> Job:
        """The job, if it is valid."""
        _check_fields(job)
        if job.deliver != NOWHERE:
            self._check_target(job.deliver)
        return job

    def _check_target(self, target: str) -> None:
        """Raises ScheduleError for a target that nothing can be delivered to."""
        kind, _, place = target.partition(":")
        if kind == "file" and place:
            return
        if kind == "session" and place:
            try:
                self._app.store.sessions.find(place)
            except (StoreError, UsageError) as error:
                raise ScheduleError(error.words, hint=error.hint_words) from error
            return
        platforms = (*CHAT_PLATFORMS, *self._app.settings.gateway.platforms)
        if place and (kind in platforms or self._may_be_of_plugin(kind)):
            return
        hint = t.later(
            "Use none, file:PATH, session:ID, or a chat such as telegram:123456 ({platforms}).",
            platforms=", ".join(CHAT_PLATFORMS),
        )
        raise ScheduleError(
            t.later("Hermes can't deliver to {target!r}.", target=target), hint=hint
        )

    def _may_be_of_plugin(self, platform: str) -> bool:
        """Whether a plugin may provide that platform. Its name is known only once the plugin's code has run."""
        home = self._app.home
        if (
            not re.fullmatch(r"[a-z][a-z0-9_-]*", platform)
            or not (home.root / "plugins.json").exists()
        ):
            return False
        from hermes.plugins import PluginRegistry

        enabled = (
            plugin
            for plugin in PluginRegistry(home).every()
            if plugin.state == "enabled"
        )
        return any(
            (plugin.folder / "gateway" / "adapter.py").is_file() for plugin in enabled
        )

    def _change(
        self, job: Job, change: Change, dropped: str, /, **fields: Any
    ) -> tuple[Job, Instant | None]:
        """Changes these fields, and keeps what others have changed meanwhile."""
        now = self._app.clock.now()
        changed, planned = self.store.change(
            job.id,
            lambda found: msgspec.structs.replace(found, **fields),
            lambda found: following(found, now),
            dropped=dropped,
        )
        self.changed(changed, change, planned)
        return changed, planned


def _awake(job: Job) -> Job:
    return msgspec.structs.replace(
        job, paused="", times=1 if job.paused == _DONE else job.times
    )


def answer_of(app: App, session: str) -> str:
    """The answer of an earlier run."""
    rows = app.store.log.every_event(session) if session else ()
    texts = [
        row.event.text.strip()
        for row in rows
        if isinstance(row.event, AssistantMessage)
    ]
    return next((text for text in reversed(texts) if text), "")


def refused_calls(app: App, session: str) -> int:
    """How many calls of a run were denied because nobody could be asked."""
    rows = app.store.log.every_event(session) if session else ()
    return sum(
        isinstance(row.event, ApprovalAnswered) and row.event.answer == "deny"
        for row in rows
    )


def _check_fields(job: Job) -> None:
    """Raises ScheduleError for a field that can't be stored."""
    if not job.prompt:
        raise ScheduleError(
            t.later("The task is empty."),
            hint=t.later("Say what the job should do, in a sentence or more."),
        )
    if not 0 < job.timeout <= 86_400 or not 0 <= job.jitter <= 86_400:
        raise ScheduleError(
            t.later("Timeout and jitter can be up to a day."),
            hint=t.later("Such as: 10m, or 90s."),
        )
    if job.budget:
        try:
            parse_amount(job.budget)
        except ValueError as error:
            raise ScheduleError(
                f"{error}.", hint=t.later("Such as: '$0.50', or '200k tokens'.")
            ) from error
    if job.toolsets:
        from hermes.tools.toolsets import (
            TOOLSETS,
        )  # imports all tools, which a list of jobs does not need

        unknown = set(job.toolsets) - {one.name for one in TOOLSETS}
        if unknown:
            raise ScheduleError(
                t.later("There is no toolset {name!r}.", name=min(unknown)),
                hint=t.later("`hermes tools` lists them."),
            )
    if job.cwd and not Path(job.cwd).is_absolute():
        raise ScheduleError(
            t.later("{cwd!r} is not an absolute path.", cwd=job.cwd),
            hint=t.later("Begin it with a slash."),
        )


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

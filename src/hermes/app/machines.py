"""The machines that share a store: which of them run jobs and turns now, and the work that waits for a machine that
does not.

A long-lived process holds a role named after its machine and its task (`Presence`). When the machine is gone, nobody
holds the role any more, and the row of the role says when it was last held.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec

from hermes.app.boards.queue_state import (
    DISPATCHER_ROLE,
    dispatcher_place,
    place_of_card,
)
from hermes.app.goals.waking import WAITING_ROLE
from hermes.app.turn_placement import WORKER_ROLE
from hermes.errors import SessionNotFound
from hermes.primitives.untyped import real_of
from hermes.store.leases import LEASE_TTL_S

if TYPE_CHECKING:
    from hermes.app.app import App
    from hermes.schema.schedules import Instant
    from hermes.store.boards import BoardReader, CardPlacement
    from hermes.store.role_leases import HeldRole

MACHINE_ROLE = "machine/"
"""The prefix of the names of machines' roles."""
JOB_SURFACES = frozenset(("gateway", "worker", "cron"))
"""What runs jobs, unless `schedules.enabled` is off."""
_MAX_LISTED = 100

WaitingKind: TypeAlias = Literal["job", "session", "goal", "card"]


def machine_role(surface: str, place: str) -> str:
    """The role of a process of a kind on a machine."""
    return f"{MACHINE_ROLE}{surface}/{place}"


class WaitingWork(msgspec.Struct, frozen=True, kw_only=True):
    """Something that only one machine can do, while that machine does not."""

    kind: WaitingKind
    id: str
    name: str
    place: str
    since: float
    """Since when it waits (unix seconds)."""
    seen: float
    """When the machine was last heard from; 0 if it is not known."""
    is_draining: bool
    """Whether the machine finishes what runs there, and begins nothing new."""
    board: str = ""
    """The board of a card."""


class Machines(msgspec.Struct, frozen=True):
    """What runs on each machine at one moment."""

    surfaces: Mapping[str, frozenset[str]]
    """What lives on a machine, such as `gateway`."""
    with_jobs: frozenset[str]
    """Where due jobs are run."""
    seen: Mapping[str, float]
    draining: frozenset[str]
    with_cards: frozenset[str] = frozenset()
    """Where ready cards are run."""

    def runs_jobs(self, place: str) -> bool:
        """Whether a job of that machine is run when it is due."""
        return place in self.with_jobs

    def runs_turns(self, place: str) -> bool:
        """Whether a worker takes sessions of that machine; with an empty name, sessions of none."""
        if place:
            return "worker" in self.surfaces.get(place, frozenset())
        return any("worker" in found for found in self.surfaces.values())

    def waiting(
        self, kind: WaitingKind, name: tuple[str, str], place: str, since: float
    ) -> WaitingWork:
        """Something that waits for a machine; `name` is its id and what people call it."""
        return WaitingWork(
            kind=kind,
            id=name[0],
            name=name[1],
            place=place,
            since=since,
            seen=self.seen.get(place, 0.0),
            is_draining=place in self.draining,
        )


def read_places(app: "App") -> dict[str, str]:
    """Reads which processes have said the name of their machine, and that name."""
    roles = app.store.roles
    machines = roles.held(MACHINE_ROLE)
    places = {
        one.owner: one.name.removeprefix(MACHINE_ROLE).partition("/")[2]
        for one in machines
    }
    workers = roles.held(WORKER_ROLE)
    return places | {one.owner: str(one.facts.get("place", "")) for one in workers}


def read_machines(app: "App") -> Machines:
    """Reads what runs where now."""
    surfaces: dict[str, set[str]] = {}
    seen: dict[str, float] = {}
    with_jobs: set[str] = set()
    for role, is_held in app.store.roles.known(MACHINE_ROLE):
        surface, _, place = role.name.removeprefix(MACHINE_ROLE).partition("/")
        seen[place] = max(seen.get(place, 0.0), _last_seen(role))
        if is_held:
            surfaces.setdefault(place, set()).add(surface)
            if role.facts.get("jobs"):
                with_jobs.add(place)
    draining = {
        str(one.facts.get("place", ""))
        for one in app.store.roles.held(WORKER_ROLE)
        if one.facts.get("draining")
    }
    live = {place: frozenset(found) for place, found in surfaces.items()}
    with_cards = frozenset(
        dispatcher_place(one.name) for one in app.store.roles.held(DISPATCHER_ROLE)
    )
    return Machines(live, frozenset(with_jobs), seen, frozenset(draining), with_cards)


def _last_seen(role: "HeldRole") -> float:
    """When the holder of a role was last heard from: at its last renewal, or when it gave the role back."""
    if role.owner:
        return role.expires - LEASE_TTL_S
    seen = role.facts.get("seen", 0.0)
    return real_of(seen)


def find_waiting(app: "App") -> tuple[WaitingWork, ...]:
    """Everything that waits for a machine that is gone or draining; what has waited longest comes first."""
    if not app.settings.store.url or not app.has_log:
        return ()
    machines = read_machines(app)
    found = [
        *_waiting_jobs(app, machines, app.store.schedules.due(app.clock.now())),
        *_waiting_sessions(app, machines),
        *_waiting_goals(app, machines),
        *find_waiting_cards(app, machines),
    ]
    return tuple(sorted(found, key=lambda one: one.since))


def waiting_jobs(app: "App") -> dict[str, WaitingWork]:
    """The jobs that wait for a machine, by their ids."""
    if not app.settings.store.url or not app.has_log:
        return {}
    due = app.store.schedules.due(app.clock.now())
    if not due:
        return {}
    return {one.id: one for one in _waiting_jobs(app, read_machines(app), due)}


def _waiting_jobs(
    app: "App", machines: Machines, due: "Iterable[Instant]"
) -> Iterable[WaitingWork]:
    jobs = {job.id: job for job in app.store.schedules.jobs()}
    told: set[str] = set()
    for instant in due:
        job = jobs.get(instant.job)
        if job is None or not job.place or job.id in told:
            continue
        told.add(job.id)
        if not machines.runs_jobs(job.place):
            name = (job.id, job.name)
            yield machines.waiting("job", name, job.place, instant.starts)


def _waiting_sessions(app: "App", machines: Machines) -> Iterable[WaitingWork]:
    for one in app.store.work.untaken(limit=_MAX_LISTED):
        if not machines.runs_turns(one.place):
            title = app.store.sessions.title(one.session)
            name = (one.session, title or one.session)
            yield machines.waiting("session", name, one.place, one.offered)


def _waiting_goals(app: "App", machines: Machines) -> Iterable[WaitingWork]:
    for role in app.store.roles.abandoned(WAITING_ROLE)[:_MAX_LISTED]:
        session = role.name.removeprefix(WAITING_ROLE)
        try:
            place = app.store.sessions.origin(session).place
        except SessionNotFound:
            continue  # whoever looks for goals next forgets it
        if place and not machines.surfaces.get(place):
            title = app.store.sessions.title(session)
            since = _last_seen(role) or role.since
            yield machines.waiting("goal", (session, title or session), place, since)


def find_waiting_cards(app: "App", machines: Machines) -> list[WaitingWork]:
    """The ready cards whose folder is on a machine where nothing runs cards."""
    if not app.store.has_cards:
        return []

    def read(reader: "BoardReader") -> list[WaitingWork]:
        boards = {board.slug: board for board in reader.boards()}

        def is_away(card: "CardPlacement") -> bool:
            place = place_of_card(card, boards)
            return bool(place) and place not in machines.with_cards

        away = reader.ready(
            app.clock.now(), without=((), ()), limit=_MAX_LISTED, fits=is_away
        )
        return [
            msgspec.structs.replace(
                machines.waiting(
                    "card",
                    (card.id, card.title),
                    place_of_card(card, boards),
                    card.updated or card.created,
                ),
                board=card.board,
            )
            for card in away
            if card.board in boards
        ]

    return app.store.boards.read(read)

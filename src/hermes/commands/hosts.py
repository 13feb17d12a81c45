"""Hosts: the machines and processes that share a store, and what runs on each."""

from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec

from hermes.app.machines import WaitingWork, find_waiting, read_places
from hermes.commands.command import command
from hermes.commands.context import CommandContext
from hermes.commands.views import Block, Column, TableRow, line, table
from hermes.store.hosts import GONE_AFTER_S, ClusterState, HostProcess, host_of
from hermes.text.formats import ago, first_line
from hermes.text.translation import translator

t = translator(__name__)


_NO_ROLE = "terminal"  # what holds a session and says nothing else


class ListedHost(msgspec.Struct, frozen=True, kw_only=True):
    """A process on a machine."""

    host: str
    place: str
    """The name under which it takes sessions and jobs, if it said one."""
    process: str
    role: str
    version: str
    started: float
    seen: float
    is_live: bool
    sessions: int


class HostList(msgspec.Struct, frozen=True, kw_only=True):
    """All processes that use the store."""

    hosts: tuple[ListedHost, ...]
    store: str
    is_shared: bool
    now: float
    waiting: tuple[WaitingWork, ...] = ()
    """What waits for a machine that is gone or draining."""

    def view(self, _now: float) -> Iterable[Block]:
        if self.hosts:
            yield self._processes()
        else:
            yield line(
                t("No gateway, dashboard or running session uses this store now.")
            )
        yield from waiting_view(self.waiting, self.now)

    def _processes(self) -> Block:
        rows = [
            TableRow(
                (
                    f"{one.host} ({one.place})"
                    if one.place not in {"", one.host}
                    else one.host,
                    one.role,
                    one.version,
                    t("{count:,} session", "{count:,} sessions", count=one.sessions),
                    ago(one.seen, self.now)
                    if one.is_live
                    else f"{ago(one.seen, self.now)}, gone?",
                ),
                look="" if one.is_live else "dim",
            )
            for one in self.hosts
        ]
        columns = (t("HOST"), t("ROLE"), t("VERSION"), t("RUNNING"), t("LAST SEEN"))
        return table(columns, rows, narrow=((0, 1), (3, 4)))


def waiting_view(waiting: tuple[WaitingWork, ...], now: float) -> Iterable[Block]:
    """What waits for which machine, since when, and what to do about it."""
    if not waiting:
        return
    rows = [
        TableRow(
            (
                f"{one.kind} {one.id}",
                first_line(one.name),
                one.place or t("any"),
                ago(one.since, now),
                _machine_state(one, now),
            ),
            look="warn",
        )
        for one in waiting
    ]
    columns = (
        Column(t("WAITING")),
        Column(t("NAME"), widest=24),
        Column(t("FOR HOST")),
        Column(t("SINCE")),
        Column(t("LAST SEEN")),
    )
    yield line("")
    yield table(columns, rows, narrow=((0, 1), (2, 3)))
    yield line(
        t(
            "Start `hermes worker` on that host, or take the work over here: "
            "hermes cron edit JOB --cwd DIR; hermes --resume SESSION"
        )
    )


def _machine_state(one: WaitingWork, now: float) -> str:
    if one.is_draining:
        return t("draining")
    if one.seen:
        return ago(one.seen, now)
    return t("never")


@command("hosts list", slash="hosts", scope="observe", group="Sessions")
def list_hosts(context: CommandContext) -> HostList:
    """List the machines and processes that use this store, and how many sessions each runs."""
    app = context.app
    if not app.has_log:
        return HostList(hosts=(), store="", is_shared=False, now=app.clock.now())
    state = app.store.hosts.state()
    return HostList(
        hosts=tuple(_listed(state, read_places(app))),
        store=app.store.engine,
        is_shared=bool(app.settings.store.url),
        now=state.now,
        waiting=find_waiting(app),
    )


def _listed(state: ClusterState, places: Mapping[str, str]) -> Iterable[ListedHost]:
    running = Counter(lease.owner for lease in state.leases)
    known = {one.process for one in state.processes}
    others = [
        HostProcess(owner, _NO_ROLE, "", state.now, state.now)
        for owner in running
        if owner not in known
    ]
    every = [*state.processes, *others]
    every.sort(key=lambda one: (one.host, places.get(one.process, ""), one.role))
    for one in every:
        yield ListedHost(
            host=host_of(one.process),
            place=places.get(one.process, ""),
            process=one.process,
            role=one.role,
            version=one.version,
            started=one.started,
            seen=one.seen,
            is_live=state.now - one.seen < GONE_AFTER_S,
            sessions=running[one.process],
        )

"""`hermes gateway`: run it, show its status, let people in, install it as a service."""

import os
import signal
import time
from collections.abc import Iterable, Iterator
from typing import Annotated

import msgspec

from hermes.app import build
from hermes.app.profiles import Profiles
from hermes.commands.command import Arg, command
from hermes.commands.context import CommandContext
from hermes.commands.views import Block, TextResult, line, lines_of, message, table
from hermes.core.ports import SystemClock
from hermes.errors import HermesError, UsageError
from hermes.primitives.file_lock import FileLock
from hermes.settings import Home
from hermes.settings.redaction import mask
from hermes.surfaces.gateway.restart import (
    clear_restart_request,
    is_restarting,
    refresh_unit,
    request_restart,
    run_requested_copy,
)
from hermes.surfaces.gateway.status import (
    GatewayStatus,
    Health,
    PartStatus,
    ProfileGateway,
    lock_path,
    read_status,
    read_supervisor,
    supervisor_lock,
    withdraw,
)
from hermes.text.formats import first_line, short_duration
from hermes.text.translation import shown_reason, to_translate, translator

t = translator(__name__)


EXAMPLES = to_translate("""\
examples:
  hermes config set TELEGRAM_BOT_TOKEN     asks for the token that @BotFather gave you
  hermes gateway run                       serve; write to your bot to get a code
  hermes gateway pair approve CODE         let its owner in; the first person becomes the owner
  hermes gateway install                   install it as a systemd service
""")
_STATES = {
    "connected": to_translate("connected"),
    "connecting": to_translate("connecting"),
    "starting": to_translate("starting"),
    "retrying": to_translate("not connected, retrying"),
    "failed": to_translate("not connected"),
    "stopped": to_translate("stopped"),
    "waiting": to_translate("waiting for another gateway"),
}
_GATEWAY_STATES = {
    "starting": to_translate("starting"),
    "running": to_translate("running"),
    "draining": to_translate("draining"),
}
_HEALTH = {
    "running": to_translate("running"),
    "stuck": to_translate("stuck"),
    "ended": to_translate("not running"),
}
_SYSTEM = Arg("for the whole machine, not just your session")


class StatusReport(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the gateway runs, and how its platforms are."""

    health: Health
    status: GatewayStatus | None = None

    @property
    def exit_code(self) -> int:
        """0 only when the gateway runs and every platform is connected."""
        status = self.status
        if status is None or (self.health, status.state) != ("running", "running"):
            return 1
        parts = status.parts
        if parts and all(one.state == "connected" for one in parts):
            return 0
        return 1

    def view(self, now: float) -> Iterable[Block]:
        status = self.status
        if status is None or self.health == "ended":
            crash = (
                t(" The last one crashed (process {pid}).", pid=status.pid)
                if status
                else ""
            )
            yield line(
                t(
                    "The gateway is not running.{crash} Start it with: hermes gateway run",
                    crash=crash,
                )
            )
            return
        if self.health == "stuck":
            silence = round(now - status.heartbeat)
            yield line(
                t(
                    "The gateway is stuck: process {pid} is alive, but has not responded for {silence} s.",
                    pid=status.pid,
                    silence=silence,
                )
            )
        else:
            since = short_duration(now - status.started)
            yield line(
                t(
                    "The gateway is {state}: process {pid}, for {since}, {count:,} turn running.",
                    "The gateway is {state}: process {pid}, for {since}, {count:,} turns running.",
                    count=status.turns,
                    state=t.marked(_GATEWAY_STATES[status.state]),
                    pid=status.pid,
                    since=since,
                )
            )
        yield from lines_of(_problems(status, now))
        if not status.parts:
            yield line(t("No platform is configured. See: hermes gateway --help"))
            return
        yield table(
            (t("PLATFORM"), t("STATE"), t("IN"), t("OUT"), t("LAST PROBLEM")),
            [_part_cells(one, now) for one in status.parts],
            cut=False,
        )


class ProfileReport(msgspec.Struct, frozen=True, kw_only=True):
    """The gateway of one profile."""

    profile: str
    report: StatusReport
    kept: ProfileGateway | None = None
    """What its supervisor knows about it, if it has one."""

    @property
    def is_down(self) -> bool:
        """Whether it should run, and does not."""
        return self.kept is not None and self.report.health != "running"

    def cells(self, now: float) -> tuple[str, ...]:
        status, kept = self.report.status, self.kept
        health = self.report.health
        state = t.marked(_HEALTH[health])
        if kept is not None and kept.state == "waiting":
            state = t("waiting to start again")
        elif status is not None and health == "running":
            state = f"{t.marked(_GATEWAY_STATES[status.state])} {short_duration(now - status.started)}"
        parts = status.parts if status is not None and health != "ended" else ()
        platforms = ", ".join(
            f"{one.name} {t.marked(_STATES[one.state])}" for one in parts
        )
        restarts = str(kept.restarts) if kept is not None else ""
        return (self.profile, state, platforms, restarts, kept.ended if kept else "")


class AllStatusReport(msgspec.Struct, frozen=True, kw_only=True):
    """The gateways of all profiles."""

    supervisor: int
    """The process that keeps them running; 0 if there is none."""
    profiles: tuple[ProfileReport, ...]

    @property
    def exit_code(self) -> int:
        """0 only when a gateway runs, and none of those that should is down."""
        is_up = any(one.report.health == "running" for one in self.profiles)
        return int(not is_up or any(one.is_down for one in self.profiles))

    def view(self, now: float) -> Iterable[Block]:
        if self.supervisor:
            yield line(
                t(
                    "Process {supervisor} keeps the gateways running.",
                    supervisor=self.supervisor,
                )
            )
        else:
            hint = t("Start it with: hermes gateway run --all-profiles")
            text = t(
                "No process keeps the gateways of all profiles running. {hint}",
                hint=hint,
            )
            yield line(text, fit="wrap")
        rows = [one.cells(now) for one in self.profiles]
        yield table((t("PROFILE"), t("GATEWAY"), t("PLATFORMS"), t("RESTARTS"), t("LAST END")), rows, cut=False)  # fmt: skip


@command("gateway run")
def run_gateway(
    context: CommandContext,
    *,
    all_profiles: Annotated[bool, "one process for each profile"] = False,
) -> TextResult:
    """Serve chat apps until Ctrl-C."""
    if all_profiles:
        return _run_all(context)
    home = context.home
    lock = FileLock(lock_path(home))
    if not lock.try_acquire():
        found = read_status(home, time.time())
        who = t(" (process {pid})", pid=found[1].pid) if found else ""
        raise HermesError(
            t("A gateway is already running for this home{who}.", who=who),
            hint=t("See: hermes gateway status"),
        )
    from hermes.surfaces.gateway.gateway_process import serve

    clear_restart_request(home)
    try:
        with build(context.settings, home) as app:
            serve(app, context.secrets)
    finally:
        withdraw(home)
        lock.close()
    run_requested_copy(home)
    return message(t("The gateway has stopped."))


@command("gateway status")
def show_status(
    context: CommandContext,
    *,
    all_profiles: Annotated[bool, "of every profile"] = False,
) -> StatusReport | AllStatusReport:
    """Show the gateway and its platforms."""
    if not all_profiles:
        return _report(context.home)
    base = context.home.base
    supervisor = read_supervisor(base)
    kept = {one.profile: one for one in supervisor.gateways} if supervisor else {}
    return AllStatusReport(
        supervisor=supervisor.pid if supervisor else 0,
        profiles=tuple(
            ProfileReport(profile=one.name, report=_report(one.home), kept=kept.get(one.name))
            for one in Profiles(base).all()
        ),
    )  # fmt: skip


def _report(home: Home) -> StatusReport:
    found = read_status(home, time.time())
    if found is None:
        return StatusReport(health="ended")
    return StatusReport(health=found[0], status=found[1])


def _run_all(context: CommandContext) -> TextResult:
    import asyncio

    base = context.home.base
    lock = FileLock(supervisor_lock(base))
    if not lock.try_acquire():
        found = read_supervisor(base)
        who = t(" (process {pid})", pid=found.pid) if found else ""
        raise HermesError(
            t("The gateways of all profiles are already running{who}.", who=who),
            hint=t("See: hermes gateway status --all-profiles"),
        )
    from hermes.surfaces.gateway.profile_gateways import serve_profiles

    clear_restart_request(base, all_profiles=True)
    try:
        asyncio.run(serve_profiles(base, context.environment, SystemClock(), _print))
    finally:
        lock.close()
    run_requested_copy(base, all_profiles=True)
    return message(t("The gateways of all profiles have stopped."))


def _print(text: str) -> None:
    print(text, flush=True)


@command("gateway reload")
def reload_gateway(context: CommandContext) -> TextResult:
    """Make the running gateway reload its settings."""
    _send_signal(context, signal.SIGHUP)
    return message(t("The gateway is reloading its settings."))


@command("gateway stop")
def stop_gateway(
    context: CommandContext,
    *,
    all_profiles: Annotated[bool, "those that one process keeps running"] = False,
) -> TextResult:
    """Let the running gateway finish its turns and stop."""
    if all_profiles:
        found = read_supervisor(context.home.base)
        if found is None:
            raise UsageError(
                t("No process keeps the gateways of all profiles running.")
            )
        os.kill(found.pid, signal.SIGTERM)
        return message(t("The gateways finish running turns, then stop."))
    _send_signal(context, signal.SIGTERM)
    return message(t("The gateway finishes running turns, then stops."))


@command("gateway restart")
def restart_gateway(context: CommandContext) -> TextResult:
    """Let the running gateway finish its turns and start again, as this copy of Hermes."""
    home = context.home
    told: list[str] = []
    if (unit := refresh_unit(home)) is not None:
        told.append(t("{unit} starts this copy from now on.", unit=unit))
    if home == home.base and (supervisor := read_supervisor(home)) is not None:
        _ask_to_restart(home, supervisor.pid, all_profiles=True)
        return message(t("The gateways finish running turns, then start again."), *told)
    found = read_status(home, time.time())
    pid = found[1].pid if found is not None and found[0] != "ended" else 0
    if not pid and not is_restarting(home):
        return message(t("The gateway is not running."), *told)
    _ask_to_restart(home, pid)
    return message(t("The gateway finishes running turns, then starts again."), *told)


def _ask_to_restart(home: Home, pid: int, *, all_profiles: bool = False) -> None:
    """One that was asked before is draining, or waits for the end of an update: it only learns what to become.

    `pid` is 0 if only such a request was found, which its gateway may have followed by now.
    """
    was_asked = is_restarting(home, all_profiles=all_profiles)
    request_restart(home, all_profiles=all_profiles)
    if pid and not was_asked:
        os.kill(pid, signal.SIGTERM)


@command("gateway install")
def install_service(
    context: CommandContext,
    *,
    system: Annotated[bool, _SYSTEM] = False,
    print_: Annotated[bool, "print the unit and change nothing"] = False,
    all_profiles: Annotated[bool, "one service for every profile"] = False,
) -> int:
    """Install it as a systemd service."""
    from hermes.surfaces.gateway.systemd_unit import install

    return install(context.home, system=system, show=print_, all_profiles=all_profiles)


@command("gateway uninstall")
def uninstall_service(
    context: CommandContext, *, system: Annotated[bool, _SYSTEM] = False
) -> int:
    """Remove the systemd service."""
    from hermes.surfaces.gateway.systemd_unit import uninstall

    return uninstall(context.home, system=system)


def _send_signal(context: CommandContext, number: signal.Signals) -> None:
    found = read_status(context.home, time.time())
    if found is None or found[0] == "ended":
        raise UsageError(
            t("The gateway is not running."),
            hint=t("Start it with: hermes gateway run"),
        )
    os.kill(found[1].pid, number)


def _problems(status: GatewayStatus, now: float) -> Iterator[str]:
    if status.problem:
        yield t("Problem: {problem}", problem=first_line(shown_reason(status.problem)))
    for one in status.problems:
        after = t(". It works again.") if one.is_over else ""
        error = first_line(mask(shown_reason(one.error)))
        problem = t(
            "Problem: {what} failed once, {time} ago: {error}",
            "Problem: {what} failed {count:,} times, last {time} ago: {error}",
            count=one.count,
            what=shown_reason(one.what),
            time=short_duration(now - one.last),
            error=error,
        )
        yield f"{problem}{after}"


def _part_cells(one: PartStatus, now: float) -> tuple[str, ...]:
    state = t.marked(_STATES[one.state])
    if one.since:
        state += f" {short_duration(now - one.since)}"
    if one.identity:
        state = t("{state} as {identity}", state=state, identity=one.identity)
    error = ""
    if one.error:
        error = t(
            "{error} ({time} ago)",
            error=shown_reason(one.error),
            time=short_duration(now - one.error_at),
        )
    received, sent = str(one.counters.received), str(one.counters.sent)
    return (one.name, first_line(state), received, sent, first_line(error))

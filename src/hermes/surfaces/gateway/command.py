"""`hermes gateway`: run it, show its status, let people in, install it as a service."""

import os
import signal
import time
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Literal

import msgspec

from hermes.app import App, build
from hermes.commands.command import Arg, command
from hermes.commands.context import CommandContext
from hermes.commands.formats import first_line
from hermes.commands.views import Block, TextResult, line, lines_of, message, table
from hermes.errors import HermesError, NotFound, UsageError
from hermes.primitives.file_lock import FileLock
from hermes.settings.redaction import mask
from hermes.store.people import KnownPerson, PairingRequest
from hermes.surfaces.gateway.access import CODE_LIFETIME_S, PeopleAccess
from hermes.surfaces.gateway.status import (
    GatewayStatus,
    Health,
    PartStatus,
    lock_path,
    read_status,
    withdraw,
)
from hermes.text.plurals import count

EXAMPLES = """\
examples:
  hermes config set TELEGRAM_BOT_TOKEN     asks for the token that @BotFather gave you
  hermes gateway run                       serve; write to your bot to get a code
  hermes gateway pair approve CODE         let its owner in; the first person becomes the owner
  hermes gateway install                   install it as a systemd service
"""
_STATES = {
    "connected": "connected",
    "connecting": "connecting",
    "starting": "starting",
    "retrying": "not connected, retrying",
    "failed": "not connected",
    "stopped": "stopped",
    "waiting": "waiting for another gateway",
}
_SYSTEM = "for the whole machine, not just your session"


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
        return 0 if parts and all(one.state == "connected" for one in parts) else 1

    def view(self, now: float) -> Iterable[Block]:
        status = self.status
        if status is None or self.health == "ended":
            crash = f" The last one crashed (process {status.pid})." if status else ""
            yield line(
                f"The gateway is not running.{crash} Start it with: hermes gateway run"
            )
            return
        if self.health == "stuck":
            silence = round(now - status.heartbeat)
            yield line(
                f"The gateway is stuck: process {status.pid} is alive, but has not responded for {silence} s."
            )
        else:
            since = _duration(now - status.started)
            yield line(
                f"The gateway is {status.state}: process {status.pid}, for {since}, {count(status.turns, 'turn')} running."
            )
        yield from lines_of(_problems(status, now))
        if not status.parts:
            yield line("No platform is configured. See: hermes gateway --help")
            return
        yield table(
            ("PLATFORM", "STATE", "IN", "OUT", "LAST PROBLEM"),
            [_part_cells(one, now) for one in status.parts],
            cut=False,
        )


class PeopleListing(msgspec.Struct, frozen=True, kw_only=True):
    """Who has access, and who is waiting."""

    people: tuple[KnownPerson, ...]
    named: tuple[tuple[str, str], ...]
    """Entries of the settings, each with its role."""
    waiting: tuple[PairingRequest, ...]

    def document(self) -> Any:
        waiting = [
            {
                "platform": one.platform,
                "id": one.person,
                "name": one.name,
                "made": one.made,
            }
            for one in self.waiting
        ]
        return {"people": self.people, "waiting": waiting}

    def view(self, now: float) -> Iterable[Block]:
        rows = [
            (f"{one.platform}:{one.id}", first_line(one.name), one.role, "pairing")
            for one in self.people
        ]
        rows += [(entry, "", role, "config.yaml") for entry, role in self.named]
        if rows:
            yield table(("WHO", "NAME", "ROLE", "BY"), rows, cut=False)
        else:
            yield line("Nobody has access yet.")
        for one in self.waiting:
            left = _duration(one.made + CODE_LIFETIME_S - now)
            yield line(
                f"Waiting: {first_line(one.name)} ({one.platform}:{one.person}); their code is valid for {left}."
            )


@command("gateway run")
def run_gateway(context: CommandContext) -> TextResult:
    """Serve chat apps until Ctrl-C."""
    home = context.home
    lock = FileLock(lock_path(home))
    if not lock.try_acquire():
        found = read_status(home, time.time())
        who = f" (process {found[1].pid})" if found else ""
        raise HermesError(
            f"A gateway is already running for this home{who}.",
            hint="See: hermes gateway status",
        )
    from hermes.surfaces.gateway.gateway_process import serve

    with build(context.settings, home) as app:
        try:
            serve(app, context.secrets)
        finally:
            withdraw(home)
            lock.close()
    return message("The gateway has stopped.")


@command("gateway status")
def show_status(context: CommandContext) -> StatusReport:
    """Show the gateway and its platforms."""
    found = read_status(context.home, time.time())
    if found is None:
        return StatusReport(health="ended")
    return StatusReport(health=found[0], status=found[1])


@command("gateway reload")
def reload_gateway(context: CommandContext) -> TextResult:
    """Make the running gateway reload its settings."""
    _send_signal(context, signal.SIGHUP)
    return message("The gateway is reloading its settings.")


@command("gateway stop")
def stop_gateway(context: CommandContext) -> TextResult:
    """Let the running gateway finish its turns and stop."""
    _send_signal(context, signal.SIGTERM)
    return message("The gateway finishes running turns, then stops.")


@command("gateway pair list")
def list_people(context: CommandContext) -> PeopleListing:
    """List who has access, and who is waiting."""
    app, settings = context.app, context.settings.gateway
    named = [(entry, "owner") for entry in settings.owners]
    named += [(entry, "user") for entry in settings.allow]
    return PeopleListing(
        people=tuple(app.store.people.every()),
        named=tuple(named),
        waiting=tuple(_access(app).waiting()),
    )


@command("gateway pair approve")
def approve_person(
    context: CommandContext,
    code: Annotated[str, "the code they see in their chat"],
    *,
    role: Annotated[
        Literal["owner", "user"] | None,
        "user by default; the first person becomes owner",
    ] = None,
) -> TextResult:
    """Approve the person who has a code."""
    known = _access(context.app).approve(code, role or "")
    who = first_line(known.name or known.id)
    return message(
        f"{who} ({known.platform}:{known.id}) now has access as {known.role}."
    )


@command("gateway pair revoke")
def revoke_person(
    context: CommandContext,
    who: Annotated[str, Arg("as shown by `pair list`", metavar="PLATFORM:ID")],
) -> TextResult:
    """Remove a person who was paired."""
    platform, _, person = who.partition(":")
    if not _access(context.app).revoke(platform, person):
        raise NotFound(f"{who} is not paired.", hint="See: hermes gateway pair list")
    return message(
        f"{who} is removed. Entries for them under gateway.allow or gateway.owners in config.yaml still count."
    )


@command("gateway install")
def install_service(
    context: CommandContext,
    *,
    system: Annotated[bool, _SYSTEM] = False,
    print_: Annotated[bool, "print the unit and change nothing"] = False,
) -> int:
    """Install it as a systemd service."""
    from hermes.surfaces.gateway.systemd_unit import install

    return install(context.home, system=system, show=print_)


@command("gateway uninstall")
def uninstall_service(
    _context: CommandContext, *, system: Annotated[bool, _SYSTEM] = False
) -> int:
    """Remove the systemd service."""
    from hermes.surfaces.gateway.systemd_unit import uninstall

    return uninstall(system=system)


def _access(app: App) -> PeopleAccess:
    return PeopleAccess(app.settings.gateway, app.store.people, app.clock)


def _send_signal(context: CommandContext, number: signal.Signals) -> None:
    found = read_status(context.home, time.time())
    if found is None or found[0] == "ended":
        raise UsageError(
            "The gateway is not running.", hint="Start it with: hermes gateway run"
        )
    os.kill(found[1].pid, number)


def _problems(status: GatewayStatus, now: float) -> Iterator[str]:
    if status.problem:
        yield f"Problem: {first_line(status.problem)}"
    for one in status.problems:
        times = "once" if one.count == 1 else f"{one.count:,} times"
        after = ". It works again." if one.is_over else ""
        error = first_line(mask(one.error))
        yield f"Problem: {one.what} failed {times}, last {_duration(now - one.last)} ago: {error}{after}"


def _part_cells(one: PartStatus, now: float) -> tuple[str, ...]:
    state = f"{_STATES[one.state]} {_duration(now - one.since)}"
    if one.identity:
        state += f" as {one.identity}"
    error = f"{one.error} ({_duration(now - one.error_at)} ago)" if one.error else ""
    received, sent = str(one.counters.received), str(one.counters.sent)
    return (one.name, first_line(state), received, sent, first_line(error))


def _duration(seconds: float) -> str:
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{round(seconds / size)} {unit}"
    return f"{max(0, round(seconds))} s"

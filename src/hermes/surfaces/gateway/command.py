"""`hermes gateway`: run it, show its status, let people in, install it as a service."""

import argparse
import os
import signal
import time
from collections.abc import Iterable
from typing import Any

import msgspec

from hermes.app import App, build
from hermes.errors import HermesError, UsageError
from hermes.primitives.file_lock import FileLock
from hermes.settings import Home
from hermes.settings.load import find_home, load, load_secrets
from hermes.settings.redaction import mask
from hermes.surfaces.gateway.access import CODE_LIFETIME_S, PeopleAccess
from hermes.surfaces.gateway.api_server.command import add_key_action, run_keys
from hermes.surfaces.gateway.status import (
    GatewayStatus,
    Health,
    PartStatus,
    lock_path,
    read_status,
    withdraw,
)
from hermes.surfaces.terminal.text import one_line, stdout_screen, table
from hermes.text.plurals import count

_EXAMPLES = """\
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
}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EXAMPLES
    actions = parser.add_subparsers(
        dest="action", metavar="ACTION", parser_class=type(parser), required=True
    )
    _action(actions, "run", "serve chat apps until Ctrl-C")
    status = _action(actions, "status", "show the gateway and its platforms")
    status.add_argument("--json", action="store_true", help="print JSON")
    _action(actions, "reload", "make the running gateway reload its settings")
    _action(actions, "stop", "let the running gateway finish its turns and stop")
    _configure_pair(
        _action(actions, "pair", "list who has access; approve and revoke people")
    )
    add_key_action(actions)
    for name, summary in (
        ("install", "install it as a systemd service"),
        ("uninstall", "remove the systemd service"),
    ):
        action = _action(actions, name, summary)
        action.add_argument(
            "--system",
            action="store_true",
            help="for the whole machine, not just your session",
        )
        if name == "install":
            action.add_argument(
                "--print", action="store_true", help="print the unit and change nothing"
            )


def _action(actions: Any, name: str, summary: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = actions.add_parser(
        name, help=summary, description=f"{summary[:1].upper()}{summary[1:]}."
    )
    return parser


def _configure_pair(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(
        dest="pairing", metavar="ACTION", parser_class=type(parser)
    )
    listing = _action(actions, "list", "list who has access, and who is waiting")
    listing.add_argument("--json", action="store_true", help="print JSON")
    approve = _action(actions, "approve", "approve the person who has a code")
    approve.add_argument("code", metavar="CODE", help="the code they see in their chat")
    approve.add_argument(
        "--role",
        choices=("owner", "user"),
        default="",
        help="user by default; the first person becomes owner",
    )
    revoke = _action(actions, "revoke", "remove a person who was paired")
    revoke.add_argument("who", metavar="PLATFORM:ID", help="as shown by `pair list`")


def run(args: argparse.Namespace) -> int:
    home = find_home()
    match args.action:
        case "run":
            return _run(home)
        case "status":
            return _status(home, as_json=args.json)
        case "reload" | "stop":
            return _signal(home, args.action)
        case "pair" | "key":
            with build(load(home=home), home) as app:
                return (
                    run_keys(args, home) if args.action == "key" else _pair(app, args)
                )
        case _:
            from hermes.surfaces.gateway.systemd_unit import install, uninstall

            if args.action == "install":
                return install(home, system=args.system, show=args.print)
            return uninstall(system=args.system)


def _run(home: Home) -> int:
    lock = FileLock(lock_path(home))
    if not lock.try_acquire():
        found = read_status(home, time.time())
        who = f" (process {found[1].pid})" if found else ""
        raise HermesError(
            f"A gateway is already running for this home{who}.",
            hint="See: hermes gateway status",
        )
    from hermes.surfaces.gateway.gateway_process import serve

    with build(load(home=home), home) as app:
        try:
            serve(app, load_secrets(home=home))
        finally:
            withdraw(home)
            lock.close()
    print("The gateway has stopped.")
    return 0


def _status(home: Home, *, as_json: bool) -> int:
    """Exits with 0 only when the gateway runs and every platform is connected."""
    now = time.time()
    found = read_status(home, now)
    if as_json:
        health, status = found or ("ended", None)
        document = {
            "health": health,
            "status": msgspec.to_builtins(status) if status else None,
        }
        print(msgspec.json.format(msgspec.json.encode(document), indent=2).decode())
    elif found is None or found[0] == "ended":
        crash = f" The last one crashed (process {found[1].pid})." if found else ""
        print(f"The gateway is not running.{crash} Start it with: hermes gateway run")
    else:
        _print_status(*found, now)
    return 0 if _is_well(found) else 1


def _print_status(health: Health, status: GatewayStatus, now: float) -> None:
    if health == "stuck":
        silence = round(now - status.heartbeat)
        print(
            f"The gateway is stuck: process {status.pid} is alive, but has not responded for {silence} s."
        )
    else:
        since = _duration(now - status.started)
        print(
            f"The gateway is {status.state}: process {status.pid}, for {since}, {count(status.turns, 'turn')} running."
        )
    if status.problem:
        print(f"Problem: {one_line(status.problem)}")
    for one in status.problems:
        times = "once" if one.count == 1 else f"{one.count:,} times"
        after = ". It works again." if one.is_over else ""
        print(
            f"Problem: {one.what} failed {times}, last {_duration(now - one.last)} ago: {one_line(mask(one.error))}{after}"
        )
    if not status.parts:
        print("No platform is configured. See: hermes gateway --help")
    for line in _part_lines(status.parts, now):
        print(line)


def _is_well(found: tuple[str, GatewayStatus] | None) -> bool:
    if found is None or found[0] != "running" or found[1].state != "running":
        return False
    return bool(found[1].parts) and all(
        one.state == "connected" for one in found[1].parts
    )


def _part_lines(parts: Iterable[PartStatus], now: float) -> Iterable[str]:
    rows = [("PLATFORM", "STATE", "IN", "OUT", "LAST PROBLEM")]
    for one in parts:
        state = f"{_STATES[one.state]} {_duration(now - one.since)}"
        if one.identity:
            state += f" as {one.identity}"
        error = (
            f"{one.error} ({_duration(now - one.error_at)} ago)" if one.error else ""
        )
        rows.append(
            (
                one.name,
                one_line(state),
                str(one.counters.received),
                str(one.counters.sent),
                one_line(error),
            )
        )
    screen = stdout_screen()
    for number, line in enumerate(table(rows)):
        yield line if number else screen.style.bold(line)


def _signal(home: Home, action: str) -> int:
    found = read_status(home, time.time())
    if found is None or found[0] == "ended":
        raise UsageError(
            "The gateway is not running.", hint="Start it with: hermes gateway run"
        )
    os.kill(found[1].pid, signal.SIGHUP if action == "reload" else signal.SIGTERM)
    print(
        "The gateway is reloading its settings."
        if action == "reload"
        else "The gateway finishes running turns, then stops."
    )
    return 0


def _pair(app: App, args: argparse.Namespace) -> int:
    access = PeopleAccess(app.settings.gateway, app.store.people, app.clock)
    match args.pairing:
        case "approve":
            known = access.approve(args.code, args.role)
            who = one_line(known.name or known.id)
            print(
                f"{who} ({known.platform}:{known.id}) now has access as {known.role}."
            )
        case "revoke":
            platform, _, person = args.who.partition(":")
            if not access.revoke(platform, person):
                raise UsageError(
                    f"{args.who} is not paired.", hint="See: hermes gateway pair list"
                )
            print(
                f"{args.who} is removed. Entries for them under gateway.allow or gateway.owners in config.yaml still count."
            )
        case _:
            _list_people(app, access, as_json=getattr(args, "json", False))
    return 0


def _list_people(app: App, access: PeopleAccess, *, as_json: bool) -> None:
    people, waiting = app.store.people.every(), access.waiting()
    if as_json:
        shown = [
            {
                "platform": one.platform,
                "id": one.person,
                "name": one.name,
                "made": one.made,
            }
            for one in waiting
        ]
        document = {"people": msgspec.to_builtins(people), "waiting": shown}
        print(msgspec.json.format(msgspec.json.encode(document), indent=2).decode())
        return
    settings = app.settings.gateway
    rows = [("WHO", "NAME", "ROLE", "BY")]
    rows += [
        (f"{one.platform}:{one.id}", one_line(one.name), one.role, "pairing")
        for one in people
    ]
    rows += [
        (entry, "", role, "config.yaml")
        for role, names in _named(settings.owners, settings.allow)
        for entry in names
    ]
    for line in table(rows) if len(rows) > 1 else ["Nobody has access yet."]:
        print(line)
    now = app.clock.now()
    for one in waiting:
        left = _duration(one.made + CODE_LIFETIME_S - now)
        print(
            f"Waiting: {one_line(one.name)} ({one.platform}:{one.person}); their code is valid for {left}."
        )


def _named(
    owners: tuple[str, ...], allow: tuple[str, ...]
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    return ("owner", owners), ("user", allow)


def _duration(seconds: float) -> str:
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{round(seconds / size)} {unit}"
    return f"{max(0, round(seconds))} s"

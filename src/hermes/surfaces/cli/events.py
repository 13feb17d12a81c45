"""`hermes events`: what the processes of this home do, live, as it was, and in numbers."""

import argparse
import re
import socket
import sys
import time
from typing import Any

import msgspec

from hermes.app import build
from hermes.bridge.event_socket import Look, look_into, windows
from hermes.errors import HermesError, UsageError
from hermes.events.trie import Trie
from hermes.settings.load import find_home, load
from hermes.surfaces.cli.events_line import EventLines
from hermes.surfaces.cli.parser import Parser, add_action
from hermes.surfaces.terminal.text import ago, count, one_line, stdout_screen, table

_EXAMPLES = """\
examples:
  hermes events tail                            everything, as it happens
  hermes events tail 'agent.tool.*'             tool calls
  hermes events replay 'agent.message.*' --session last
  hermes events stats                           counters of every process that runs
"""
_UNITS = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_PAGE = 1000  # rows read at once
_PATIENCE = 3.0  # seconds for a process to answer


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EXAMPLES
    actions = parser.add_subparsers(
        dest="action", metavar="ACTION", parser_class=Parser, required=True
    )
    tail = add_action(
        actions, "tail", "show events of all processes that run, as they happen"
    )
    tail.add_argument(
        "--relayed",
        action="store_true",
        help="also what came to a dashboard from elsewhere",
    )
    tail.add_argument(
        "--count", metavar="N", type=int, default=0, help="end after N events"
    )
    replay = add_action(
        actions, "replay", "show durable events again, from the session log"
    )
    replay.add_argument(
        "--since",
        metavar="WHEN",
        default="",
        help="such as 30min, 2h, 7d or 2026-05-01",
    )
    for action in (tail, replay):
        action.add_argument(
            "--session",
            metavar="ID",
            default="",
            help="only this session: its id, its title, or last",
        )
    stats = add_action(actions, "stats", "show counters of all processes that run")
    for action in (tail, replay, stats):
        action.add_argument(
            "pattern",
            metavar="PATTERN",
            nargs="?",
            default="**",
            help="topics, with * and ** (default: all)",
        )
        action.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    if not args.pattern:
        raise UsageError(
            "The pattern is empty.", hint="Leave it out to see everything."
        )
    match args.action:
        case "tail":
            from hermes.surfaces.cli.events_tail import tail

            return tail(args)
        case "replay":
            return _replay(args)
        case _:
            return _stats(args)


def _replay(args: argparse.Namespace) -> int:
    home = find_home()
    with build(load(home=home), home) as app:
        if not app.has_log:
            raise HermesError(
                "There are no sessions yet.", hint='Begin one: hermes "hello"'
            )
        session = app.store.sessions.find(args.session).id if args.session else ""
        lines = EventLines(as_json=args.json, dated=True)
        wanted: Trie[bool] = Trie()
        wanted.add(args.pattern, True)
        last = 0
        since = _moment(args.since, app.clock.now())
        while rows := app.store.log.every(
            session=session, since=since, after=last, limit=_PAGE
        ):
            for row in rows:
                if wanted.match(row.type):
                    lines.show(app.envelope(row))
            last = rows[-1].id
    return 0


def _moment(text: str, now: float) -> float:
    """Unix seconds of `30min`, `2h`, `7d` ago, or of a day."""
    if not text:
        return 0.0
    if found := re.fullmatch(r"(\d+)\s*(s|m|min|h|d|w)", text):
        return now - int(found[1]) * _UNITS[found[2]]
    for form in ("%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M"):
        try:
            return time.mktime(time.strptime(text, form))
        except (ValueError, OverflowError):
            continue
    raise UsageError(
        f"{text!r} is no time.",
        hint="Such as 30min, 2h, 7d, 2026-05-01 or 2026-05-01T14:00",
    )


def _stats(args: argparse.Namespace) -> int:
    found = {path: _ask(path) for path in windows(find_home().root / "run")}
    processes = [one for one in found.values() if one is not None]
    silent = [path for path, one in found.items() if one is None and path.exists()]
    for path in silent:
        print(
            f"Process {path.stem.rpartition('-')[2]} does not answer; it may be stopped.",
            file=sys.stderr,
        )
    for one in processes:
        heard = one["bus"].get("subscriptions", [])
        one["bus"]["subscriptions"] = [
            sub for sub in heard if args.pattern == "**" or _hears(sub, args.pattern)
        ]
    if args.json:
        print(
            msgspec.json.format(
                msgspec.json.encode({"processes": processes}), indent=2
            ).decode()
        )
        return 0
    if not found:
        print("Nothing of this home runs.")
    for number, one in enumerate(processes):
        print("\n" * bool(number), end="")
        _print_process(one)
    return 0


def _ask(path: Any) -> dict[str, Any] | None:
    try:
        with look_into(path, Look("stats"), _PATIENCE) as peer:
            return msgspec.json.decode(_all(peer), type=dict[str, Any])
    except (OSError, msgspec.MsgspecError):
        return None  # it has just ended


def _all(peer: socket.socket) -> bytes:
    parts: list[bytes] = []
    while data := peer.recv(65536):
        parts.append(data)
    return b"".join(parts)


def _hears(subscription: dict[str, Any], pattern: str) -> bool:
    """Whether a subscription is of this pattern, or hears topics of that name."""
    trie: Trie[bool] = Trie()
    trie.add(subscription["pattern"], True)
    return subscription["pattern"] == pattern or bool(trie.match(pattern))


def _print_process(one: dict[str, Any]) -> None:
    style, bus = stdout_screen().style, one["bus"]
    print(
        style.bold(
            f"{one['surface']} (process {one['pid']}), since {ago(one['since'], time.time())}"
        )
    )
    fates = ", ".join(
        f"{bus.get(name, 0):,} {name}"
        for name in ("delivered", "failed", "dropped", "pending", "refused")
    )
    print(f"  bus: {fates}")
    for name in ("bridge", "hooks", "webhooks", "traces"):
        for part in _as_list(one.get(name)):
            shown = ", ".join(
                f"{key} {value}"
                for key, value in part.items()
                if value not in ("", None)
            )
            print(f"  {name}: {one_line(shown)}")
    rows = [
        (
            f"  {one_line(sub['pattern'])}",
            one_line(sub["callback"]),
            f"{sub['delivered']:,}",
            _losses(sub),
        )
        for sub in bus["subscriptions"]
    ]
    print(style.dim(f"  {count(len(rows), 'subscriber')}"))
    for line in (
        table([("  PATTERN", "SUBSCRIBER", "DELIVERED", ""), *rows], right=(2,))
        if rows
        else ()
    ):
        print(line)


def _as_list(value: Any) -> list[dict[str, Any]]:
    return value if isinstance(value, list) else [value] if value else []


def _losses(subscription: dict[str, Any]) -> str:
    parts = [
        f"{subscription[name]:,} {name}"
        for name in ("failed", "dropped")
        if subscription[name]
    ]
    slow = subscription["slowest"]
    return ", ".join(
        [*parts, *([f"slowest {slow * 1000:,.0f} ms"] if slow >= 0.01 else [])]
    )

"""Events: past ones from the session log, and the counters of running processes."""

import re
import socket
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar

import msgspec

from hermes.bridge.event_socket import SocketRequest, event_sockets, send_request
from hermes.commands.command import Arg, command
from hermes.commands.context import CommandContext
from hermes.commands.views import Block, Column, line, table
from hermes.errors import NotFound, UsageError
from hermes.events.trie import Trie
from hermes.text.formats import ago, first_line
from hermes.text.translation import to_translate, translator

t = translator(__name__)


EXAMPLES = to_translate("""\
examples:
  hermes events tail                            everything, as it happens
  hermes events tail 'agent.tool.*'             tool calls
  hermes events replay 'agent.message.*' --session last
  hermes events stats                           counters of every process that runs
""")
_UNITS_S = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_REPLAY_ROWS_PER_READ = 1000
_ANSWER_TIMEOUT_S = 3.0
_SLOW_S = 0.01  # a subscriber that took as long once is named

Pattern = Annotated[str, "topic patterns with * and ** (default: all)"]
OnlySession = Annotated[
    str, Arg("only this session: its id, its title, or last", metavar="ID")
]


class ReplayedEvents(msgspec.Struct, frozen=True, kw_only=True):
    """Durable events, one after the other."""

    as_lines: ClassVar[bool] = True

    events: Any
    """An iterator of envelopes: there can be many."""

    def document(self) -> Iterator[Mapping[str, Any]]:
        return self.events

    def view(self, _now: float) -> Iterable[Block]:
        return (line(first_line(str(event))) for event in self.events)


class ProcessCounters(msgspec.Struct, frozen=True, kw_only=True):
    """The counters of all running processes."""

    processes: tuple[dict[str, Any], ...]
    any_running: bool

    def document(self) -> Any:
        return {"processes": self.processes}

    def view(self, now: float) -> Iterable[Block]:
        if not self.any_running:
            yield line(t("No Hermes process is running."))
        for number, one in enumerate(self.processes):
            yield from _process_view(one, now, "\n" * bool(number))


@command("events replay")
def replay_events(
    context: CommandContext,
    pattern: Pattern = "**",
    *,
    since: Annotated[
        str, Arg("how far back, such as 30min, 2h, 7d or 2026-05-01", metavar="WHEN")
    ] = "",
    session: OnlySession = "",
) -> ReplayedEvents:
    """Show durable events again, from the session log."""
    require_pattern(pattern)
    app = context.app
    if not app.has_log:
        raise NotFound(
            t("There are no sessions yet."), hint=t('Start one: hermes "hello"')
        )
    only = app.store.sessions.find(session).id if session else ""
    first = _moment(since, app.clock.now())
    wanted: Trie[bool] = Trie()
    wanted.add(pattern, True)

    def events() -> Iterator[Mapping[str, Any]]:
        last = 0
        while rows := app.store.log.every(
            session=only, since=first, after=last, limit=_REPLAY_ROWS_PER_READ
        ):
            yield from (app.envelope(row) for row in rows if wanted.match(row.type))
            last = rows[-1].id

    return ReplayedEvents(events=events())


@command("events stats", scope="observe")
def show_counters(context: CommandContext, pattern: Pattern = "**") -> ProcessCounters:
    """Show counters of all processes that run."""
    require_pattern(pattern)
    found = {path: _ask(path) for path in event_sockets(context.home.root / "run")}
    for path, one in found.items():
        if one is None and path.exists():
            number = path.stem.rpartition("-")[2]
            context.surface.warn(
                t("Process {number} does not answer; it may be stopped.", number=number)
            )
    processes = [one for one in found.values() if one is not None]
    for one in processes:
        heard = one["bus"].get("subscriptions", [])
        one["bus"]["subscriptions"] = [sub for sub in heard if _matches(sub, pattern)]
    return ProcessCounters(processes=tuple(processes), any_running=bool(found))


def require_pattern(pattern: str) -> None:
    if not pattern:
        raise UsageError(
            t("The pattern is empty."), hint=t("Leave it out to see everything.")
        )


def _moment(text: str, now: float) -> float:
    """Unix seconds of `30min`, `2h`, `7d` ago, or of a day."""
    if not text:
        return 0.0
    if found := re.fullmatch(r"(\d{1,9})\s*(s|m|min|h|d|w)", text):
        return now - int(found[1]) * _UNITS_S[found[2]]
    for form in ("%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M"):
        try:
            return time.mktime(time.strptime(text, form))
        except (ValueError, OverflowError):
            continue
    raise UsageError(
        t("{text!r} is not a time.", text=text),
        hint=t("Use one such as 30min, 2h, 7d, 2026-05-01 or 2026-05-01T14:00"),
    )


def _ask(path: Path) -> dict[str, Any] | None:
    """The counters of a process; None when it has just ended."""
    try:
        with send_request(path, SocketRequest("stats"), _ANSWER_TIMEOUT_S) as peer:
            return msgspec.json.decode(_read_all(peer), type=dict[str, Any])
    except (OSError, msgspec.MsgspecError):
        return None


def _read_all(peer: socket.socket) -> bytes:
    parts: list[bytes] = []
    while data := peer.recv(65536):
        parts.append(data)
    return b"".join(parts)


def _matches(subscription: dict[str, Any], pattern: str) -> bool:
    """Whether a subscription has this pattern, or receives topics of that name."""
    trie: Trie[bool] = Trie()
    trie.add(subscription["pattern"], True)
    is_same = pattern in ("**", subscription["pattern"])
    return is_same or bool(trie.match(pattern))


def _process_view(one: dict[str, Any], now: float, before: str) -> Iterator[Block]:
    bus = one["bus"]
    since = ago(one["since"], now)
    yield line(
        t(
            "{before}{surface} (process {pid}), since {since}",
            before=before,
            surface=one["surface"],
            pid=one["pid"],
            since=since,
        ),
        "bold",
    )
    names = ("delivered", "failed", "dropped", "pending", "refused")
    counts = ", ".join(f"{bus.get(name, 0):,} {name}" for name in names)
    yield line(t("  bus: {counts}", counts=counts))
    for name in ("bridge", "hooks", "webhooks", "traces"):
        for part in _as_list(one.get(name)):
            facts = (
                f"{key} {value}"
                for key, value in part.items()
                if value not in ("", None)
            )
            yield line(f"  {name}: {first_line(', '.join(facts))}")
    rows = [
        (sub["pattern"], sub["callback"], f"{sub['delivered']:,}", _losses(sub))
        for sub in bus["subscriptions"]
    ]
    yield line(
        t("  {count:,} subscriber", "  {count:,} subscribers", count=len(rows)), "dim"
    )
    columns = (
        Column(t("PATTERN")),
        Column(t("SUBSCRIBER")),
        Column(t("DELIVERED"), right=True),
        Column(),
    )
    if rows:
        yield table(columns, rows, cut=False, indent=2)


def _as_list(value: Any) -> list[dict[str, Any]]:
    if isinstance(value, list):
        return value
    return [value] if value else []


def _losses(subscription: dict[str, Any]) -> str:
    names = ("failed", "dropped")
    parts = [f"{subscription[name]:,} {name}" for name in names if subscription[name]]
    slowest = subscription["slowest"]
    if slowest >= _SLOW_S:
        parts.append(f"slowest {slowest * 1000:,.0f} ms")
    return ", ".join(parts)

"""The commands of `hermes sessions` that only read: list, show, search, check; for people or as JSON.

How a transcript looks is in `sessions_show`.
"""

import argparse
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from hermes.app import App, build
from hermes.schema.messages import UserMessage
from hermes.store.log_row import Row
from hermes.store.recovery import Incomplete, Recovery
from hermes.store.search import Hit
from hermes.store.sessions import SessionInfo
from hermes.surfaces.terminal.search_results import hit_lines
from hermes.surfaces.terminal.style import FAIL, OK, stderr_style
from hermes.surfaces.terminal.text import (
    Screen,
    ago,
    clean,
    count,
    cut,
    money,
    one_line,
    stdout_screen,
    table,
    wrap,
)
from hermes.surfaces.terminal.transcript import heading, listing, transcript

BRING_IN = "Bring one in with: hermes sessions import FILE"
_NONE_YET = "No sessions yet. Each conversation with Hermes becomes one."
_PAGE = 200  # rows read at once


def say_none_yet() -> None:
    """What there is to say where nothing is, and what to do."""
    for line in wrap(f"{_NONE_YET}\n{BRING_IN}", stdout_screen().columns):
        print(line)


def list_sessions(app: App, args: argparse.Namespace) -> int:
    found = app.store.sessions.recent(limit=args.limit + 1)
    shown = found[: args.limit]
    if args.json:
        print_json({"sessions": [_document(info) for info in shown]})
        return 0
    if not shown:
        say_none_yet()
        return 0
    screen = stdout_screen()
    for line in _overview(app, shown, screen):
        print(line)
    if len(found) > len(shown):
        print(screen.style.dim("\nThere are more: hermes sessions list --all"))
    return 0


def _overview(app: App, sessions: list[SessionInfo], screen: Screen) -> Iterator[str]:
    now = app.clock.now()
    if screen.is_narrow:
        for info in sessions:
            head = f"{one_line(info.id)}  {ago(info.updated, now)}"
            yield screen.style.bold(cut(head, screen.columns))
            yield f"  {cut(_label(app, info), screen.columns - 2)}"
        return
    rows = [("ID", "USED", "MESSAGES", "COST")]
    rows += [
        (one_line(i.id), ago(i.updated, now), f"{i.messages:,}", money(i.cost_usd))
        for i in sessions
    ]
    lines = table([(cut(first, 28), *rest) for first, *rest in rows], right=(2, 3))
    labels = ["TITLE", *(_label(app, info) for info in sessions)]
    size = max(map(len, lines))
    for number, (line, label) in enumerate(zip(lines, labels, strict=True)):
        full = f"{line:<{size}}  {cut(label, screen.columns - size - 2)}".rstrip()
        yield full if number else screen.style.bold(full)


def _label(app: App, info: SessionInfo) -> str:
    """The title, or what a person would know an untitled session by: its first words."""
    kind = "" if info.kind == "root" else f"[{info.kind}] "
    if info.title:
        return kind + one_line(info.title)
    events = (row.event for row in app.store.log.events(info.id, after=1, limit=5))
    words = next(
        (one_line(event.text) for event in events if isinstance(event, UserMessage)), ""
    )
    return kind + (f"“{words}”" if words else "(empty)")


def show(app: App, args: argparse.Namespace) -> int:
    info = app.store.sessions.find(args.id)
    rows = _rows(app, info.id, args.after)
    if args.json:
        for row in rows:
            print_line(app.envelope(row))
        return 0
    screen = stdout_screen()
    if args.events:
        lines = listing(rows, screen)
    else:
        for line in heading(info, screen):
            print(line)
        lines = transcript(rows, screen)
    shown = 0
    for line in lines:
        print(line)
        shown += 1
    if not shown:
        print(
            f"No rows after {args.after}; the last one is {info.head}."
            if args.after
            else "\nNothing was said yet."
        )
    return 0


def _rows(app: App, session: str, after: int) -> Iterator[Row]:
    while page := app.store.log.events(session, after=after, limit=_PAGE):
        yield from page
        after = page[-1].seq


def search(app: App, args: argparse.Namespace) -> int:
    query = " ".join(args.words)
    session = app.store.sessions.find(args.session).id if args.session else ""
    hits = app.store.search.find(query, session=session, limit=args.limit)
    if args.json:
        print_json({"hits": [_hit_document(hit) for hit in hits]})
        return 0
    if not hits:
        print(
            "Nothing was found. All words must be in one message; fewer or shorter words find more."
        )
        return 0
    screen = stdout_screen()
    for line in hit_lines(hits, query, screen, app.clock.now()):
        print(line)
    return 0


def check(app: App, _args: argparse.Namespace) -> int:
    report = app.store.check()
    screen = stdout_screen()
    for problem in report.problems:
        print(screen.style.status(FAIL), clean(problem))
    looked = f"{count(report.sessions, 'session')} and {count(report.rows, 'row')} were looked at"
    if report.problems:
        print(f"\n{looked}; {count(len(report.problems), 'problem')}.", flush=True)
        app.close()
        with build(
            app.settings, app.home
        ) as reopened:  # which rebuilds what is damaged
            tell_recovery(reopened.store.recovery)
        return 1
    print(screen.style.status(OK), f"{looked}; all are sound.")
    return 1 if app.store.recovery is not None else 0


def tell_recovery(recovery: Recovery | Incomplete | None) -> None:
    """Says that the session log had to be rebuilt, or is incomplete, if so."""
    if recovery is not None:
        print(stderr_style().yellow("hermes:"), clean(str(recovery)), file=sys.stderr)


def print_json(document: object) -> None:
    """One JSON document, readable. Always UTF-8, whatever the terminal speaks."""
    print_bytes(msgspec.json.format(msgspec.json.encode(document), indent=2))


def print_line(document: Mapping[str, Any]) -> None:
    """One line of JSON."""
    print_bytes(msgspec.json.encode(document))


def print_bytes(line: bytes) -> None:
    sys.stdout.flush()
    sys.stdout.buffer.write(line + b"\n")


def _document(info: SessionInfo) -> dict[str, Any]:
    fields = msgspec.structs.asdict(info)
    names = {"id": "session_id", "root": "root_session_id", "head": "seq"}
    return {names.get(name, name): value for name, value in fields.items()}


def _hit_document(hit: Hit) -> dict[str, Any]:
    fields = msgspec.structs.asdict(hit)
    return {"session_id": fields.pop("session"), **fields}

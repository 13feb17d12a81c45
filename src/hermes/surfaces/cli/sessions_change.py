"""The commands of `hermes sessions` that move, name and delete: export, import, rename, delete, prune.

What can't be undone is asked for on a terminal, and refused without `--yes` where there is none (exit code 3).
"""

import argparse
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TextIO

from hermes.app import App
from hermes.errors import HermesError, ImportRejected, UsageError
from hermes.schema.events import SessionTitled
from hermes.store.log_row import MAX_EVENT_BYTES
from hermes.store.sessions import SessionInfo
from hermes.surfaces.terminal.style import printable, stderr_style
from hermes.surfaces.terminal.text import (
    Screen,
    ago,
    count,
    cut,
    moment,
    one_line,
    stdout_screen,
    wrap,
)

REFUSED = 3
EVERYTHING = 2**53  # as a limit

_HOURS = {"h": 1, "d": 24, "w": 7 * 24, "m": 30 * 24, "y": 365 * 24}
_TITLE = 200  # characters
_SHOWN = 10  # sessions named before they are deleted


def age(text: str) -> float:
    """`90d` in seconds, for argparse."""
    found = re.fullmatch(r"([0-9]{1,6})([hdwmy])", text.strip().lower())
    if not found or not int(found[1]):
        raise argparse.ArgumentTypeError(
            f"expected an age such as 90d, 12w, 6m, 1y or 36h, not {text!r}"
        )
    return int(found[1]) * _HOURS[found[2]] * 3600.0


def export(app: App, args: argparse.Namespace) -> int:
    info = app.store.sessions.find(args.id)
    lines = app.store.transfer.export(info.id)
    if args.output == "-":
        for line in lines:
            sys.stdout.buffer.write(line.encode() + b"\n")
        return 0
    target = Path(args.output).resolve()
    if target.exists() and not target.is_file():
        raise HermesError(
            f"{target} is not a file", hint="Nothing was written. Name a file with -o."
        )
    if target.exists() and not args.force:
        return _refuse(
            f"{target} exists.",
            "Nothing was written. Replace it with --force, or name another file.",
        )
    _write_file(target, lines)
    print(
        f"{count(info.head, 'row')} of session {one_line(info.id)} are in {printable(str(target))}"
    )
    return 0


def import_file(app: App, args: argparse.Namespace) -> int:
    source = sys.stdin.fileno() if args.file == "-" else args.file
    fresh = app.ids.session()
    try:
        with open(
            source, encoding="utf-8-sig", newline="\n", closefd=args.file != "-"
        ) as stream:
            imported = app.store.transfer.import_lines(_lines(stream), fresh_id=fresh)
    except UnicodeDecodeError as error:
        raise ImportRejected(
            f"{args.file} is not UTF-8 text", hint="Nothing was imported."
        ) from error
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ImportRejected(
            f"{args.file} can't be read ({reason})", hint="Nothing was imported."
        ) from error
    print(
        f"{count(imported.rows, 'row')} imported as session {one_line(imported.session)}"
    )
    if imported.session == fresh:
        print("Its own id was taken, so it has a new one.")
    return 0


def rename(app: App, args: argparse.Namespace) -> int:
    info = app.store.sessions.find(args.id)
    title = " ".join(" ".join(args.title).split())
    if len(title) > _TITLE:
        raise UsageError(
            f"The title has {len(title):,} characters; at most {_TITLE} are kept.",
            hint="Shorten it.",
        )
    app.record(info.id, SessionTitled(title=title))
    print(f"{one_line(info.id)}  {one_line(title) or '(no title)'}")
    return 0


def delete(app: App, args: argparse.Namespace) -> int:
    found = {info.id: info for info in map(app.store.sessions.find, args.id)}
    return _delete(app, list(found.values()), args, lambda _info: True)


def prune(app: App, args: argparse.Namespace) -> int:
    cutoff = app.clock.now() - args.older_than
    found = app.store.sessions.recent(limit=EVERYTHING, updated_before=cutoff)
    if not found:
        print(f"Nothing to delete: every session was used since {moment(cutoff)}.")
        return 0
    if args.dry_run:
        _describe(found, stdout_screen(), app.clock.now())
        print("Nothing was deleted (--dry-run).")
        return 0
    # A session may have been used while the question was on the screen.
    return _delete(
        app, found, args, lambda info: app.store.sessions.find(info.id).updated < cutoff
    )


def _delete(
    app: App,
    sessions: list[SessionInfo],
    args: argparse.Namespace,
    still: Callable[[SessionInfo], bool],
) -> int:
    """Asks, then deletes what `still` holds for; one session that can't be deleted does not keep the others."""
    _describe(sessions, stdout_screen(), app.clock.now())
    if not args.yes and not _agreed(
        f"Delete {count(len(sessions), 'session')} for good?"
    ):
        return REFUSED
    deleted = rows = failed = 0
    for info in sessions:
        try:
            if still(info):
                rows += app.delete(info.id)
                deleted += 1
        except HermesError as error:
            failed += 1
            _complain(error.message, error.hint)
    print(f"{count(deleted, 'session')} deleted ({count(rows, 'row')}).")
    return 1 if failed else 0


def _describe(sessions: list[SessionInfo], screen: Screen, now: float) -> None:
    oldest, newest = (
        min(info.updated for info in sessions),
        max(info.updated for info in sessions),
    )
    rows = sum(info.head for info in sessions)
    span = moment(oldest, "%Y-%m-%d")
    if (last := moment(newest, "%Y-%m-%d")) != span:
        span = f"{span} to {last}"
    heading = (
        f"{count(len(sessions), 'session')}, {count(rows, 'row')}, last used {span}:"
    )
    print("\n".join(wrap(heading, screen.columns)))
    for info in sessions[:_SHOWN]:
        line = f"  {one_line(info.id)}  {ago(info.updated, now):<10}  {one_line(info.title)}"
        print(cut(line.rstrip(), screen.columns))
    if len(sessions) > _SHOWN:
        print(f"  … and {len(sessions) - _SHOWN:,} more")


def _agreed(question: str) -> bool:
    if not sys.stdin.isatty():
        _refuse(
            "This needs a yes, and there is no terminal to ask on.",
            "Nothing was deleted. Say it with --yes.",
        )
        return False
    sys.stdout.flush()
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    answer = sys.stdin.readline()
    if not answer.endswith("\n"):  # end of input leaves the cursor behind the question
        print(file=sys.stderr)
    if answer.strip().lower() in {"y", "yes"}:
        return True
    print("Nothing was deleted.", file=sys.stderr)
    return False


def _refuse(message: str, hint: str) -> int:
    _complain(message, hint)
    return REFUSED


def _complain(message: str, hint: str) -> None:
    sys.stdout.flush()
    style = stderr_style()
    print(style.red("hermes:"), printable(message), file=sys.stderr)
    print(style.dim(printable(hint)), file=sys.stderr)


def _lines(stream: TextIO) -> Iterator[str]:
    """Lines, none of which can fill the memory."""
    while line := stream.readline(MAX_EVENT_BYTES + 2):
        yield line


def _write_file(target: Path, lines: Iterable[str]) -> None:
    """Writes all of it or nothing, for this user's eyes only."""
    draft = target.with_name(f".{target.name}.{os.getpid()}.new")
    try:
        handle = os.open(
            draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600
        )
        try:
            with os.fdopen(handle, "wb") as file:
                for line in lines:
                    file.write(line.encode() + b"\n")
                file.flush()
                os.fsync(handle)
            draft.replace(target)
        finally:
            draft.unlink(missing_ok=True)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        hint = (
            "Nothing was written. Check the folder, its permissions and the free space."
        )
        raise HermesError(f"{target} can't be written ({reason})", hint=hint) from error

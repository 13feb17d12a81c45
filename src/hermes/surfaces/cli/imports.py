"""`hermes import`: bring over what another agent has kept. A report comes first; the source is never changed."""

import argparse
import sys
from pathlib import Path

from hermes.app import build
from hermes.app.learning.importer import PARTS, Importer, ImportPlan, ImportReport
from hermes.errors import UsageError
from hermes.learning.imports.sources import Left
from hermes.learning.learning_service import open_learning
from hermes.settings.load import environment, find_home, load
from hermes.surfaces.terminal.stderr_message import say
from hermes.surfaces.terminal.text import count, cut, one_line, stdout_screen

_EXAMPLES = """\
examples:
  hermes import ~/.hermes-old --dry-run      what would come over
  hermes import ~/.hermes-old                sessions, memories, skills, settings, secrets, schedules
  hermes import ~/.hermes-old --only sessions,memories
  hermes import ~/.claude/projects           conversations of Claude Code
  hermes import ~/.codex/sessions            conversations of codex

Nothing of the source is changed, and nothing is imported twice.
"""
_NAMES = {
    "hermes": "a home of the well-known agent",
    "claude-code": "Claude Code",
    "codex": "codex",
}
_REFUSED = 3
_SHOWN = 20


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EXAMPLES
    parser.add_argument(
        "path",
        metavar="PATH",
        help="a home, a folder of conversations, or one file of them",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="only show what would come over"
    )
    parser.add_argument(
        "--only", metavar="PARTS", default="", help=f"some of: {', '.join(PARTS)}"
    )
    parser.add_argument("--yes", action="store_true", help="don't ask")


def run(args: argparse.Namespace) -> int:
    wanted = [part.strip() for part in args.only.split(",") if part.strip()]
    unknown = [part for part in wanted if part not in PARTS]
    if unknown:
        raise UsageError(
            f"There is nothing called {unknown[0]!r} to import.",
            hint=f"There are: {', '.join(PARTS)}",
        )
    parts = tuple(part for part in PARTS if part in wanted or not wanted)
    home = find_home()
    settings = load(home=home)
    with build(settings, home) as app:
        importer = Importer(
            app, open_learning(home, settings.learning, environment(), clock=app.clock)
        )
        made = importer.plan(Path(args.path).expanduser(), parts)
        _report(made)
        if made.empty or args.dry_run:
            print(
                "There is nothing to import."
                if made.empty
                else "Nothing was imported (--dry-run)."
            )
            return 0
        if not args.yes and not _agreed():
            return _REFUSED
        return _result(
            importer.carry_out(made, said=lambda text: print(text, flush=True))
        )


def _report(made: ImportPlan) -> None:
    screen = stdout_screen()
    print(screen.style.bold(f"{one_line(str(made.source))}: {_NAMES[made.kind]}"))
    lines = [
        (
            made.new_sessions,
            f"{count(made.new_sessions, 'session')} with {count(made.messages, 'message')}",
        ),
        (len(made.notes), f"{count(len(made.notes), 'note')} of memory"),
        (
            len(made.skills),
            f"{count(len(made.skills), 'skill')}: {', '.join(one.name for one in made.skills)}",
        ),
        (
            len(made.settings),
            f"{count(len(made.settings), 'setting')}: {', '.join(made.settings)}",
        ),
        (
            len(made.secrets),
            f"{count(len(made.secrets), 'secret')}: {', '.join(made.secrets)}",
        ),
        (
            len(made.schedules),
            f"{count(len(made.schedules), 'schedule')}, paused until you resume them",
        ),
    ]
    for number, text in lines:
        if number:
            print(cut(f"  {one_line(text)}", screen.columns))
    _print_left("Not carried over:", made.left)


def _print_left(title: str, left: tuple[Left, ...] | list[Left]) -> None:
    if not left:
        return
    screen = stdout_screen()
    print(title)
    for entry in left[:_SHOWN]:
        print(
            screen.style.dim(
                cut(f"  {one_line(entry.what)}: {one_line(entry.why)}", screen.columns)
            )
        )
    if len(left) > _SHOWN:
        print(f"  … and {len(left) - _SHOWN:,} more")


def _result(done: ImportReport) -> int:
    parts = [
        count(done.sessions, "session"),
        count(done.notes, "note"),
        count(done.skills, "skill"),
        count(done.settings, "setting"),
        count(done.secrets, "secret"),
        count(done.schedules, "schedule"),
    ]
    print(f"Imported: {', '.join(parts)}.")
    if done.schedules:
        print(
            "The schedules are paused: hermes cron list, then hermes cron resume JOB."
        )
    _print_left("Not imported:", done.problems)
    return 1 if done.problems else 0


def _agreed() -> bool:
    if not sys.stdin.isatty():
        say(
            "This needs a yes, and there is no terminal to ask on.",
            "Nothing was imported. Say it with --yes.",
        )
        return False
    sys.stdout.flush()
    print("Import this? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() in {"y", "yes"}:
        return True
    print("Nothing was imported.", file=sys.stderr)
    return False

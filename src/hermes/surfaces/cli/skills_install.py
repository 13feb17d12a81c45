"""`hermes skills install`: shows what a skill from elsewhere holds and would change, asks, and installs it."""

import argparse
import sys

from hermes.core.gitfolder import find_git
from hermes.learning.learning_service import LearningService
from hermes.learning.skill_install import InstallPlan, plan
from hermes.learning.skill_install import install as put
from hermes.learning.skill_source import open_parcel
from hermes.settings.load import environment
from hermes.surfaces.cli.skills_history import print_diff
from hermes.surfaces.terminal.stderr_message import say
from hermes.surfaces.terminal.text import count, one_line, stdout_screen

_REFUSED = 3


def install(learning: LearningService, args: argparse.Namespace) -> int:
    """Plans, shows, asks, does. Nothing of the skill is run."""
    environ = environment()
    parcel = open_parcel(args.source, git=find_git(environ), environment=environ)
    chosen = plan(learning.skills, parcel, skill=args.skill, expected=args.hash)
    _show(chosen)
    if args.dry_run:
        print("Nothing was installed (--dry-run).")
        return 1 if chosen.dangers else 0
    if chosen.replaces and not chosen.diff:
        print("It is installed already, exactly like this.")
        return 0
    if not (args.yes or chosen.dangers) and not _agreed():
        return _REFUSED
    learning.home.ensure()
    put(learning.skills, chosen, despite_dangers=args.despite_dangers)
    print(f"Installed {chosen.name}. New sessions know it; in the chat: /{chosen.name}")
    return 0


def _show(chosen: InstallPlan) -> None:
    screen = stdout_screen()
    print_diff(chosen.diff, screen.style)
    print()
    print(
        f"{screen.style.bold(chosen.name)}  {count(len(chosen.files), 'file')} from {one_line(chosen.source)}"
    )
    print(f"sha256:{chosen.hash}")
    for finding in chosen.findings:
        paint = screen.style.red if finding.level == "danger" else screen.style.yellow
        print(paint(one_line(str(finding))))
    if not chosen.findings:
        print("Nothing suspicious was found. That is no proof: read what you install.")


def _agreed() -> bool:
    if not sys.stdin.isatty():
        say(
            "This needs a yes, and there is no terminal to ask on.",
            "Nothing was installed. Say it with --yes.",
        )
        return False
    sys.stdout.flush()
    print("Install it? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() in {"y", "yes"}:
        return True
    print("Nothing was installed.", file=sys.stderr)
    return False

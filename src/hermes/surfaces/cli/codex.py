"""`hermes codex`: hand turns to the codex program, take them back, and see how it stands."""

import argparse
import asyncio
import sys

from hermes.codex.engine_switch import SwitchContext, disable, enable, status
from hermes.codex.tools_server import serve_command
from hermes.settings.load import environment, find_home, load
from hermes.settings.redaction import mask
from hermes.surfaces.terminal.style import printable


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "action",
        nargs="?",
        choices=("on", "off", "status"),
        default="status",
        help="what to do",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="with `on`: only show what would change"
    )


def run(args: argparse.Namespace) -> int:
    home = find_home()
    place = SwitchContext(
        home=home,
        settings=load(home=home),
        environ=environment(),
        tool_server=serve_command(),
    )
    if args.action == "status":
        lines = asyncio.run(status(place)).lines()
        print("\n".join(map(printable, lines)))
        return 0
    outcome = (
        disable(place)
        if args.action == "off"
        else asyncio.run(enable(place, dry_run=args.dry_run))
    )
    if outcome.diff and args.dry_run:
        print(printable(mask(outcome.diff)))
    first, *notes = outcome.lines
    print(printable(first))
    for note in notes:
        print(f"- {printable(note)}")
    sys.stdout.flush()
    return 0

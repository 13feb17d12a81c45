"""`hermes backup`: one file with everything that is yours."""

import argparse
from datetime import datetime
from pathlib import Path

from hermes.settings.load import find_home


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file",
        metavar="FILE",
        nargs="?",
        help="where to (default: hermes-DATE.tar.gz in this folder)",
    )
    parser.add_argument(
        "--without-secrets",
        action="store_true",
        help="leave out or mask your keys, and what looks like one",
    )


def run(args: argparse.Namespace) -> int:
    from hermes.app.backup import back_up
    from hermes.surfaces.terminal.text import count, one_line

    target = Path(
        args.file or f"hermes-{datetime.now().astimezone():%Y-%m-%d-%H%M%S}.tar.gz"
    )
    done = back_up(find_home(), target, secrets=not args.without_secrets)
    name = one_line(str(done.file))
    print(
        f"{name}: {count(done.files, 'file')}, {done.size / 1e6:.1f} MB. It comes back with: hermes restore {name}"
    )
    print(
        f"It contains: {', '.join(_counted(name, files) for name, files in done.holds)}."
    )
    if done.withheld:
        print(
            f"Left out, because they contain secrets: {one_line(', '.join(done.withheld))}"
        )
    if done.masked:
        print(
            f"Your keys were masked in {count(done.masked, 'row')} of the session log."
        )
    if done.masked_files:
        print(
            f"Masked what looks like a secret in: {one_line(', '.join(done.masked_files))}"
        )
    if done.left_out:
        print(
            f"Left out, because they lead out of the home: {one_line(', '.join(done.left_out))}"
        )
    if not args.without_secrets:
        print(
            "Your keys are in it: keep it to yourself, or make one with --without-secrets."
        )
    return 0


def _counted(name: str, files: int) -> str:
    return name if files == 1 else f"{name} ({files} files)"

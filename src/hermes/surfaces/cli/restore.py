"""`hermes restore`: puts a backup in place of the Hermes home, which is kept beside it."""

import argparse
from datetime import datetime
from pathlib import Path

from hermes.settings.load import find_home


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="what `hermes backup` made")


def run(args: argparse.Namespace) -> int:
    from hermes.app.backup import restore
    from hermes.surfaces.terminal.text import count, one_line

    home = find_home()
    done = restore(
        home, Path(args.file), stamp=f"{datetime.now().astimezone():%Y-%m-%d-%H%M%S}"
    )
    print(f"{count(done.files, 'file')} back in {one_line(str(home.root))}.")
    if done.left_out:
        print(
            f"Left out, because git would run programs from them: {one_line(', '.join(done.left_out))}"
        )
    if done.aside is not None:
        print(f"What was there before is kept: {one_line(str(done.aside))}")
    return 0

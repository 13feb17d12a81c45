"""`hermes resume`: the chat, in a session that is already there."""

import argparse

from hermes.surfaces.cli.dispatch import converse


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "id",
        metavar="ID",
        nargs="?",
        default="last",
        help="its id or title; the one used last otherwise",
    )


def run(args: argparse.Namespace) -> int:
    return converse(["--resume", args.id])

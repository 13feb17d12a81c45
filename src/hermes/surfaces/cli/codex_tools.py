"""`hermes mcp serve-tools`: offers codex the tools it lacks, as an MCP server on stdin and stdout."""

import argparse
import asyncio

from hermes import __version__
from hermes.codex.tools_server import lent_by, serve
from hermes.settings.load import environment


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--list",
        action="store_true",
        help="print the names of the tools that are lent, and end",
    )


def run(args: argparse.Namespace) -> int:
    lending = None if args.list else lent_by(environment())
    if lending is not None:  # codex waits for this: nothing more is loaded
        asyncio.run(serve(lending, __version__))
        return 0
    from hermes.surfaces.cli.codex_offer import names, serve_alone

    if args.list:
        print("\n".join(names()))
    else:
        serve_alone()
    return 0

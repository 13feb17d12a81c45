"""`hermes mcp serve-tools`: offers codex the tools it lacks, as an MCP server on stdin and stdout."""

import argparse
import asyncio
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path

from hermes import __version__
from hermes.app import build
from hermes.app.agent import Agent
from hermes.app.app import App
from hermes.app.delegation import Delegation
from hermes.app.toolbox import needs_of
from hermes.codex.lend import lendable
from hermes.codex.serve import Alone, lent_by, serve
from hermes.core.ports import Tool
from hermes.settings.load import environment, find_home, load, load_secrets
from hermes.tools import session_tools


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--list", action="store_true", help="print the names of the tools that are lent, and end")


def run(args: argparse.Namespace) -> int:
    if args.list:
        with _app() as app:
            print("\n".join(sorted(lendable(_tools(app)))))
        return 0
    lending = lent_by(environment())
    if lending is not None:
        asyncio.run(serve(lending, __version__))
        return 0
    with _app() as app:
        policy = Agent(app, load_secrets(home=app.home)).policy
        asyncio.run(serve(Alone(_tools(app), policy, Path.cwd()), __version__))
    return 0


def _app() -> AbstractContextManager[App]:
    home = find_home()
    return build(load(home=home), home)


def _tools(app: App) -> Mapping[str, Tool]:
    """Every tool that a session with these settings has."""
    delegation = Delegation(app, lambda: Agent(app, load_secrets(home=app.home)).service)
    return session_tools(needs_of(app, load_secrets(home=app.home), extra=(delegation.delegate,)))

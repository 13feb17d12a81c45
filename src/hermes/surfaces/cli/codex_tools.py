"""`hermes mcp serve-tools`: offers codex the tools it lacks, as an MCP server on stdin and stdout."""

import argparse
import asyncio
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from hermes import __version__
from hermes.codex.lend import lendable
from hermes.codex.serve import Alone, Source, lent_by, serve
from hermes.core.ports import Tool
from hermes.settings.load import environment, find_home, load, load_secrets


def serve_command() -> tuple[str, ...]:
    """How this Hermes is started to serve tools: by its own program, wherever that is."""
    beside = Path(sys.executable).with_name("hermes")
    program = str(beside) if beside.is_file() else shutil.which("hermes", path=environment().get("PATH"))
    return (program, "mcp", "serve-tools") if program else (sys.executable, "-m", "hermes", "mcp", "serve-tools")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--list", action="store_true", help="print the names of the tools that are lent, and end")


def run(args: argparse.Namespace) -> int:
    if args.list:
        print("\n".join(sorted(lendable(_tools()))))
        return 0
    asyncio.run(_serve())
    return 0


async def _serve() -> None:
    source: Source = lent_by(environment()) or _alone()
    await serve(source, __version__)


def _alone() -> Alone:
    from hermes.app.agent import Agent
    from hermes.app import build

    home = find_home()
    app = build(load(home=home), home)
    agent = Agent(app, load_secrets(home=home))
    return Alone(agent.tools(""), agent.policy(""), Path.cwd())


def _tools() -> Mapping[str, Tool]:
    """Every tool that a session with these settings has."""
    from hermes.app import build
    from hermes.app.agent import Agent

    home = find_home()
    with build(load(home=home), home) as app:
        return Agent(app, load_secrets(home=home)).tools("")

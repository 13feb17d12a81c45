"""The tools that `hermes mcp serve-tools` has by itself, without a session that lends them."""

import asyncio
from collections.abc import Mapping
from contextlib import AbstractContextManager

from hermes import __version__
from hermes.app import build
from hermes.app.agent import Agent
from hermes.app.app import App
from hermes.app.delegate_tool import Delegation
from hermes.app.session_tools import needs_of
from hermes.codex.tool_lending import lendable
from hermes.codex.tools_server import Alone, serve
from hermes.core.ports import Tool
from hermes.settings.load import current_folder, find_home, load, load_secrets
from hermes.tools import session_tools


def names() -> list[str]:
    """What a session with these settings lends."""
    with _app() as app:
        return sorted(lendable(_tools(app)))


def serve_alone() -> None:
    """Serves what needs no session, until stdin ends."""
    with _app() as app:
        policy = Agent(app, load_secrets(home=app.home)).policy
        asyncio.run(serve(Alone(_tools(app), policy, current_folder()), __version__))


def _app() -> AbstractContextManager[App]:
    home = find_home()
    return build(load(home=home), home)


def _tools(app: App) -> Mapping[str, Tool]:
    secrets = load_secrets(home=app.home)
    delegation = Delegation(app, lambda: Agent(app, secrets).service)
    return session_tools(needs_of(app, secrets, extra=(delegation.delegate,)))

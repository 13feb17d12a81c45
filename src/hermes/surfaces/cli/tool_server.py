"""`hermes mcp serve-tools`: offers codex the tools it lacks, as an MCP server on stdin and stdout."""

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

from hermes import __version__
from hermes.codex.tools_server import lent_by, serve
from hermes.commands.command import command
from hermes.commands.context import CommandContext
from hermes.settings.load import current_folder

if TYPE_CHECKING:
    from hermes.core.ports import Tool


@command("mcp serve-tools")
def serve_tools(
    context: CommandContext,
    *,
    list_: Annotated[bool, "print their names instead"] = False,
) -> int:
    """Offer codex the tools it lacks, on stdin and stdout."""
    lending = None if list_ else lent_by(context.environment)
    if lending is not None:  # codex waits for this: nothing more is loaded
        asyncio.run(serve(lending, __version__))
        return 0
    from hermes.app.agent import Agent
    from hermes.codex.tool_lending import lendable
    from hermes.codex.tools_server import StandaloneToolSource

    tools = _tools(context)
    if list_:
        print("\n".join(sorted(lendable(tools))))
        return 0
    policy = Agent(context.app, context.secrets).policy
    asyncio.run(
        serve(StandaloneToolSource(tools, policy, current_folder()), __version__)
    )
    return 0


def _tools(context: CommandContext) -> Mapping[str, "Tool"]:
    """The tools that are there without a session that lends them."""
    from hermes.app.agent import Agent
    from hermes.app.delegate_tool import Delegation
    from hermes.app.session_tools import choice_of, needs_of
    from hermes.tools import session_tools

    app, secrets = context.app, context.secrets
    delegation = Delegation(app, lambda: Agent(app, secrets).service)
    choice = choice_of(app, "cli")
    return session_tools(needs_of(app, secrets, choice, extra=(delegation.delegate,)))

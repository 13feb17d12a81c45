"""`hermes mcp serve`: offers Hermes to other agents, on stdin and stdout or over HTTP."""

import asyncio
import signal
import sys
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from hermes.app import App, build
from hermes.commands.command import command
from hermes.commands.context import CommandContext
from hermes.errors import HermesError, SettingsError, UsageError
from hermes.settings import Secrets
from hermes.settings.load import current_folder
from hermes.surfaces.gateway.api_server.api_keys import ApiKeys
from hermes.surfaces.gateway.mcp_server.served_tools import (
    READING_SCOPES,
    SERVED_SCOPES,
    ServedTools,
)
from hermes.surfaces.web.hosts_and_origins import Host, Port, listening_on
from hermes.text.install_words import install_hint
from hermes.text.translation import in_language, translator

t = translator(__name__)


DEFAULT_PORT = 8713


@command("mcp serve")
def serve_mcp(
    context: CommandContext,
    *,
    http: Annotated[bool, "serve over HTTP, to callers with a key"] = False,
    scope: Annotated[
        tuple[str, ...],
        f"on stdin and stdout: what to offer, of {', '.join(SERVED_SCOPES)} (default: read sessions and memory)",
    ] = (),
    host: Host = None,
    port: Port = None,
) -> int:
    """Offer Hermes' sessions, memory and tools to other agents, as an MCP server."""
    unknown = [one for one in scope if one not in SERVED_SCOPES]
    if unknown:
        raise UsageError(
            t("There is no scope {unknown!r}.", unknown=unknown[0]),
            hint=t(
                "There are: {served_scopes}.", served_scopes=", ".join(SERVED_SCOPES)
            ),
        )
    if http and scope:
        raise UsageError(
            t("Over HTTP, the scopes are those of the key."),
            hint="hermes api key add NAME --scope mcp --scope sessions",
        )
    section = listening_on(
        context.settings.api, host, DEFAULT_PORT if port is None else port
    )
    settings = msgspec.structs.replace(context.settings, api=section)
    with build(settings, context.home) as app:
        try:
            asyncio.run(
                _serve(app, context.secrets, scope, "http" if http else "stdio")
            )
        except ImportError as error:
            raise HermesError(
                t(
                    "Serving needs a package that is not installed ({name}).",
                    name=error.name,
                ),
                hint=install_hint("mcp"),
            ) from error
    return 0


async def _serve(
    app: App,
    secrets: Secrets,
    scope: tuple[str, ...],
    transport: Literal["http", "stdio"],
) -> None:
    from hermes.surfaces.gateway.mcp_server.protocol_server import (
        McpHttpServer,
        serve_stdio,
    )

    served = await asyncio.to_thread(served_tools, app, secrets, current_folder())
    if transport == "stdio":
        try:
            with in_language(None):  # a program reads it
                await serve_stdio(served, scope or READING_SCOPES)
        finally:
            await served.close()
        return
    if not any("mcp" in key.scopes for key in ApiKeys(app.home, app.clock.now).all()):
        raise SettingsError(
            t("There is no key for the MCP server yet."),
            hint=t(
                "Make one with: hermes api key add NAME --scope mcp --scope sessions --scope memory"
            ),
        )

    def ready(url: str) -> None:
        sys.stdout.write(t("Serving MCP at {url}. Ctrl-C stops it.\n", url=url))
        sys.stdout.flush()

    serving = asyncio.ensure_future(McpHttpServer(app, secrets, served).run(ready))
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, serving.cancel)
    await asyncio.wait({serving})
    await served.close()
    if not serving.cancelled():
        serving.result()


def served_tools(app: App, secrets: Secrets, cwd: Path) -> ServedTools:
    """What can be served from this home, in this folder."""
    from hermes.app.agent import Agent
    from hermes.app.session_tools import choice_of, needs_of
    from hermes.tools import session_tools

    # Past sessions have a scope of their own, and nobody is there to be asked.
    choice = choice_of(app, "api").for_others()
    choice = msgspec.structs.replace(choice, disabled=(*choice.disabled, "ask"))
    needs = needs_of(app, secrets, choice)
    policy = Agent(app, secrets).policy
    return ServedTools(app, lambda: session_tools(needs), policy, cwd)

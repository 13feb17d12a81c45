"""All configured servers of one process: their tools, their status, and closing them."""

import asyncio
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from hermes.core.ports import Effect, ToolContext
from hermes.errors import SettingsError, ToolFailed
from hermes.mcp.connection import load
from hermes.mcp.definitions import Definition, Listing, is_server_name
from hermes.mcp.logins import LoginStore
from hermes.mcp.results import ResultFiles
from hermes.mcp.safe_text import ServerFailed, ServerRefused, one_line
from hermes.mcp.server import McpServer
from hermes.mcp.server_cache import Listings, ToolPins
from hermes.mcp.server_config import ServerContext, ServerReports, ServerStatus
from hermes.mcp.server_prompts import PromptDefinition
from hermes.schema.tool_spec import ToolResult, ToolSpec
from hermes.settings import Home, Secrets
from hermes.settings.mcp import McpServerSettings
from hermes.text.translation import translator

t = translator(__name__)

PREPARE_TIMEOUT_S = 4.0
"""How long a new session waits for servers that were never asked before. Slower ones join the next session."""


class Probe(msgspec.Struct, frozen=True, kw_only=True):
    """The result of trying a server."""

    title: str
    seconds: float
    listing: Listing
    changed: tuple[str, ...]


class McpTool:
    """A server's tool, as a tool of Hermes.

    What it does is unknown, so it counts as able to do anything. A claim that a tool only reads is believed only of a
    server that the user trusts.
    """

    def __init__(self, server: McpServer, definition: Definition) -> None:
        self.spec = definition.spec(server.name)
        self.effect: Effect = (
            "read" if definition.read_only and server.settings.trusted else "other"
        )
        self._server = server
        self._name = definition.name

    @property
    def caution(self) -> str:
        """What a person should know before allowing a call."""
        if self._server.is_changed(self._name):
            return t.logged("the server has changed this tool since you accepted it")
        return ""

    def paths(self, arguments: Mapping[str, Any], cwd: Path) -> tuple[Path, ...]:  # noqa: ARG002 - the port's shape
        """Returns nothing, because it is unknown which files a server touches."""
        return ()

    async def run(
        self, arguments: Mapping[str, Any], context: ToolContext
    ) -> ToolResult:
        """Calls the server, connecting first if necessary."""
        return await self._server.call(self._name, arguments, context)


class ResourceTool:
    """`mcp_resources`: lists and reads the resources of servers. Offered only when a server has some."""

    effect: Effect = "other"

    def __init__(self, servers: Mapping[str, McpServer]) -> None:
        self._servers = servers
        names = {"type": "string", "enum": sorted(servers)}
        uri = {
            "type": "string",
            "description": "Which one; without it, all are listed.",  # not translated
        }
        self.spec = ToolSpec(
            name="mcp_resources",
            description="Lists the resources of an MCP server, or reads one.",
            parameters={
                "type": "object",
                "properties": {"server": names, "uri": uri},
                "required": ["server"],
            },
        )

    def paths(self, arguments: Mapping[str, Any], cwd: Path) -> tuple[Path, ...]:  # noqa: ARG002 - the port's shape
        """Returns nothing: no file of the user is touched."""
        return ()

    async def run(
        self,
        arguments: Mapping[str, Any],
        context: ToolContext,  # noqa: ARG002 - the port's shape
    ) -> ToolResult:
        """Asks the server, connecting first if necessary."""
        server = self._servers.get(str(arguments["server"]))
        if server is None:
            raise ToolFailed(f"No MCP server {arguments['server']!r} has resources.")
        return await server.resource(str(arguments.get("uri") or ""))


class McpServers:
    """The servers of the settings. The constructor reads the cached listings and starts nothing."""

    def __init__(
        self,
        settings: Mapping[str, McpServerSettings],
        home: Home,
        secrets: Secrets,
        environment: Mapping[str, str],
        *,
        reports: ServerReports = ServerReports(),  # noqa: B008 - frozen
    ) -> None:
        self._context = context = ServerContext(
            home=home,
            secrets=secrets,
            environment=environment,
            listings=Listings(home),
            pins=ToolPins(home),
            files=ResultFiles(home.cache / "outputs"),
            logins=LoginStore(home),
            reports=reports,
        )
        self._servers = {
            name: McpServer(name, settings[name], context) for name in sorted(settings)
        }

    async def prepare(self, timeout_s: float = PREPARE_TIMEOUT_S) -> None:
        """Asks the servers that were never asked, all at once, before a session's first prompt.

        The next sessions do not wait for a server that was too late; it joins when it answers.
        """
        unknown = [one for one in self._servers.values() if one.is_unknown]
        tasks = {asyncio.ensure_future(_connect(one)): one for one in unknown}
        awaited = [
            task
            for task, one in tasks.items()
            if not self._context.listings.is_late(one.name)
        ]
        if awaited:
            await asyncio.wait(awaited, timeout=timeout_s)
        else:
            await asyncio.sleep(0)  # lets the other connections begin
        for task, server in tasks.items():
            if not task.done():
                task.cancel()  # only the waiting ends; the server keeps connecting
                self._context.listings.mark_late(server.name)

    def resource_tools(self) -> tuple[ResourceTool, ...]:
        """Returns the tool that reads resources; none if no server is known to have some."""
        having = {
            name: one
            for name, one in self._servers.items()
            if one.settings.enabled and one.listing and one.listing.has_resources
        }
        return (ResourceTool(having),) if having else ()

    def prompts(self) -> Mapping[str, PromptDefinition]:
        """Returns the prompts that servers offer, as `server:prompt`. Connects to nothing."""
        return {
            f"{server.name}:{name}": one
            for server in self._servers.values()
            if server.settings.enabled and server.listing
            for name, one in server.listing.prompts.items()
        }

    def has(self, server: str) -> bool:
        """Whether a server of this name is enabled."""
        return server in self._servers and self._servers[server].settings.enabled

    async def prompt(self, server: str, name: str, words: str) -> str:
        """The text of a prompt that a person called. Raises HermesError."""
        return await self._servers[server].prompt(name, words)

    async def resource(self, server: str, uri: str) -> ToolResult:
        """Reads a resource, or lists all of them without `uri`. Raises ToolFailed."""
        return await self._servers[server].resource(uri)

    def tools(self) -> Mapping[str, McpTool]:
        """Returns what the servers offer, by the names a model uses. Connects to nothing."""
        made = (
            McpTool(server, definition)
            for server in self._servers.values()
            for definition in server.offered().values()
        )
        return {tool.spec.name: tool for tool in made}

    def status(self) -> tuple[ServerStatus, ...]:
        """Returns the state of each server now."""
        return tuple(server.status() for server in self._servers.values())

    async def probe(self, name: str, *, accept: bool = False) -> Probe:
        """Connects to a server and lists its tools; with `accept`, accepts them as they are now. Raises ServerFailed."""
        server = self._servers.get(name)
        if server is None:
            raise SettingsError(
                t.later("There is no MCP server {name!r}.", name=name),
                hint=t.later("See: hermes mcp list"),
            )
        await load()
        began = time.perf_counter()
        try:
            connection = await server.connected()
            listing = await connection.tools()
        except ServerRefused as refused:
            raise ServerFailed(
                t.later("it refused"), said=one_line(str(refused))
            ) from refused
        seconds = time.perf_counter() - began
        if accept:
            server.accept()
        return Probe(
            title=connection.title,
            seconds=seconds,
            listing=listing,
            changed=server.changed(),
        )

    def forget(self, name: str) -> None:
        """Deletes what was stored about a server that is no longer configured."""
        if is_server_name(name):
            self._context.listings.forget(name)
            self._context.pins.forget(name)
            self._context.logins.forget(name)

    async def close(self) -> None:
        """Ends every server, all at once."""
        await asyncio.gather(*(server.close() for server in self._servers.values()))


async def _connect(server: McpServer) -> None:
    """Connects. If that fails, the reason is in the server's status."""
    try:
        await server.connected()
    except ServerFailed:
        return

"""All configured servers of one process: which tools they offer, how it is with them, and their end."""

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import TypeAlias

import msgspec

from hermes.errors import SettingsError
from hermes.mcp.connection import load
from hermes.mcp.definitions import Listing, is_server_name
from hermes.mcp.failures import ServerFailed, ServerRefused
from hermes.mcp.results import ResultFiles
from hermes.mcp.safe_text import one_line
from hermes.mcp.server import McpServer
from hermes.mcp.server_cache import Listings, ToolPins
from hermes.mcp.server_context import ServerContext, ServerStatus
from hermes.mcp.tool import McpTool
from hermes.settings import Home, Secrets
from hermes.settings.sections import McpServerSettings

PATIENCE = 4.0
"""Seconds that a new session waits for servers that were never asked before. Who is later joins the next session."""

OnChange: TypeAlias = Callable[[ServerStatus], None]


class Probe(msgspec.Struct, frozen=True, kw_only=True):
    """What trying a server has shown."""

    title: str
    seconds: float
    listing: Listing
    changed: tuple[str, ...]


class McpServers:
    """The servers of the settings. Making it reads the cached listings and starts nothing."""

    def __init__(
        self,
        settings: Mapping[str, McpServerSettings],
        home: Home,
        secrets: Secrets,
        environment: Mapping[str, str],
        *,
        on_change: OnChange = lambda _: None,
    ) -> None:
        self._place = place = ServerContext(
            home=home,
            secrets=secrets,
            environment=environment,
            listings=Listings(home),
            pins=ToolPins(home),
            shelf=ResultFiles(home.cache / "outputs"),
            on_change=on_change,
        )
        self._servers = {
            name: McpServer(name, settings[name], place) for name in sorted(settings)
        }

    async def prepare(self, patience: float = PATIENCE) -> None:
        """Before a session's first prompt: asks the servers that were never asked, all at once and not for long. One
        that was too late for a session is not waited for in the next ones, and joins when it answers."""
        unknown = [one for one in self._servers.values() if one.is_unknown]
        tasks = {asyncio.ensure_future(_try(one)): one for one in unknown}
        awaited = [
            task
            for task, one in tasks.items()
            if not self._place.listings.is_late(one.name)
        ]
        if awaited:
            await asyncio.wait(awaited, timeout=patience)
        else:
            await asyncio.sleep(0)  # lets the others begin
        for task, server in tasks.items():
            if not task.done():
                task.cancel()  # only the waiting ends; the server goes on opening
                self._place.listings.mark_late(server.name)

    def tools(self) -> Mapping[str, McpTool]:
        """What the servers offer, by the names a model calls them by. Nothing is connected for it."""
        made = (
            McpTool(server, definition)
            for server in self._servers.values()
            for definition in server.offered().values()
        )
        return {tool.spec.name: tool for tool in made}

    def status(self) -> tuple[ServerStatus, ...]:
        """How it is with each server now."""
        return tuple(server.status() for server in self._servers.values())

    async def probe(self, name: str, *, accept: bool = False) -> Probe:
        """Connects to a server and lists its tools; with `accept`, they are accepted as they are now.

        ServerFailed says why it can't be used."""
        server = self._servers.get(name)
        if server is None:
            raise SettingsError(
                f"There is no MCP server {name!r}.", hint="See: hermes mcp list"
            )
        await load()
        began = time.perf_counter()
        try:
            connection = await server.connected()
            listing = await connection.tools()
        except ServerRefused as refused:
            raise ServerFailed("it refused", said=one_line(str(refused))) from refused
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
        """Drops what was remembered of a server that is no longer configured."""
        if is_server_name(name):
            self._place.listings.forget(name)
            self._place.pins.forget(name)

    async def close(self) -> None:
        """Ends every server, all at once."""
        await asyncio.gather(*(server.close() for server in self._servers.values()))


async def _try(server: McpServer) -> None:
    """Connects; why that failed is in the server's status."""
    try:
        await server.connected()
    except ServerFailed:
        return

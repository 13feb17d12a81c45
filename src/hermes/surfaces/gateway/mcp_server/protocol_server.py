"""Speaks MCP as a server, with the `mcp` library: on stdin and stdout, and over streamable HTTP with a key.

Host, Origin, key and scope are checked by `surfaces/web` before the library sees a request. Every request stands alone;
there are no protocol sessions that another key could take over.
"""

import re
from collections.abc import Callable, Collection
from contextlib import AsyncExitStack
from itertools import combinations
from typing import Any

from mcp import types
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.types import Receive, Scope, Send

from hermes import __version__
from hermes.app import App
from hermes.settings import Secrets
from hermes.surfaces.gateway.api_server.access_control import OpenAIErrors, api_access
from hermes.surfaces.gateway.mcp_server.served_tools import (
    SERVED_SCOPES,
    ServedTools,
    served_caller,
)
from hermes.surfaces.web.application import InEnglish, WebApplication
from hermes.surfaces.web.endpoint import CALLER
from hermes.surfaces.web.routes import Route, RouteTable
from hermes.surfaces.web.server import (
    ListenAddress,
    ServerProtocols,
    WebServer,
    listen,
    require_safe,
)

_INSTRUCTIONS = (
    "Sessions, memory and tools of Hermes, the user's own agent on this machine."
)


def protocol_server(served: ServedTools, scopes: Collection[str]) -> Server[Any]:
    """Returns a server that offers what these scopes allow."""

    async def list_tools(*_: object) -> types.ListToolsResult:
        return types.ListToolsResult(
            tools=[
                types.Tool(
                    name=spec.name,
                    description=spec.description,
                    input_schema=spec.parameters,
                    annotations=types.ToolAnnotations(read_only_hint=reads),
                )
                for spec, reads in served.listed(scopes)
            ]
        )

    async def call_tool(
        _: object, asked: types.CallToolRequestParams
    ) -> types.CallToolResult:
        result = await served.call(scopes, asked.name, asked.arguments or {})
        text = types.TextContent(type="text", text=result.text)
        return types.CallToolResult(content=[text], is_error=not result.ok)

    return Server(
        "hermes",
        version=__version__,
        instructions=_INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


async def serve_stdio(served: ServedTools, scopes: Collection[str]) -> None:
    """Serves until stdin ends."""
    server = protocol_server(served, scopes)
    options = InitializationOptions(
        server_name="hermes",
        server_version=__version__,
        capabilities=server.get_capabilities(NotificationOptions(), {}),
        instructions=_INSTRUCTIONS,
    )
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, options)


class McpHttpServer:
    """Serves `/mcp` to callers with a key, until it is cancelled. What a key sees are its scopes."""

    def __init__(self, app: App, secrets: Secrets, served: ServedTools) -> None:
        self._app = app
        self._secrets = secrets
        self._served = served
        self._managers: dict[frozenset[str], StreamableHTTPSessionManager] = {}
        self._running = AsyncExitStack()

    async def run(self, ready: Callable[[str], object]) -> None:
        """Serves; calls `ready` with the address once it listens."""
        settings = self._app.settings.api
        require_safe(settings, section="api", who="The MCP server")
        hint = "Choose another port with --port."
        listener = listen(settings.host, settings.port, who="The MCP server", hint=hint)
        address = ListenAddress.of(settings, listener)
        async with self._running:
            await self._start_managers()
            try:
                server = WebServer(
                    self._application(address),
                    listener,
                    self._app.errors,
                    "the MCP server",
                    protocols=ServerProtocols(),
                    tls=settings,
                )
                await server.serve(lambda: ready(f"{address.url}/mcp"))
            finally:
                listener.close()

    def _application(self, address: ListenAddress) -> InEnglish:
        access = api_access(self._app, self._secrets, address)
        methods = frozenset({"POST", "GET", "DELETE"})
        route = Route("http", methods, re.compile("/mcp"), "mcp", self._serve)
        table = RouteTable([route], ignore_trailing_slash=True)
        return InEnglish(WebApplication(table, access, OpenAIErrors()))

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        scopes = frozenset(SERVED_SCOPES).intersection(scope[CALLER].scopes)
        served_caller.set(scope[CALLER].id)
        await self._managers[scopes].handle_request(scope, receive, send)

    async def _start_managers(self) -> None:
        """Starts one part of the library for each set of scopes that a key can have: it knows no callers."""
        for count in range(len(SERVED_SCOPES) + 1):
            for scopes in map(frozenset, combinations(SERVED_SCOPES, count)):
                manager = StreamableHTTPSessionManager(
                    protocol_server(self._served, scopes),
                    json_response=True,
                    stateless=True,
                )
                self._managers[scopes] = manager
                await self._running.enter_async_context(manager.run())

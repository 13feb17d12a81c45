"""A server's tool as a tool of Hermes."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hermes.core.parallel_calls import Effect
from hermes.core.ports import ToolContext
from hermes.mcp.definitions import Definition
from hermes.mcp.server import McpServer
from hermes.schema.tools import ToolResult


class McpTool:
    """Implements the `Tool` port. What it does is the server's affair, so it counts as an effect of any kind; only of
    a server that the user trusts is it believed that a tool just reads."""

    def __init__(self, server: McpServer, definition: Definition) -> None:
        self.spec = definition.spec(server.name)
        self.effect: Effect = (
            "read" if definition.read_only and server.settings.trusted else "other"
        )
        self._server = server
        self._name = definition.name

    @property
    def caution(self) -> str:
        """What a person should know before allowing a call; mostly nothing."""
        if self._server.is_changed(self._name):
            return "the server has changed this tool since you accepted it"
        return ""

    def paths(self, arguments: Mapping[str, Any], cwd: Path) -> tuple[Path, ...]:  # noqa: ARG002 - the port's shape
        """Nobody knows which files a server touches."""
        return ()

    async def run(
        self, arguments: Mapping[str, Any], context: ToolContext
    ) -> ToolResult:
        """Calls the server, connecting first if need be."""
        return await self._server.call(self._name, arguments, context)

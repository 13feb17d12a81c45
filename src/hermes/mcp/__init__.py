"""MCP servers as a source of tools. The `mcp` library is loaded when the first server is connected, not before."""

from hermes.mcp.definitions import is_server_name
from hermes.mcp.safe_text import ServerFailed
from hermes.mcp.server_config import ServerStatus
from hermes.mcp.servers import McpServers, Probe

__all__ = ["McpServers", "Probe", "ServerFailed", "ServerStatus", "is_server_name"]

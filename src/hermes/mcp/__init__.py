"""MCP servers as a source of tools. The `mcp` library is loaded when the first server is connected, not before."""

from hermes.mcp.place import ServerStatus
from hermes.mcp.servers import Probe, Servers

__all__ = ["Probe", "ServerStatus", "Servers"]

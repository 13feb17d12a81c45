"""`hermes mcp serve`: Hermes' sessions, memory and tools for other agents, as an MCP server."""

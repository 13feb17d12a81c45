"""An MCP server that offers the tools of a file, and answers each call with the call. Without the `mcp` library."""

import json
import sys
from pathlib import Path
from typing import Any

TOOLS = json.loads(Path(sys.argv[1]).read_text())


def answer(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    if method == "initialize":
        return {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "many", "version": "1"},
        }
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "tools/call":
        said = json.dumps([params["name"], params.get("arguments", {})])
        return {"content": [{"type": "text", "text": said}]}
    return None


for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    result = answer(message["method"], message.get("params", {}))
    reply: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
    if result is None:
        reply["error"] = {"code": -32601, "message": "unknown method"}
    else:
        reply["result"] = result
    sys.stdout.write(json.dumps(reply) + "\n")
    sys.stdout.flush()

"""`hermes mcp serve-tools`: an MCP server on stdin and stdout that offers codex Hermes' tools. With a session, it
runs nothing itself: calls go over the session's socket. Without one, for example when the user starts codex directly,
it offers tools that need neither a session nor approval.
"""

import asyncio
import base64
import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from hermes.children.own_python import hermes_command
from hermes.codex.tool_lending import (
    SOCKET,
    TOKEN,
    LendingRequest,
    LentTool,
    LentToolReply,
    lendable,
    offers,
    send_lending_request,
)
from hermes.core.calls import check_arguments, readable
from hermes.core.ports import Policy, Tool, ToolContext
from hermes.errors import HermesError, ToolFailed
from hermes.schema.messages import Image
from hermes.schema.tool_spec import ToolResult
from hermes.text.install_words import install_hint
from hermes.text.translation import translator

t = translator(__name__)

if TYPE_CHECKING:
    from mcp import types

_GONE = "The Hermes session that lent this tool is gone."
_ALONE = (
    "web_search",
    "web_fetch",
    "session_search",
)  # tools that need neither a session nor a person


class ToolSource(Protocol):
    """A source that runs the offered tools."""

    async def offers(self) -> Sequence[LentTool]: ...

    async def call(self, name: str, arguments: Mapping[str, Any]) -> ToolResult: ...


class SessionToolSource:
    """The tools of a running session."""

    def __init__(self, socket: str, token: str) -> None:
        self._socket = socket
        self._token = token

    async def offers(self) -> Sequence[LentTool]:
        return (await self._ask(LendingRequest(self._token))).offers

    async def call(self, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        reply = await self._ask(LendingRequest(self._token, name, arguments))
        return reply.result or ToolResult(text=reply.refusal or _GONE, ok=False)

    async def _ask(self, ask: LendingRequest) -> LentToolReply:
        try:
            return await send_lending_request(self._socket, ask)
        except OSError:
            return LentToolReply(refusal=_GONE)


class StandaloneToolSource:
    """Tools that work without a session.

    Calls that the policy does not allow outright are refused, because there is nobody to ask.
    """

    def __init__(self, tools: Mapping[str, Tool], policy: Policy, cwd: Path) -> None:
        self._tools = {
            name: tool for name, tool in lendable(tools).items() if name in _ALONE
        }
        self._policy = policy
        self._cwd = cwd
        self._numbers = itertools.count(1)

    async def offers(self) -> Sequence[LentTool]:
        return offers(self._tools)

    async def call(self, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        tool = self._tools.get(name)
        if tool is None:
            return ToolResult(text=f"{name} needs a running Hermes session.", ok=False)
        problem = check_arguments(arguments, tool.spec.parameters)
        if problem:
            return ToolResult(text=f"Not run: {problem}", ok=False)
        if self._policy.judge(tool, arguments, self._cwd).verdict != "allow":
            return ToolResult(
                text="Not run: it needs permission, and nobody can be asked here.",
                ok=False,
            )
        context = ToolContext(
            f"alone-{next(self._numbers)}", "", self._cwd, lambda _: None
        )
        try:
            result = await tool.run(arguments, context)
        except ToolFailed as error:
            return ToolResult(text=f"{error.message} {error.hint}".strip(), ok=False)
        return ToolResult(text=readable(result), ok=result.ok, images=result.images)


def serve_command() -> tuple[str, ...]:
    """Returns the command that starts this Hermes as a tool server."""
    return hermes_command("mcp", "serve-tools")


def lent_by(environ: Mapping[str, str]) -> SessionToolSource | None:
    """Returns the session that lends tools, if this process was started for one."""
    socket, token = environ.get(SOCKET, ""), environ.get(TOKEN, "")
    return SessionToolSource(socket, token) if socket and token else None


async def serve(source: ToolSource, version: str) -> None:
    """Serves until stdin ends. Raises HermesError if the MCP library is not installed."""
    try:
        from mcp import types
        from mcp.server.lowlevel import NotificationOptions, Server
        from mcp.server.models import InitializationOptions
        from mcp.server.stdio import stdio_server
    except ImportError as error:
        raise HermesError(
            t.later("The MCP library is not installed."), hint=install_hint("mcp")
        ) from error

    async def list_tools(*_: object) -> "types.ListToolsResult":
        return types.ListToolsResult(
            tools=[_tool(offer) for offer in await source.offers()]
        )

    async def call_tool(
        _: object, asked: "types.CallToolRequestParams"
    ) -> "types.CallToolResult":
        return await _called(await source.call(asked.name, asked.arguments or {}))

    server: Server[Any] = Server(
        "hermes", version=version, on_list_tools=list_tools, on_call_tool=call_tool
    )
    options = InitializationOptions(
        server_name="hermes",
        server_version=version,
        capabilities=server.get_capabilities(NotificationOptions(), {}),
    )
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, options)


def _tool(offer: LentTool) -> "types.Tool":
    from mcp import types

    hints = types.ToolAnnotations(read_only_hint=offer.reads)
    spec = offer.spec
    return types.Tool(
        name=spec.name,
        description=spec.description,
        input_schema=spec.parameters,
        annotations=hints,
    )


async def _called(result: ToolResult) -> "types.CallToolResult":
    from mcp import types

    images = [image for image in result.images if not image.withheld]
    pictures = [await asyncio.to_thread(_picture, image) for image in images]
    shown = [
        types.ImageContent(type="image", data=data, mime_type=image.media_type)
        for image, data in zip(images, pictures, strict=True)
        if data
    ]
    text = types.TextContent(type="text", text=result.text)
    return types.CallToolResult(content=[text, *shown], is_error=not result.ok)


def _picture(image: Image) -> str:
    """Returns an image's bytes as text; empty for one that is not on this machine."""
    try:
        return base64.b64encode(Path(image.source).read_bytes()).decode()
    except OSError:
        return ""

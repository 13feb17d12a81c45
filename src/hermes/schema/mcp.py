"""Events about MCP servers. None of them is a row of a log."""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Meta

from hermes.schema.event_base import Event


class _McpEvent(Event, frozen=True, kw_only=True):
    """Fields that all of them have."""

    durable: ClassVar[bool] = False

    server: Annotated[str, Meta(description="Its name in the settings.")]


class McpServerChanged(_McpEvent, frozen=True, kw_only=True):
    """A server was connected, disconnected, or failed."""

    topic: ClassVar[str] = "mcp.server.changed"
    reasons: ClassVar[tuple[str, ...]] = ("detail",)

    state: Annotated[
        str, Meta(description="off, idle, connecting, connected or failed.")
    ]
    detail: Annotated[str, Meta(description="Why, or what it calls itself.")] = ""
    tools: Annotated[int, Meta(description="How many tools it offers.")] = 0


class McpServerLogged(_McpEvent, frozen=True, kw_only=True):
    """A server sent a log message."""

    topic: ClassVar[str] = "mcp.server.logged"
    sensitive: ClassVar[tuple[str, ...]] = ("text",)

    level: Annotated[
        str, Meta(description="debug to emergency, as the protocol has it.")
    ]
    text: Annotated[str, Meta(description="Its message, shortened and redacted.")]


class McpToolsSuspected(_McpEvent, frozen=True, kw_only=True):
    """Descriptions of tools look like instructions to the model. Those tools are not offered."""

    topic: ClassVar[str] = "mcp.tools.suspected"

    findings: Annotated[
        tuple[str, ...], Meta(description="The tools, and what was found in each.")
    ]


class McpLoginEnded(_McpEvent, frozen=True, kw_only=True):
    """A server no longer accepts the user's login."""

    topic: ClassVar[str] = "mcp.login.ended"

    reason: Annotated[str, Meta(description="What its authorization server said.")]
    command: Annotated[str, Meta(description="The command that signs in again.")]


MCP_EVENTS = (McpServerChanged, McpServerLogged, McpToolsSuspected, McpLoginEnded)

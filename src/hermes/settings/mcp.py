"""The settings that hold for all MCP servers together."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from hermes.settings.section import Section


class McpSettings(Section, frozen=True):
    """How the tools of MCP servers are offered. The servers themselves are in `mcp_servers`."""

    defer: Annotated[
        Literal["auto", "always", "never"],
        Meta(
            description="Let the model find servers' tools by searching, instead of describing all of them in the prompt: "
            "`auto` when they would take more than a tenth of the context window."
        ),
    ] = "auto"

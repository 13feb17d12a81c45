"""Settings of MCP servers: of all together, and of each."""

# ruff: noqa: RUF012 - msgspec gives each instance an empty dict of its own

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


class McpToolSettings(Section, frozen=True):
    """Which tools of a server are offered, by name or by pattern, such as `read_*`."""

    include: Annotated[
        tuple[str, ...], Meta(description="Offer only these; empty for all.")
    ] = ()
    exclude: Annotated[tuple[str, ...], Meta(description="Don't offer these.")] = ()
    vetted: Annotated[
        tuple[str, ...],
        Meta(
            description="Offer these although their description looks like an instruction to the model; you have read it."
        ),
    ] = ()


class McpServerSettings(Section, frozen=True):
    """A program that Hermes starts (`command`), or a service (`url`). `${NAME}` in `env` and `headers` stands for a secret."""

    command: Annotated[str, Meta(description="The program to start.")] = ""
    args: Annotated[tuple[str, ...], Meta(description="Its arguments.")] = ()
    env: Annotated[
        dict[str, str],
        Meta(description="Environment variables for the program; it gets few others."),
    ] = {}
    cwd: Annotated[
        str,
        Meta(description="The folder the program runs in; empty for your home folder."),
    ] = ""
    url: Annotated[str, Meta(description="URL of a service (streamable HTTP).")] = ""
    headers: Annotated[
        dict[str, str],
        Meta(description="Headers to send with every request to the service."),
    ] = {}
    timeout: Annotated[
        float,
        Meta(gt=0, le=3600, description="Seconds of silence after which a call fails."),
    ] = 60.0
    connect_timeout: Annotated[
        float,
        Meta(gt=0, le=600, description="Seconds to wait for the server to start."),
    ] = 10.0
    idle_timeout: Annotated[
        float,
        Meta(
            ge=0,
            le=86400,
            description="Seconds without a call until the server is stopped; 0 for never.",
        ),
    ] = 1800.0
    enabled: Annotated[
        bool, Meta(description="If false, the server stays configured but is not used.")
    ] = True
    trusted: Annotated[
        bool,
        Meta(
            description="Trust the server to say which of its tools only read; those run without asking."
        ),
    ] = False
    tools: McpToolSettings = McpToolSettings()

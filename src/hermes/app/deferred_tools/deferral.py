"""Decides whether the tools of MCP servers stand in a prompt, or behind `tool_search`."""

from collections.abc import Mapping
from typing import Literal, TypeAlias

import msgspec

from hermes.app.deferred_tools.catalogue import CATALOGUE_TOOLS, is_deferrable
from hermes.core.ports import Tool

Deferral: TypeAlias = Literal["auto", "always", "never"]

MAX_WINDOW_SHARE = 0.1
"""The part of the context window that servers' tools may take before they are deferred."""
_BYTES_PER_TOKEN = 4


def shown_tools(
    tools: Mapping[str, Tool], wanted: Deferral, window_tokens: int | None
) -> dict[str, Tool]:
    """Returns the tools that a prompt describes: either those of the servers, or the three that find them."""
    servers = [one for name, one in tools.items() if is_deferrable(name)]
    can_defer = all(name in tools for name in CATALOGUE_TOOLS)
    is_deferred = can_defer and _is_deferred(servers, wanted, window_tokens)
    return {
        name: one
        for name, one in tools.items()
        if not (is_deferrable(name) if is_deferred else name in CATALOGUE_TOOLS)
    }


def _is_deferred(
    servers: list[Tool], wanted: Deferral, window_tokens: int | None
) -> bool:
    if not servers or wanted == "never":
        return False
    if wanted == "always":
        return True
    if not window_tokens:
        return False
    size = sum(len(msgspec.json.encode(one.spec)) for one in servers)
    return size / _BYTES_PER_TOKEN > window_tokens * MAX_WINDOW_SHARE

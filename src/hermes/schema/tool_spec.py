"""A tool as a model sees it."""

from __future__ import annotations

from typing import Any

import msgspec

from hermes.schema.messages import Image


class ToolSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A tool as a model sees it. `parameters` is a JSON Schema object."""

    name: str
    description: str
    parameters: dict[str, Any]


class ToolResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a tool call: what the model reads, and whether it worked."""

    text: str
    ok: bool = True
    images: tuple[Image, ...] = ()
    source: str = ""
    """Where untrusted text came from (an address, a server): the model gets it fenced, as data."""

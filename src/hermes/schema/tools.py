"""A tool as a model sees it."""

from typing import Any

import msgspec


class ToolSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A tool as a model sees it. `parameters` is a JSON Schema object."""

    name: str
    description: str
    parameters: dict[str, Any]

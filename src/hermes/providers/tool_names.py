"""Tool names on the wire. Services accept 64 letters, digits, `_` and `-`; our names may have dots (`mcp.a.b`)."""

import hashlib
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

import msgspec

from hermes.schema.messages import AssistantMessage
from hermes.schema.model import ModelEvent, ReplyFinished, ToolCallStarted
from hermes.schema.tool_spec import ToolSpec

_MAX_TOOL_NAME_CHARACTERS = 64


@lru_cache(maxsize=4_096)
def wire_name(name: str) -> str:
    """Returns a name that services accept: the same for the same name, another for every other name."""
    clean = name.replace(".", "__")
    is_reversible = "__" not in name and "___" not in clean and ".." not in name
    if is_reversible and re.fullmatch(r"[A-Za-z0-9_-]{1,64}", clean):
        return clean
    clean = re.sub(r"[^A-Za-z0-9_-]", "_", clean)
    return f"{clean[: _MAX_TOOL_NAME_CHARACTERS - 9]}_{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def own_names(tools: Iterable[ToolSpec]) -> Mapping[str, str]:
    """Maps names on the wire to our own, for those that differ."""
    return {
        wire: spec.name for spec in tools if (wire := wire_name(spec.name)) != spec.name
    }


def with_own_names(event: ModelEvent, names: Mapping[str, str]) -> ModelEvent:
    """Returns the event with the tools' own names."""
    if not names:
        return event
    if isinstance(event, ToolCallStarted) and event.name in names:
        return msgspec.structs.replace(event, name=names[event.name])
    if isinstance(event, ReplyFinished):
        return msgspec.structs.replace(event, message=_renamed(event.message, names))
    return event


def _renamed(message: AssistantMessage, names: Mapping[str, str]) -> AssistantMessage:
    calls = tuple(
        msgspec.structs.replace(call, name=names.get(call.name, call.name))
        for call in message.tool_calls
    )
    return msgspec.structs.replace(message, tool_calls=calls)

"""Tool calls that a model wrote as plain text instead of in the form of its template: a JSON object with name and arguments.

Smaller models often do that. A text counts as a call only if it is nothing else, and only for a tool that was offered.
"""

import re
from collections.abc import Collection
from typing import Any

import msgspec

_BEGINNINGS = ("```json", "```tool", "<tool_call>", "{")
_WRAPPING = re.compile(
    r"\A\s*+(?:```(?:json|tool_call|tool)?|<tool_call>)?\s*+(\{.*\})\s*+(?:```|</tool_call>)?\s*+\Z",
    re.DOTALL,
)


class _WrittenCall(msgspec.Struct):
    name: str
    arguments: dict[str, Any] = {}


def may_be_call(text: str) -> bool:
    """Whether a text that is still being written may become a call."""
    begun = text.lstrip()
    return any(begun.startswith(one) or one.startswith(begun) for one in _BEGINNINGS)


def written_call(text: str, names: Collection[str]) -> tuple[str, str] | None:
    """Returns the name and the arguments of a call that is written as text; None if it is none."""
    found = _WRAPPING.match(text)
    if found is None:
        return None
    try:
        call = msgspec.json.decode(found[1], type=_WrittenCall)
    except (msgspec.DecodeError, RecursionError):
        return None
    if call.name not in names:
        return None
    return call.name, msgspec.json.encode(call.arguments).decode()

"""Reads the arguments of a tool call strictly. Error messages tell the model what to change."""

from typing import Any

import msgspec

from hermes.primitives.untyped import list_of, object_of

MAX_NESTING_DEPTH = 100
"""How deeply lists and objects may be nested."""
DAMAGED = "\x00"
"""Stands for a character lost in transit. JSON does not allow it, so such a call can't be run by mistake."""


class BadArguments(ValueError):
    """The arguments can't be read; the message says why."""


def parse_arguments(text: str) -> object:
    """The arguments as data. Raises BadArguments if they are not JSON, or no tool could accept them."""
    if DAMAGED in text:
        raise BadArguments(
            "a character in the arguments was damaged in transit. Make the call again."
        )
    try:
        arguments = msgspec.json.decode(text or "{}")
    except RecursionError:
        raise BadArguments(_TOO_DEEP) from None
    except msgspec.DecodeError as error:
        raise BadArguments(
            f"the arguments are not valid JSON ({_reason(text, error)})"
        ) from error
    if text.count("[") + text.count("{") > MAX_NESTING_DEPTH and _is_too_deep(
        arguments
    ):
        raise BadArguments(_TOO_DEEP)
    return arguments


def arguments_by_name(text: str) -> dict[str, Any]:
    """The arguments, for display; empty if they can't be read."""
    try:
        arguments = parse_arguments(text)
    except BadArguments:
        return {}
    return object_of(arguments)


_TOO_DEEP = f"the arguments are nested more than {MAX_NESTING_DEPTH} levels deep. Use a flatter structure."


def _reason(text: str, error: msgspec.DecodeError) -> str:
    if "surrogate" in str(error) or (
        "\\ud" in text.lower() and "truncated" in str(error)
    ):
        return (
            "a \\u escape is only half of a surrogate pair; write the character itself"
        )
    return str(error)


def _is_too_deep(value: object) -> bool:
    level: list[object] = [value]
    for _ in range(MAX_NESTING_DEPTH):
        level = [inner for outer in level for inner in _inside(outer)]
        if not level:
            return False
    return any(isinstance(inner, (dict, list)) for inner in level)


def _inside(value: object) -> list[object]:
    if isinstance(value, dict):
        return list(value.values())
    return list_of(value)

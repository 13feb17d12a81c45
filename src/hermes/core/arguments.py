"""Reads the arguments of a tool call strictly; errors are worded so that the model can act on them."""

from typing import Any

import msgspec

MAX_DEPTH = 100
"""How deep lists and objects in a call may be nested."""
DAMAGED = "\x00"
"""Stands for a character lost in transit. JSON does not allow it, so such a call can't be run by mistake."""


class BadArguments(ValueError):
    """The arguments can't be read; the message says why."""


def parse_arguments(text: str) -> object:
    """The arguments as data; BadArguments when they are not JSON, or not what a tool could take."""
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
    if text.count("[") + text.count("{") > MAX_DEPTH and _is_too_deep(arguments):
        raise BadArguments(_TOO_DEEP)
    return arguments


def arguments_by_name(text: str) -> dict[str, Any]:
    """The arguments as far as they can be shown; none when they can't be read."""
    try:
        arguments = parse_arguments(text)
    except BadArguments:
        return {}
    return arguments if isinstance(arguments, dict) else {}


_TOO_DEEP = f"the arguments are nested more than {MAX_DEPTH} levels deep. Use a flatter structure."


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
    for _ in range(MAX_DEPTH):
        level = [inner for outer in level for inner in _inside(outer)]
        if not level:
            return False
    return any(isinstance(inner, (dict, list)) for inner in level)


def _inside(value: object) -> list[object]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []

"""Times, arguments and results as JSON values. A model's arguments are its own text, and may be no JSON at all."""

from datetime import UTC, datetime
from typing import Any

import msgspec

from hermes.schema.messages import ToolCall


def parsed_arguments(call: ToolCall) -> dict[str, Any]:
    """The arguments of a call; `{"_raw": text}` if they are not a JSON object."""
    try:
        found = msgspec.json.decode(call.arguments or "{}")
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        found = None
    return found if isinstance(found, dict) else {"_raw": call.arguments}


def parsed_result(text: str) -> Any:
    """The result of a call: an object or a list if it is one in JSON, else the text."""
    if not text.lstrip().startswith(("{", "[")):
        return text
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return text


def iso_time(ts: float) -> str:
    """A time in UTC as ISO 8601, such as `2026-11-17T07:00:00.250Z`."""
    moment = datetime.fromtimestamp(ts, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")

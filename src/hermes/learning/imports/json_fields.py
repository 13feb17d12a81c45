"""Reads untyped JSON from other programs. A value of the wrong type counts as missing."""

import itertools
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from hermes.schema.messages import ToolCall

Object: TypeAlias = dict[str, Any]
_MAX_LINE_BYTES = 32_000_000


class Objects:
    """The objects of a JSON Lines file. Other lines are skipped and counted in `passed`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.passed = 0

    def __iter__(self) -> Iterator[Object]:
        with self._path.open("rb") as file:
            while line := file.readline(_MAX_LINE_BYTES):
                try:
                    found = msgspec.json.decode(line)
                except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                    found = None
                if isinstance(found, dict):
                    yield found
                elif line.strip():
                    self.passed += 1


def text(value: object) -> str:
    """Returns a text, or the texts of a list of blocks."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        parts = [
            text(part.get("text", "")) if isinstance(part, dict) else text(part)
            for part in value
        ]
        return "\n".join(part for part in parts if part)
    return ""


def moment(value: object) -> float:
    """Returns a time in any format as Unix seconds; 0 if it cannot be read."""
    if isinstance(value, bool):
        return 0.0
    if isinstance(value, int | float):
        return float(value) / 1000 if value > 1e11 else float(value)
    try:
        return datetime.fromisoformat(str(value)).timestamp()
    except (ValueError, OverflowError):
        return 0.0


class CallIds:
    """Assigns ids to calls: the source's own, or new ones."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)

    def call(self, name: object, arguments: object, call_id: object) -> ToolCall:
        """Returns a call, with its arguments as JSON text."""
        written = (
            arguments
            if isinstance(arguments, str)
            else msgspec.json.encode(arguments or {}).decode()
        )
        given = (
            call_id
            if isinstance(call_id, str) and call_id
            else f"call-{next(self._numbers)}"
        )
        return ToolCall(id=given, name=str(name or "unknown"), arguments=written)

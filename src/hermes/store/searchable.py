"""Extracts the searchable text of a message."""

from collections.abc import Iterator

import msgspec


class _Call(msgspec.Struct):
    name: str = ""
    arguments: str = ""


class _Text(msgspec.Struct):
    text: str = ""
    tool_calls: list[_Call] = []


_decode = msgspec.json.Decoder(_Text).decode


def searchable(data: bytes | str) -> str:
    """Returns the text of a message; empty for one that can't be read, which the full check reports."""
    try:
        return "\n".join(_parts(_decode(data)))
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ""


def _parts(message: _Text) -> Iterator[str]:
    yield message.text
    for call in message.tool_calls:
        yield f"{call.name} {call.arguments}"

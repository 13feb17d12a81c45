"""Decodes JSON bodies and query strings into a given type.

Invalid input of any kind raises only `InvalidRequest`, with the reason.
"""

from collections.abc import Collection, Mapping
from typing import Any, Literal, TypeAlias, TypeVar

import msgspec

T = TypeVar("T")
Part: TypeAlias = Literal["request", "address"]

_MAX_INTEGER = 2**63 - 1
"""The largest integer that the database, and most other languages, can hold."""


class InvalidRequest(ValueError):
    """A request can't be decoded. `is_json`: it is JSON, but not of the expected type."""

    def __init__(self, reason: str, *, is_json: bool, part: Part = "request") -> None:
        super().__init__(reason)
        self.is_json = is_json
        self.part = part


def read_json(content: bytes, kind: type[T]) -> T:
    """Decodes a body. Raises InvalidRequest, and nothing else."""
    try:
        found = msgspec.json.decode(content, type=kind)
    except msgspec.ValidationError as error:
        raise InvalidRequest(str(error), is_json=True) from error
    except UnicodeDecodeError as error:
        raise InvalidRequest("it is not UTF-8", is_json=False) from error
    except RecursionError as error:
        raise InvalidRequest("it is nested too deeply", is_json=False) from error
    except msgspec.DecodeError as error:
        raise InvalidRequest(str(error), is_json=False) from error
    _require_small_integers(found, "request")
    return found


def read_query(given: Mapping[str, str], kind: type[T]) -> T:
    """Decodes query parameters. Raises InvalidRequest."""
    try:
        found = msgspec.convert(dict(given), kind, strict=False)
    except msgspec.ValidationError as error:
        raise InvalidRequest(str(error), is_json=True, part="address") from error
    _require_small_integers(found, "address")
    return found


def _require_small_integers(value: Any, part: Part) -> None:
    """Raises InvalidRequest for an integer that is too large to be stored."""
    values = [value]
    while values:
        one = values.pop()
        if isinstance(one, int) and abs(one) > _MAX_INTEGER:
            reason = "a number in it has more than 64 bits"
            raise InvalidRequest(reason, is_json=True, part=part)
        if isinstance(one, msgspec.Struct):
            values += [getattr(one, name) for name in one.__struct_fields__]
        elif isinstance(one, dict):
            values += one.values()
        elif isinstance(one, Collection) and not isinstance(one, str | bytes):
            values += one

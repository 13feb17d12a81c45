"""Decodes JSON from requests into a given type. Whatever was sent, the only error is `InvalidRequest`, with the reason."""

from collections.abc import Collection, Mapping
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")

_LARGEST_INTEGER = 2**63 - 1
"""What the database, and most other languages, hold."""


class InvalidRequest(ValueError):
    """What was sent can't be used; the words say why. `is_json` when it is JSON, of another shape."""

    def __init__(self, words: str, *, is_json: bool) -> None:
        super().__init__(words)
        self.is_json = is_json


def read_json(content: bytes, kind: type[T]) -> T:
    """The content as `kind`. Raises Unreadable, and nothing else."""
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
    _require_small(found)
    return found


def read_query(given: Mapping[str, str], kind: type[T]) -> T:
    """The parameters of an address as `kind`. Raises Unreadable."""
    try:
        found = msgspec.convert(dict(given), kind, strict=False)
    except msgspec.ValidationError as error:
        raise InvalidRequest(str(error), is_json=True) from error
    _require_small(found)
    return found


def _require_small(value: Any) -> None:
    """Raises Unreadable for an integer that is too large to be kept."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, int) and abs(one) > _LARGEST_INTEGER:
            raise InvalidRequest("a number in it has more than 64 bits", is_json=True)
        if isinstance(one, msgspec.Struct):
            waiting += [getattr(one, name) for name in one.__struct_fields__]
        elif isinstance(one, dict):
            waiting += one.values()
        elif isinstance(one, Collection) and not isinstance(one, str | bytes):
            waiting += one

"""Encodes events as JSON, for everything outside this process. Values that JSON can't hold become strings, counted."""

from collections.abc import Mapping
from typing import Any

import msgspec

from hermes.events.envelope import MAX_LEVELS, Unencodable, base_value, is_json

MAX_TEXT_CHARS = 10_000  # of the string in the place of a value

_encode = msgspec.json.Encoder().encode


class WireEncoder:
    """Encodes events for one destination outside the process."""

    __slots__ = ("replaced",)

    def __init__(self) -> None:
        self.replaced = 0
        """How many values that JSON can't hold were sent as strings."""

    def encode(self, event: object) -> bytes:
        """Returns the event as JSON, whatever it contains."""
        try:
            return _encode(self.ready(event))
        except (TypeError, ValueError, RecursionError):
            return _encode(self.plain(event))

    def ready(self, event: Any) -> Any:
        """Returns the event itself, or a copy with unencodable values replaced."""
        return self.plain(event) if type(event) is Unencodable else event

    def plain(self, value: Any) -> Any:
        """Returns the value with only JSON types."""
        return self._plain(value, set())

    def _plain(self, value: Any, inside: set[int]) -> Any:
        if is_json(value):
            return value
        if isinstance(value, (str, int, float)) and is_json(base := base_value(value)):
            return base
        if (
            isinstance(value, (Mapping, list, tuple))
            and id(value) not in inside
            and len(inside) < MAX_LEVELS
        ):
            inside.add(id(value))
            try:
                if isinstance(value, Mapping):
                    return {
                        self._name(name): self._plain(inner, inside)
                        for name, inner in list(value.items())
                    }
                return [self._plain(inner, inside) for inner in list(value)]
            except Exception:  # noqa: BLE001, S110 - a container of the publisher's own that can't be read
                pass
            finally:
                inside.discard(id(value))
        self.replaced += 1
        return _text(value)

    def _name(self, name: object) -> str:
        if type(name) is str and is_json(name):
            return name
        self.replaced += 1
        return _text(name)


def _text(value: object) -> str:
    """Returns a value as text, even if the value's own code fails."""
    if isinstance(value, str):
        return _repaired(value[:MAX_TEXT_CHARS])
    try:
        form = msgspec.to_builtins(value)
        text = form if isinstance(form, str) else str(value)
    except Exception:  # noqa: BLE001 - a subscriber's or publisher's own class
        text = _described(value)
    return _repaired(text[:MAX_TEXT_CHARS])


def _described(value: object) -> str:
    try:
        return str(value)
    except Exception:  # noqa: BLE001 - as above
        return f"<{type(value).__qualname__}>"


def _repaired(text: str) -> str:
    """Returns encodable text: matching halves of a surrogate pair are joined, other halves are replaced."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")

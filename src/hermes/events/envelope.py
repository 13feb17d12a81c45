"""Envelopes: the immutable dicts that subscribers receive, with the payload's values.

Containers are copied and frozen; tuples stay tuples. A value that JSON can't hold stays unchanged,
and the envelope is then an `Unencodable`: senders replace the value with a string (`wire.py`).
"""

import time
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, SupportsIndex

MAX_LEVELS = 100
MAX_DIGITS = 4300  # of an integer: Python writes and reads no more

# The values that are their own JSON form, and need no look inside.
FLAT: frozenset[type] = frozenset((str, int, float, bool, type(None)))

_TOO_LARGE = 10**MAX_DIGITS
_fill_in = dict.setdefault  # an envelope refuses its own


class Envelope(dict[str, Any]):
    """An immutable dict. `dict(event)` is a mutable copy of its first level, `thaw(event)` of all."""

    __slots__ = ()

    def __copy__(self) -> "Envelope":
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> "Envelope":
        return self

    def __reduce__(self) -> tuple[type["Envelope"], tuple[dict[str, Any]]]:
        return Unencodable if type(self) is Unencodable else Envelope, (dict(self),)


class Unencodable(Envelope):
    """An envelope, or a part of one, with a value that JSON can't hold."""

    __slots__ = ()


class Foreign(Envelope):
    """A complete envelope from another process: the bus delivers it as it is. A copy is not foreign."""

    __slots__ = ()


class FrozenList(list[Any]):
    """An immutable list inside an envelope."""

    __slots__ = ()

    def __copy__(self) -> "FrozenList":
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> "FrozenList":
        return self

    def __reduce_ex__(
        self, protocol: SupportsIndex
    ) -> tuple[type["FrozenList"], tuple[list[Any]]]:
        return FrozenList, (list(self),)


def _refuse(*_: object, **__: object) -> NoReturn:
    raise TypeError(
        "an event can't be changed, because others receive it too: copy it first, as in dict(event)"
    )


for _change in (
    "__setitem__",
    "__delitem__",
    "__ior__",
    "clear",
    "pop",
    "popitem",
    "setdefault",
    "update",
):
    setattr(Envelope, _change, _refuse)
for _change in (
    "__setitem__",
    "__delitem__",
    "__iadd__",
    "__imul__",
    "append",
    "clear",
    "extend",
    "insert",
    "pop",
):
    setattr(FrozenList, _change, _refuse)
for _change in ("remove", "reverse", "sort"):
    setattr(FrozenList, _change, _refuse)


def thaw(value: Any) -> Any:
    """Returns a plain, mutable copy of an event or of a part of one, at every level."""
    if isinstance(value, dict):
        return {key: thaw(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [thaw(inner) for inner in value]
    if isinstance(value, tuple):
        return _tuple_like(value, [thaw(inner) for inner in value])
    return value


def seal(payload: object, topic: str, source: str, now: float) -> Envelope:
    """Builds the envelope of `payload`, with `type`, `ts` and `src` filled in if missing.

    A payload that can't be read is delivered as it is, under the name `payload`.
    """
    if payload is None:
        return Envelope(type=topic, ts=now, src=source)
    if (
        isinstance(payload, Envelope)
        and "type" in payload
        and "ts" in payload
        and "src" in payload
    ):
        return payload
    require_mapping(payload)
    sealer = _Sealer()
    content: dict[str, Any]
    try:
        content = dict(sealer.items(payload))
    except Exception:  # noqa: BLE001 - a mapping of the publisher's own that can't be read
        sealer.is_unencodable = True
        content = {"payload": payload}
    for name, value in (("type", topic), ("ts", now), ("src", source)):
        content.setdefault(name, value)
    return Unencodable(content) if sealer.is_unencodable else Envelope(content)


def require_mapping(payload: object) -> None:
    """Raises if the payload is not a mapping."""
    if (
        payload is not None
        and type(payload) is not dict
        and not isinstance(payload, Mapping)
    ):
        kind = type(payload).__qualname__
        raise TypeError(
            f"payload: a mapping of names to values was expected, not {kind}"
        )


def is_json(value: Any) -> bool:
    """Returns whether a string, number, truth value or None can be encoded as JSON."""
    kind = type(value)
    if kind is str:
        return str.isascii(value) or _is_text(value)
    if kind is int:
        return -_TOO_LARGE < value < _TOO_LARGE
    if kind is float:
        return (
            not value - value
        )  # infinity and not-a-number give not-a-number, which is true
    return kind in FLAT


class _Sealer:
    """One walk through one payload. Tracks the containers it is inside of, to detect cycles."""

    __slots__ = ("_inside", "is_unencodable")

    def __init__(self) -> None:
        self._inside: set[int] = set()
        self.is_unencodable = False
        """Whether the payload has a value that JSON can't hold."""

    def items(self, payload: Any) -> list[tuple[Any, Any]]:
        """Yields the payload's names and frozen values."""
        self._inside.add(id(payload))
        return [self._item(name, value) for name, value in list(payload.items())]

    def _item(self, name: object, value: object) -> tuple[object, object]:
        if type(name) is not str or not is_json(name):
            self.is_unencodable = True
        return name, value if is_json(value) else self._frozen(value)

    def _frozen(self, value: object) -> object:
        """Freezes a value that is not plain: containers as copies, anything else as it is."""
        if type(value) is Envelope:
            return value
        if isinstance(value, (Mapping, list, tuple)):
            return self._frozen_container(value)
        if isinstance(value, (str, int, float)) and is_json(base_value(value)):
            return value  # a kind of string or number, such as an enum's
        self.is_unencodable = True
        if isinstance(value, set):
            return frozenset(value)
        return bytes(value) if isinstance(value, bytearray) else value

    def _frozen_container(
        self, value: Mapping[Any, Any] | list[Any] | tuple[Any, ...]
    ) -> object:
        if id(value) in self._inside or len(self._inside) >= MAX_LEVELS:
            self.is_unencodable = True  # it contains itself, or goes too deep
            return value
        self._inside.add(id(value))
        try:
            return self._container(value)
        except Exception:  # noqa: BLE001 - a container of the publisher's own that can't be read
            self.is_unencodable = True
            return value
        finally:
            self._inside.discard(id(value))

    def _container(
        self, value: Mapping[Any, Any] | list[Any] | tuple[Any, ...]
    ) -> object:
        if isinstance(value, Mapping):
            before, self.is_unencodable = (
                self.is_unencodable,
                type(value) is Unencodable,
            )
            content: dict[Any, Any] = dict(
                [self._item(name, inner) for name, inner in list(value.items())]
            )
            sealed = Unencodable(content) if self.is_unencodable else Envelope(content)
            self.is_unencodable = self.is_unencodable or before
            return sealed
        inner = [one if is_json(one) else self._frozen(one) for one in list(value)]
        return (
            FrozenList(inner) if isinstance(value, list) else _tuple_like(value, inner)
        )


def _tuple_like(value: tuple[Any, ...], inner: list[Any]) -> tuple[Any, ...]:
    """Returns a tuple of the same type with other values; the same one if they are equal."""
    if all(one is other for one, other in zip(value, inner, strict=True)):
        return value
    make = getattr(type(value), "_make", tuple)  # a named one keeps its names
    return make(inner)


def base_value(value: str | float) -> str | int | float:
    """Returns the plain string or number behind a subclass, whose own conversion may differ."""
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int.__int__(value)
    return float.__float__(value)


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def relay(
    publish: Callable[[str, Mapping[str, Any]], None],
    topic: str,
    payload: Mapping[str, Any],
) -> None:
    """Publishes an event of another process, as read from JSON. Raises as `publish` does for an
    empty topic.
    """
    event = Foreign(payload)
    for value in payload.values():
        kind = type(value)
        if kind is not str and kind is not int and kind not in FLAT:
            event = Foreign(seal(payload, topic, topic.partition(".")[0], time.time()))
            break
    else:
        if "type" not in payload:
            _fill_in(event, "type", topic)
        if "ts" not in payload:
            _fill_in(event, "ts", time.time())
        if "src" not in payload:
            _fill_in(event, "src", topic.partition(".")[0])
    publish(topic, event)


def is_foreign(event: object) -> bool:
    """Returns whether an event, as a subscriber receives it, came from another process.

    Code that sends events to other processes checks this first, so that no event is sent back or sent on twice. An
    event that a subscriber publishes in response is not foreign.
    """
    return type(event) is Foreign

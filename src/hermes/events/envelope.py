"""What a subscriber receives: a dict that is JSON all the way down and that nobody can change.

Owns the frozen containers and the way from a publisher's payload to them. A payload is copied, never kept; what has a
natural JSON form takes it; anything else is refused with the place where it was found.
"""

import enum
import os
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, NoReturn, SupportsIndex

MAX_LEVELS = 100
MAX_DIGITS = 4300  # of an integer: Python writes and reads no more

# The values that are their own JSON form. Exact types: a subclass may carry more than JSON can.
FLAT: frozenset[type] = frozenset((str, int, float, bool, type(None)))

_TOO_LARGE = 10**MAX_DIGITS


class Envelope(dict[str, Any]):
    """A dict that can't be changed. `dict(event)` is a changeable copy of its first level, `thaw(event)` of all."""

    __slots__ = ()

    def __copy__(self) -> "Envelope":
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> "Envelope":
        return self

    def __reduce__(self) -> tuple[type["Envelope"], tuple[dict[str, Any]]]:
        return Envelope, (dict(self),)


class Foreign(Envelope):
    """An envelope that came from another process and lacks nothing: the bus delivers it as it is. A copy is none."""

    __slots__ = ()


class FrozenList(list[Any]):
    """A list that can't be changed, as it is found inside an envelope."""

    __slots__ = ()

    def __copy__(self) -> "FrozenList":
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> "FrozenList":
        return self

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[type["FrozenList"], tuple[list[Any]]]:
        return FrozenList, (list(self),)


def _refuse(*_: object, **__: object) -> NoReturn:
    raise TypeError("an event can't be changed, because others receive it too: copy it first, as in dict(event)")


for _change in ("__setitem__", "__delitem__", "__ior__", "clear", "pop", "popitem", "setdefault", "update"):
    setattr(Envelope, _change, _refuse)
for _change in ("__setitem__", "__delitem__", "__iadd__", "__imul__", "append", "clear", "extend", "insert", "pop"):
    setattr(FrozenList, _change, _refuse)
for _change in ("remove", "reverse", "sort"):
    setattr(FrozenList, _change, _refuse)


def thaw(value: Any) -> Any:
    """A plain, changeable copy of an event or of a part of one, at every level."""
    if isinstance(value, dict):
        return {key: thaw(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [thaw(inner) for inner in value]
    return value


def seal(payload: object, topic: str, source: str, now: float) -> Envelope:
    """The envelope of `payload`, with `type`, `ts` and `src` filled in where they are missing."""
    if payload is None:
        return Envelope(type=topic, ts=now, src=source)
    if isinstance(payload, Envelope) and "type" in payload and "ts" in payload and "src" in payload:
        return payload
    if not isinstance(payload, Mapping):
        raise TypeError(f"payload: a mapping of names to values was expected, not {_name(payload)}")
    sealed = _Sealer().mapping(payload, "payload")
    return Envelope({**sealed, **{k: v for k, v in (("type", topic), ("ts", now), ("src", source)) if k not in sealed}})


def is_flat(payload: object) -> bool:
    """True when `payload` is a plain dict of names to values that need no conversion."""
    if type(payload) is not dict:
        return payload is None
    payload = payload.copy()  # another thread may add to it meanwhile
    for value in payload.values():
        kind = type(value)
        if kind is not str and kind is not int and (kind not in FLAT or (kind is float and value - value)):
            return False
    return all(type(key) is str for key in payload)


class _Sealer:
    """One walk through one payload. Knows which containers it is inside of, to recognise a circle."""

    __slots__ = ("_inside",)

    def __init__(self) -> None:
        self._inside: set[int] = set()

    def value(self, value: object, where: str) -> object:
        kind = type(value)
        if kind is Envelope or kind is FrozenList or _is_json(value):
            return value
        if kind in FLAT:
            raise ValueError(f"{where:.200}: {_fault(value)}, which JSON can't hold")
        if isinstance(value, Mapping):
            return self.mapping(value, where)
        if isinstance(value, (list, tuple)):
            return self.sequence(value, where)
        if isinstance(value, (set, frozenset)):
            return self.sequence(_in_order(value), where)
        return self._converted(value, where)

    def mapping(self, value: Mapping[Any, object], where: str) -> Envelope:
        self._enter(value, where)
        sealed: dict[str, object] = {}
        for key, inner in list(value.items()):
            if not isinstance(key, str):
                raise TypeError(f"{where}: a name must be a string, not {_name(key)} {key!r:.60}")
            name = key if type(key) is str else str.__str__(key)
            if not _is_json(name):
                raise ValueError(f"{where:.200}: a name with {_fault(name)}, which JSON can't hold")
            sealed[name] = inner if _is_json(inner) else self.value(inner, f"{where}.{key:.60}")
        self._inside.discard(id(value))
        return Envelope(sealed)

    def sequence(self, value: Iterable[object], where: str) -> FrozenList:
        self._enter(value, where)
        sealed = [
            inner if _is_json(inner) else self.value(inner, f"{where}[{index}]")
            for index, inner in enumerate(list(value))
        ]
        self._inside.discard(id(value))
        return FrozenList(sealed)

    def _enter(self, container: object, where: str) -> None:
        if id(container) in self._inside:
            raise ValueError(f"{where:.200}: the payload contains itself")
        if len(self._inside) >= MAX_LEVELS:
            raise ValueError(f"{where:.200}...: nested deeper than {MAX_LEVELS} levels")
        self._inside.add(id(container))

    def _converted(self, value: object, where: str) -> object:
        if isinstance(value, enum.Enum):
            return self.value(value.value, where)
        # The base's own conversion: a subclass may have another.
        if isinstance(value, str):
            return self.value(str.__str__(value), where)
        if isinstance(value, int):
            return self.value(int.__int__(value), where)
        if isinstance(value, float):
            return self.value(float.__float__(value), where)
        if isinstance(value, os.PathLike):
            return self.value(os.fsdecode(value), where)
        self._enter(value, where)
        sealed = self.value(_natural_form(value, where), where)
        self._inside.discard(id(value))
        return sealed


def _is_json(value: Any) -> bool:
    """True for a flat value that JSON can hold as it is."""
    kind = type(value)
    if kind is str:
        return str.isascii(value) or _is_text(value)
    if kind is int:
        return -_TOO_LARGE < value < _TOO_LARGE
    if kind is float:
        return not value - value  # infinity and not-a-number give not-a-number, which is true
    return kind in FLAT


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _fault(value: object) -> str:
    if type(value) is str:
        return "half a surrogate pair"
    return f"the number {value}" if type(value) is float else f"a number of more than {MAX_DIGITS:,} digits"


def _natural_form(value: object, where: str) -> object:
    # Here and not above: most processes never need it, and it takes a while to load.
    import msgspec

    try:
        return msgspec.to_builtins(value, enc_hook=_path_form)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{where}: {_name(value)} has no JSON form ({error})") from error
    except RecursionError as error:
        raise ValueError(f"{where}: {_name(value)} contains itself or is nested too deep") from error


def _path_form(value: object) -> str:
    if isinstance(value, os.PathLike):
        return os.fsdecode(value)
    raise TypeError(f"found {_name(value)}")


def _in_order(values: AbstractSet[Any]) -> list[object]:
    """A set as the same list every time, where its values can be compared."""
    try:
        return sorted(values)
    except TypeError:
        return list(values)


def _name(value: object) -> str:
    return type(value).__qualname__

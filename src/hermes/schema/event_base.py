"""What an event is: typed, frozen data with a topic, durable or transient.

A durable event is a row of a session's log and carries the cursor `(epoch, seq)` of that row. A transient event
(a token, progress) is only published. Either way the fields of the class are the payload, and the envelope's own
names (`ENVELOPE_FIELDS`) are never among them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, ClassVar, Literal, TypeAlias, get_args

import msgspec

Role: TypeAlias = Literal["user", "assistant", "tool"]

ENVELOPE_FIELDS = (
    "type",
    "ts",
    "src",
    "session_id",
    "root_session_id",
    "turn_id",
    "epoch",
    "seq",
)


class Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Base of every event. `sensitive` names fields that may hold secrets or private text; `reasons` those that say why
    in sentences of Hermes (`Translator.logged`), which surfaces show in the reader's language."""

    topic: ClassVar[str] = ""
    durable: ClassVar[bool] = True
    role: ClassVar[Role | None] = None
    sensitive: ClassVar[tuple[str, ...]] = ()
    reasons: ClassVar[tuple[str, ...]] = ()


def payload_of(event: Event) -> dict[str, Any]:
    """Returns all fields of an event as JSON values, including those with their default."""
    return complete(type(event), msgspec.to_builtins(event))


def complete(kind: type[msgspec.Struct], fields: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the stored fields of an event, with defaults for those that were left out."""
    defaults, inner = _left_out(kind)
    whole = defaults | dict(fields)
    for name, fill in inner.items():
        whole[name] = fill(whole[name])
    return whole


@cache
def _left_out(
    kind: type[msgspec.Struct],
) -> tuple[dict[str, Any], dict[str, Callable[[Any], Any]]]:
    """Returns the defaults of an event type's fields, and how to complete those with structs or lists."""
    defaults: dict[str, Any] = {}
    inner: dict[str, Callable[[Any], Any]] = {}
    for field in msgspec.structs.fields(kind):
        if not field.required:
            defaults[field.name] = msgspec.to_builtins(field.default)
        if (struct := _struct_in(field.type)) is not None and any(_left_out(struct)):
            inner[field.name] = _filler(struct)
        elif isinstance(field.default, tuple):
            inner[field.name] = list  # a new one each time, as decoding JSON would give
    return defaults, inner


def _filler(struct: type[msgspec.Struct]) -> Callable[[Any], Any]:
    def fill(value: Any) -> Any:
        if value is None:
            return None
        if isinstance(value, Mapping):
            return complete(struct, value)
        return [complete(struct, one) for one in value]

    return fill


def _struct_in(annotation: Any) -> type[msgspec.Struct] | None:
    """Returns the struct that a field holds, alone or in a list."""
    if isinstance(annotation, type) and issubclass(annotation, msgspec.Struct):
        return annotation
    return next(
        (
            found
            for part in get_args(annotation)
            if (found := _struct_in(part)) is not None
        ),
        None,
    )

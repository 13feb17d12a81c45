"""Where an event was born. One that came from another process is published with `relay`, and whoever sends events away
asks `is_foreign` first: nothing is ever sent back, or sent on twice.

What a subscriber publishes in answer to a foreign event is born here, and is no foreign event.
"""

import time
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any

from hermes.events.envelope import FLAT, Envelope, seal

_fill_in = dict.setdefault  # an envelope refuses its own
_arriving: ContextVar[object] = ContextVar("hermes_events_arriving", default=None)


def relay(publish: Callable[[str, Mapping[str, Any]], None], topic: str, payload: Mapping[str, Any]) -> None:
    """Publishes what another process sent, as it was read from JSON. Raises as `publish` does for an empty topic."""
    source = topic.partition(".")[0]
    event = Envelope(payload)
    for value in event.values():
        kind = type(value)
        if kind is not str and kind is not int and kind not in FLAT:
            event = seal(payload, topic, source, time.time())
            break
    else:
        if "ts" not in event:
            _fill_in(event, "ts", time.time())
        _fill_in(event, "type", topic)
        _fill_in(event, "src", source)
    token = _arriving.set(event)
    try:
        publish(topic, event)
    finally:
        _arriving.reset(token)


def is_foreign(event: object) -> bool:
    """Whether the event that is being delivered came from another process. To be asked in the publisher's thread."""
    return _arriving.get() is event

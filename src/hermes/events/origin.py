"""Where an event was born. One that came from another process is published with `relay`, and whoever sends events away
asks `is_foreign` first: nothing is ever sent back, or sent on twice.

What a subscriber publishes in answer to a foreign event is born here, and is no foreign event.
"""

import time
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any

from hermes.events.envelope import Envelope, is_flat, seal

_arriving: ContextVar[object] = ContextVar("hermes_events_arriving", default=None)


def relay(publish: Callable[[str, Mapping[str, Any]], None], topic: str, payload: Mapping[str, Any]) -> None:
    """Publishes what another process sent. Raises as `publish` does for what can't be an event."""
    source = topic.partition(".")[0]
    if is_flat(payload):
        event = Envelope({"type": topic, "ts": time.time(), "src": source} | dict(payload))
    else:
        event = seal(payload, topic, source, time.time())
    token = _arriving.set(event)
    try:
        publish(topic, event)
    finally:
        _arriving.reset(token)


def is_foreign(event: object) -> bool:
    """Whether the event that is being delivered came from another process. To be asked in the publisher's thread."""
    return _arriving.get() is event

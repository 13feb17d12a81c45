"""The origin of an event. An event from another process is published with `relay`.

Whoever sends events away checks `is_foreign` first: nothing is ever sent back, or sent on twice.
What a subscriber publishes in response to a foreign event is not foreign.
"""

import time
from collections.abc import Callable, Mapping
from typing import Any

from hermes.events.envelope import FLAT, Foreign, seal

_fill_in = dict.setdefault  # an envelope refuses its own


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
    """Returns whether an event, as a subscriber receives it, came from another process."""
    return type(event) is Foreign
